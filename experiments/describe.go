package experiments

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/BurntSushi/toml"

	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/slo"
	"slosim/workloads"
)

// Info is what a shipped experiment is about.
type Info struct{ Name, Title, Question string }

// List returns the shipped experiments in alphabetical order.
func List() ([]Info, error) {
	var list []Info
	for _, name := range Names() {
		text, err := Shipped(name)
		if err != nil {
			return nil, err
		}
		info := Info{Name: name}
		if _, err := toml.Decode(text, &info); err != nil {
			return nil, fmt.Errorf("shipped experiment %s: %w", name, err)
		}
		list = append(list, info)
	}
	return list, nil
}

// Describe writes a resolved experiment in a few lines, for sim check.
func Describe(w io.Writer, e sim.Experiment, p config.Provenance) {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s%s\n", what, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(w, "%s is valid\n", p.File)
	line("run", "%s from %s, after %s of warm-up, %s, seed %d", config.SpanText(e.Duration), strings.Trim(config.WeekTime.Format(e.Start), `"`),
		config.SpanText(e.Warmup), count(e.Replications, "replication"), e.Seed)
	for _, pool := range e.Pools {
		d, eng := pool.Deployment, pool.Engine
		line("pool", "%s: %s of %s on %d x %s (%s), %s, %d KV blocks = %d tokens each%s", pool.Name, count(pool.Replicas, "replica"),
			d.LLM.Name, d.GPUs(), d.GPU.Name, count(pool.GPUs(), "GPU"), eng.Kind, eng.KVBlocks, int64(eng.KVBlocks-1)*int64(eng.BlockSize), describeRole(pool)+describeFleet(&pool))
	}
	for _, c := range e.Traffic {
		line("traffic", "%s", describeClass(c))
	}
	for _, c := range e.Changes {
		line("change", "%s", describeChange(c))
	}
	for _, o := range e.SLOs {
		line("slo", "%s", describeObjective(o))
	}
	describeSold(&e, line)
	describeEvents(&e, line)
	line("hash", "%.16s", p.SHA256)
}

// describeRole says what is special about a pool, beginning with a comma.
func describeRole(p sim.Pool) string {
	text := ""
	if p.Role != "" {
		text = fmt.Sprintf(", %ss only, link %s", p.Role, strings.Trim(config.Bandwidth.Format(p.Link.BytesPerS), `"`))
	}
	if e := p.Engine; e.SpecDrafts > 0 {
		text += fmt.Sprintf(", %s a step accepted at %s", count(int(e.SpecDrafts), "draft"), strings.Trim(config.Share.Format(e.SpecAccept), `"`))
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func describeClass(c workloads.Class) string {
	switch {
	case c.Trace != nil:
		return fmt.Sprintf("%s: replays %s", c.Name, c.Trace.File)
	case c.Client.Users > 0:
		return fmt.Sprintf("%s: %s in a closed loop, %s, prompts of %s, outputs of %s tokens%s", c.Name, count(c.Client.Users, "user"),
			describeThink(c.Client.Think), describeDist(c.Prompt, config.Tokens), describeDist(c.Output, config.Tokens), describePrefix(c)+describeClient(c))
	}
	shape := describeShape(&c.Rate)
	return fmt.Sprintf("%s: %s, %s, prompts of %s, outputs of %s tokens%s", c.Name, config.RateText(c.Rate.Mean),
		shape, describeDist(c.Prompt, config.Tokens), describeDist(c.Output, config.Tokens), describePrefix(c)+describeClient(c))
}

// describeShape says how a rate varies.
func describeShape(r *workloads.Rate) string {
	shape := r.Shape
	for _, b := range r.Bursts {
		shape += fmt.Sprintf(" with %gx for %s at %s", b.Factor, config.SpanText(b.Length), config.SpanText(b.At))
		if b.Every > 0 {
			shape += " and every " + config.SpanText(b.Every)
		}
	}
	for _, more := range []struct {
		has  bool
		text string
	}{
		{len(r.Weekdays) > 0, "by weekday"},
		{r.Growth != 0, "growing " + strings.Trim(config.Share.Format(r.Growth), `"`) + " a week"},
		{len(r.Ramps) > 0, count(len(r.Ramps), "ramp")},
		{r.Ladder.Steps > 0, count(r.Ladder.Steps, "step")},
		{r.RandomBursts.PerSecond > 0, "random bursts"},
		{len(r.Regimes) > 0, count(len(r.Regimes), "regime")},
		{len(r.Add) > 0, count(len(r.Add), "further rate")},
		{len(r.Clients) > 0, count(len(r.Clients), "client")},
		{r.Hawkes.Branching > 0, fmt.Sprintf("Hawkes %g", r.Hawkes.Branching)},
		{r.Requests > 0, fmt.Sprintf("%d requests as vllm bench sends them", r.Requests)},
	} {
		if more.has {
			shape += ", " + more.text
		}
	}
	return shape
}

func describeThink(d workloads.Dist) string {
	if d.Kind == "" {
		return "no think time"
	}
	return "think time of " + describeDist(d, seconds)
}

// describeClient says how a class's requests belong together and when its clients
// give up, if they do.
func describeClient(c workloads.Class) string {
	text := ""
	if c.Session.On() {
		text = fmt.Sprintf(", in sessions of %s turns with a %s", describeDist(c.Session.Turns, config.Tokens), describeThink(c.Session.Think))
		text = strings.Replace(text, "with a no", "with no", 1)
	}
	if t := c.Client.Timeout; t > 0 {
		text += ", given up after " + config.SpanText(t)
	}
	if c.Client.Patience.Kind != "" {
		text += ", patience of " + describeDist(c.Client.Patience, seconds)
	}
	if n := c.Client.Retry.Times; n > 0 {
		text += fmt.Sprintf(", up to %d retries", n)
	}
	return text
}

// describePrefix says what a class's prompts share, if anything.
func describePrefix(c workloads.Class) string {
	switch {
	case c.System.Tokens > 0:
		return fmt.Sprintf(", one of %s of %d tokens first", count(int(c.System.Variants), "system prompt"), c.System.Tokens)
	case c.Hit.Ratio > 0:
		return fmt.Sprintf(", prefix hits in %s of them, %s tokens", strings.Trim(config.Share.Format(c.Hit.Ratio), `"`), describeDist(c.Hit.Tokens, config.Tokens))
	}
	return ""
}

func describeDist(d workloads.Dist, u config.Unit[float64]) string {
	text := func(v float64) string { return strings.Trim(u.Format(v), `"`) }
	switch d.Kind {
	case "fixed":
		return text(d.Mean)
	case "lognormal":
		if d.Sigma > 0 { // by other figures than these two
			return fmt.Sprintf("mean %s, p99 %s", text(fourDigits(d.Mean)), text(fourDigits(d.P99)))
		}
		return fmt.Sprintf("mean %s, p99 %s", text(d.Mean), text(d.P99))
	case "uniform":
		return fmt.Sprintf("%s to %s", text(d.Min), text(d.Max))
	case "exponential":
		return "mean " + text(d.Mean)
	}
	if l, err := d.Compile(); err == nil {
		return fmt.Sprintf("%s, P50 %s, P99 %s", d.Kind, text(math.Round(l.Quantile(.5))), text(math.Round(l.Quantile(.99))))
	}
	return d.Kind
}

// fourDigits rounds to four significant digits.
func fourDigits(x float64) float64 {
	if !(x > 0) {
		return x
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-3)
	if unit < 1 {
		return math.Round(x*(1/unit)) / (1 / unit)
	}
	return math.Round(x/unit) * unit
}

func describeChange(c workloads.Change) string {
	text := fmt.Sprintf("%s: at %s over %s", c.Name, config.SpanText(c.At), config.SpanText(c.Ramp))
	if c.Share > 0 {
		text += fmt.Sprintf(", %s of %s", strings.Trim(config.Share.Format(c.Share), `"`), c.Class)
	}
	if len(c.Steps) > 0 {
		text += fmt.Sprintf(" in %s", count(len(c.Steps), "step"))
	}
	if c.Until > 0 {
		text += ", rolled back at " + config.SpanText(c.Until)
	}
	if c.RateFactor != 1 {
		text += fmt.Sprintf(", rate of %s x %.4g", c.Class, c.RateFactor)
	}
	if c.Prompt != nil {
		text += ", prompts of " + describeDist(*c.Prompt, config.Tokens)
	}
	if c.Output != nil {
		text += ", outputs of " + describeDist(*c.Output, config.Tokens)
	}
	return text
}

func describeObjective(o slo.Objective) string {
	target := strings.Trim(config.Share.Format(o.Target), `"`)
	text := fmt.Sprintf("%s: %s of %s ", o.Name, target, o.Class)
	switch o.Metric {
	case slo.Availability:
		text += "answered"
	case slo.Goodput:
		text += "within " + o.All.Text(config.SpanText)
	default:
		text += fmt.Sprintf("with %s <= %s", o.Metric, config.SpanText(o.Threshold))
	}
	switch {
	case o.MinPrompt > 0 && o.MaxPrompt > 0:
		text += fmt.Sprintf(", prompts of %d to %d tokens", o.MinPrompt, o.MaxPrompt-1)
	case o.MinPrompt > 0:
		text += fmt.Sprintf(", prompts from %d tokens on", o.MinPrompt)
	case o.MaxPrompt > 0:
		text += fmt.Sprintf(", prompts below %d tokens", o.MaxPrompt)
	}
	if len(o.Only) > 0 {
		text += ", only " + strings.Join(o.Only, ", ")
	}
	if len(o.Exclude) > 0 {
		text += ", without " + strings.Join(o.Exclude, ", ")
	}
	return text + ", over " + config.SpanText(o.Window)
}
