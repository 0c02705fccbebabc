package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// thinPhase is the number of requests from which a P99 means something.
const thinPhase = 1000

// warn reports what is likely wrong in a valid experiment.
func (l *loader) warn() {
	if l.doc.Failures() > 0 {
		return
	}
	for i := range l.e.Traffic {
		l.warnThin(i)
		l.warnDay(i)
		l.warnClient(i)
		l.warnPool(i)
		l.warnTooLong(i)
	}
	for i := range l.e.Pools {
		l.warnLength(i)
	}
	l.warnProjection()
	l.warnCluster()
}

// expected returns about how many requests a class sends in [from, to); false
// for a closed loop, which nobody knows ahead.
func (l *loader) expected(class int, from, to clock.Duration) (float64, bool) {
	c := &l.e.Traffic[class]
	switch trace, replayed := l.traces[class]; {
	case c.Client.Users > 0:
		return 0, false
	case replayed: // spread evenly
		return float64(trace.Rows) * (to - from).Seconds() / max(1, trace.Span.Seconds()), true
	}
	in := workloads.NewIntensity(c, l.e.Changes, l.e.Start)
	return in.Expected(clock.Time(from), clock.Time(to)), true
}

// phaseEdges returns the instants at which phases begin, and the end.
func (l *loader) phaseEdges() []clock.Duration {
	edges := []clock.Duration{0, l.e.Duration}
	for _, c := range l.e.Changes {
		edges = append(edges, c.At, c.At+c.Ramp)
		if c.Until > 0 {
			edges = append(edges, c.Until)
		}
	}
	slices.Sort(edges)
	return slices.Compact(edges)
}

// warnThin reports phases with too few requests for a P99.
func (l *loader) warnThin(class int) {
	edges := l.phaseEdges()
	var thin []string
	for i := 1; i < len(edges); i++ {
		if n, ok := l.expected(class, edges[i-1], edges[i]); ok && n < thinPhase {
			thin = append(thin, fmt.Sprintf("%.0f from %s to %s", n, config.SpanText(edges[i-1]), config.SpanText(edges[i])))
		}
	}
	if len(thin) == 0 {
		return
	}
	const most = 3
	if more := len(thin) - most; more > 0 {
		thin = append(thin[:most], fmt.Sprintf("%d more", more))
	}
	key := "rate"
	if l.e.Traffic[class].Trace != nil {
		key = "trace"
	}
	l.classes[class].Warnf(key, "run longer, or read P90 instead", "class %q sends too few requests for a P99: about %s; a phase needs %d",
		l.e.Traffic[class].Name, strings.Join(thin, ", "), thinPhase)
}

// warnDay reports a daily curve that the run sees only a part of.
func (l *loader) warnDay(class int) {
	c := &l.e.Traffic[class]
	if c.Rate.Shape != "diurnal" && c.Rate.Shape != "hourly" || l.e.Duration >= clock.Day {
		return
	}
	n, _ := l.expected(class, 0, l.e.Duration)
	l.classes[class].Warnf("rate", `run whole days: --set duration=24h; or take shape = "constant"`,
		"the rate of class %q is %s, but the run sees only %s of a day from %s on: on average %s instead of %s",
		c.Name, c.Rate.Shape, config.SpanText(l.e.Duration), strings.Trim(config.WeekTime.Format(l.e.Start), `"`),
		config.RateText(n/l.e.Duration.Seconds()), config.RateText(c.Rate.Mean))
}

// warnClient reports an open loop that is none when it matters.
func (l *loader) warnClient(class int) {
	if c := &l.e.Traffic[class]; c.Client.MaxInFlight > 0 {
		l.classes[class].Warnf("max_in_flight", "leave it out unless your clients do have such a limit",
			"class %q holds arrivals back at the client while %d are in flight: an overload shows neither in the queue nor in TTFT, which counts from the send",
			c.Name, c.Client.MaxInFlight)
	}
}

// warnPool reports settings of a class that its pool does not look at.
func (l *loader) warnPool(class int) {
	c, t := &l.e.Traffic[class], l.classes[class]
	pool := l.poolOf(c.Name)
	e := &pool.Engine
	if c.Priority != 0 && !e.Priority && pool.Gate.Order != "priority" {
		t.Warnf("priority", `set engine = { policy = "priority" } there (kind "vllm")`, "pool %q serves class %q first come, first served: priority = %d changes nothing", pool.Name, c.Name, c.Priority)
	}
	for _, key := range []string{"system_prompt", "prefix_hit"} {
		if t.Has(key) && e.Kind != vllm {
			t.Warnf(key, `only kind "vllm" has a prefix cache here`, "pool %q (%s) models no prefix cache: %s of class %q saves nothing", pool.Name, e.Kind, key, c.Name)
		}
	}
	if c.Trace != nil && c.Trace.Format == "mooncake" && e.Kind != vllm {
		t.Warnf("trace", `only kind "vllm" has a prefix cache here`, "pool %q (%s) models no prefix cache: the trace's block ids save nothing", pool.Name, e.Kind)
	}
	if mean := c.Prompt.Mean; !c.Session.On() && mean > 0 && mean <= float64(c.System.Tokens) {
		t.Warnf("system_prompt", "prompt is the whole length, the system prompt included", "prompts of class %q have %s tokens on average, and its system prompt %d",
			c.Name, config.Tokens.Format(mean), c.System.Tokens)
	}
}

// poolOf returns the pool that serves a class: of two, the one that decodes.
func (l *loader) poolOf(class string) *sim.Pool {
	k := slices.IndexFunc(l.e.Pools, func(p sim.Pool) bool {
		return p.Role != prefill && !p.Standby && (len(p.Classes) == 0 || slices.Contains(p.Classes, class))
	})
	return &l.e.Pools[k]
}

// warnProjection reports a run that ends too soon after its last change to say
// how the budget's window goes on.
func (l *loader) warnProjection() {
	if len(l.e.Changes) == 0 {
		return
	}
	edges := l.phaseEdges()
	last := edges[len(edges)-2]
	longer := slices.ContainsFunc(l.e.SLOs, func(o slo.Objective) bool { return o.Window > l.e.Duration })
	if !longer || l.e.Duration-last >= clock.Day {
		return
	}
	l.lastChange.Warnf("at", "--set duration="+hours(last+clock.Day)+" or more", "only %s follow the last change: without a whole day after it, budgets are not projected and no date of exhaustion is given",
		config.SpanText(l.e.Duration-last))
}

// warnLength reports a pool whose KV pool, and not the model, bounds its requests:
// an engine that is not told so refuses to start.
func (l *loader) warnLength(pool int) {
	p, t := &l.e.Pools[pool], l.pools[pool]
	n, limit := int(p.Engine.MaxModelLen), p.Deployment.LLM.MaxModelLen
	engine := t.Sub("engine", "")
	if p.Engine.Kind == vllm && n < limit && !engine.Has("max_model_len") {
		t.Warnf("model", fmt.Sprintf("say so: engine = { max_model_len = %d }", n),
			"pool %q holds no request of %s tokens, the limit of %s: vLLM refuses to start unless it gets --max-model-len; taken here: %d", p.Name, config.WholeTokens.Format(limit), p.Deployment.LLM.Name, n)
	}
	if p.Role != decode {
		return
	}
	for k := range l.e.Pools {
		if f := &l.e.Pools[k]; f.Role == prefill && f.Engine.MaxModelLen > p.Engine.MaxModelLen && overlap(l.served(f), l.served(p)) {
			t.Warnf("role", "give both the same max_model_len", "pool %q computes prompts of up to %d tokens, but pool %q, which decodes them, holds %d: longer ones are computed and then rejected",
				f.Name, f.Engine.MaxModelLen, p.Name, n)
		}
	}
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// warnTooLong reports prompts that the pool of a class can never hold.
func (l *loader) warnTooLong(class int) {
	c, t := &l.e.Traffic[class], l.classes[class]
	if c.Trace != nil || c.Session.On() {
		return
	}
	pool := l.poolOf(c.Name)
	prompt, err := c.Prompt.Compile()
	if err != nil {
		return
	}
	limit := pool.Engine.MaxModelLen
	for k := range l.e.Pools { // prompt ranges: the most that any of them takes
		if p := &l.e.Pools[k]; ranged(p) && (len(p.Classes) == 0 || slices.Contains(p.Classes, c.Name)) {
			limit = max(limit, p.Engine.MaxModelLen)
		}
	}
	if share := prompt.ShareAtLeast(limit); share > 0.001 {
		t.Warnf("prompt", "shorten them, or take a pool with more max_model_len", "%s of the prompts of class %q have %d tokens or more, and max_model_len of pool %q is %d: they are rejected",
			strings.Trim(config.Share.Format(math.Round(share*1000)/1000), `"`), c.Name, limit, pool.Name, limit)
	}
	if r := &c.Client.Retry; r.Times > 0 && c.Client.Timeout == 0 && c.Client.Patience.Kind == "" && pool.Engine.MaxWaiting == 0 && pool.Gate == (sim.Gate{}) && l.e.Limits == nil && len(l.e.Faults)+len(l.e.Rollouts)+len(l.e.Rules) == 0 && pool.Wear.MTBF == 0 {
		t.Warnf("retry", "add timeout or patience", "clients of class %q retry after a time-out, a 429 or a fault, and none of these can happen here", c.Name)
	}
}
