package review

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"slosim/internal/report"
	"slosim/sim"
	"slosim/sim/clock"
)

// candidate is a lever in all its doses, from the smallest to the largest.
type candidate struct {
	name, asks string
	doses      int
	scan       bool // more is not always better: try every dose
	asFast     bool // an idle replica stays as fast as it is: what it misses stays missed
	probe      bool // a dose may be overloaded by far: ask for its load first
	unpriced   bool // what it costs is not known here
	sheds      bool // it turns requests away: judge it by those that are answered
	edit       func(t tree, dose int) (label string, err error)
}

// variant is a lever at a dose.
type variant struct {
	e     sim.Experiment
	text  string
	label string
}

// variant edits the experiment's text and resolves it.
func (s *search) variant(c *candidate, dose int) (*variant, error) {
	t := clone(s.tree).(tree)
	label, err := c.edit(t, dose)
	if err != nil {
		return nil, err
	}
	text, err := t.text(fmt.Sprintf("%s\nLever: %s, %s.", s.after.e.Title, c.name, label))
	if err != nil {
		return nil, err
	}
	e, err := s.text.load(t)
	if err != nil {
		return nil, err
	}
	return &variant{e, text, label}, nil
}

// busiest is the pool with the highest load at the peak.
func (s *search) busiest() (name string, i int) {
	pools := s.after.reps[0].Pools
	for k := range pools {
		if pools[k].PeakLoad > pools[i].PeakLoad {
			i = k
		}
	}
	return pools[i].Name, i
}

// candidates are the levers that suit the experiment, in the order in which they are
// tried.
func (s *search) candidates() []candidate {
	list := append(append(s.subjectLevers(), s.poolLevers()...), s.hardwareLevers()...)
	return append(list, s.renegotiated())
}

// poolLevers ask the platform team.
func (s *search) poolLevers() []candidate {
	pool, i := s.busiest()
	p := s.after.e.Pools[i]
	in := func(f func(p map[string]any, dose int) string) func(tree, int) (string, error) {
		return func(t tree, dose int) (string, error) {
			x := t.table("pool", pool)
			if x == nil {
				return "", fmt.Errorf("the text has no pool %q", pool)
			}
			return f(x, dose), nil
		}
	}
	list := []candidate{{name: "more replicas", asks: "platform", doses: max(4, 3*p.Replicas), edit: in(func(x map[string]any, d int) string {
		x["replicas"] = int64(p.Replicas + d)
		if a, ok := x["autoscale"].(map[string]any); ok {
			a["max"] = max(number(a["max"]), int64(p.Replicas+d))
			a["min"] = int64(p.Replicas + d)
		}
		return fmt.Sprintf("%d replicas of %s instead of %d", p.Replicas+d, pool, p.Replicas)
	})}}
	if p.Engine.Kind == "vllm" {
		limits := []int64{4096, 2048, 1024, 512, 256}
		list = append(list, candidate{name: "chunk limit", asks: "platform", doses: len(limits), scan: true, asFast: true, edit: in(func(x map[string]any, d int) string {
			sub(x, "engine")["long_prefill_token_threshold"] = limits[d-1]
			return fmt.Sprintf("long_prefill_token_threshold = %d", limits[d-1])
		})})
		if !p.Engine.PrefixCache {
			list = append(list, candidate{name: "prefix caching", asks: "platform", doses: 1, edit: in(func(x map[string]any, _ int) string {
				sub(x, "engine")["prefix_caching"] = true
				return "prefix_caching = true"
			})})
		}
	}
	if p.Deployment.KVDtype != "fp8" {
		list = append(list, candidate{name: "FP8 KV cache", asks: "platform", doses: 1, edit: in(func(x map[string]any, _ int) string {
			x["kv_dtype"] = "fp8"
			return `kv_dtype = "fp8"`
		})})
	}
	if p.Deployment.WeightDtype == "bf16" {
		list = append(list, candidate{name: "FP8 weights", asks: "platform", doses: 1, edit: in(func(x map[string]any, _ int) string {
			x["weight_dtype"], x["kv_dtype"] = "fp8", p.Deployment.KVDtype
			return `weight_dtype = "fp8": check the model's quality`
		})})
	}
	return append(list, s.isolation(pool, p)...)
}

// isolation gives long prompts replicas of their own, first out of those that there
// are, then further ones.
func (s *search) isolation(pool string, p sim.Pool) []candidate {
	if p.Role != "" || p.MinPrompt+p.MaxPrompt > 0 {
		return nil
	}
	border := s.border()
	type split struct{ short, long int }
	var splits []split
	for total := p.Replicas; total <= p.Replicas+2; total++ {
		for long := 1; long < total; long++ {
			if total > p.Replicas && long < total/2 {
				continue
			}
			splits = append(splits, split{total - long, long})
		}
	}
	return []candidate{{name: "pool for long prompts", asks: "platform", doses: len(splits), scan: true, asFast: true, edit: func(t tree, d int) (string, error) {
		x := t.table("pool", pool)
		list, ok := t["pool"].([]map[string]any)
		if x == nil || !ok {
			return "", fmt.Errorf("the text has no pool %q", pool)
		}
		long := clone(x).(map[string]any)
		x["replicas"], x["max_prompt"] = int64(splits[d-1].short), border
		long["name"], long["replicas"], long["min_prompt"] = pool+"-long", int64(splits[d-1].long), border
		t["pool"] = append(list, long)
		return fmt.Sprintf("prompts of %s tokens and more on %s of their own, %d for the others", report.Whole(border), plural(splits[d-1].long, "replica"), splits[d-1].short), nil
	}}}
}

// border is the prompt length above which a prompt is long: what 95 % of the existing
// prompts stay below, in hundreds.
func (s *search) border() int64 {
	class, _ := s.newcomers()
	for _, name := range []string{"existing", "all"} {
		if c := cohort(s.before.reps[0], class, name); c != nil && c.Prompt.P95.R > 0 {
			return int64(math.Ceil(c.Prompt.P95.V/100)) * 100
		}
	}
	return 8000
}

// subjectLevers ask product and business to change the launch itself.
func (s *search) subjectLevers() []candidate {
	array, name, change, class := s.subject()
	if array == "" {
		return nil
	}
	in := func(f func(x map[string]any, dose int) (string, error)) func(tree, int) (string, error) {
		return func(t tree, dose int) (string, error) {
			x := t.table(array, name)
			if x == nil {
				return "", fmt.Errorf("the text has no [[%s]] %q", array, name)
			}
			return f(x, dose)
		}
	}
	const steps = 60
	list := []candidate{{name: "shorter prompts", asks: "product", doses: steps - 6, edit: in(func(x map[string]any, d int) (string, error) {
		return slim(x, 1-float64(d)/steps)
	})}}
	caps := []int64{2048, 1024, 768, 512, 384, 256, 192, 128, 64}
	if change != nil {
		list = append(list, candidate{name: "output cap", asks: "product", doses: len(caps), edit: in(func(x map[string]any, d int) (string, error) {
			x["output_cap"] = caps[d-1]
			return fmt.Sprintf("outputs of %s cut at %d tokens", name, caps[d-1]), nil
		})})
		share := change.Share
		list = append(list, candidate{name: "smaller exposure", asks: "business", doses: steps - 1, edit: in(func(x map[string]any, d int) (string, error) {
			if x["canary"] != nil {
				return "", errors.New("the launch is a canary: shorten its list instead")
			}
			to := math.Round(share*(1-float64(d)/steps)*1e6) / 1e6
			x["share"] = to
			return fmt.Sprintf("share %s instead of %s", percent(to), percent(share)), nil
		})})
	}
	limited := name
	if class == nil {
		limited = change.Class
	}
	tokens := 1.6 * s.offered(limited) // about what the busiest hours bring
	return append(list, candidate{name: "token rate limit", asks: "business", doses: 19, sheds: true, edit: func(t tree, d int) (string, error) {
		x := t.table("traffic", limited)
		if x == nil || tokens == 0 {
			return "", errors.New("the offered tokens per second are not known ahead")
		}
		to := math.Round(tokens * (1 - float64(d)/20))
		sub(x, "limit")["tokens"] = to
		return fmt.Sprintf("%s tokens/s of %s admitted, further ones rejected", report.Number(to), limited), nil
	}})
}

// offered is how many prompt and output tokens per second a class sends on the mean
// of the last phase.
func (s *search) offered(class string) float64 {
	r := s.after.reps[0]
	ph := r.Phases[len(r.Phases)-1]
	c := cohort(r, class, "all")
	if c == nil || c.N == 0 {
		return 0
	}
	perS := float64(c.N) / ph.To.Sub(ph.From).Seconds()
	return perS * (c.Prompt.Mean.V + c.Output.Mean.V)
}

// slim scales a prompt distribution, or a length that all prompts have.
func slim(x map[string]any, by float64) (string, error) {
	if n, ok := numeric(x["prompt"]); ok {
		x["prompt"] = int64(max(1, math.Round(n*by)))
		return fmt.Sprintf("prompts of %s tokens, %s of the planned length", report.Whole(x["prompt"].(int64)), percent(math.Round(by*1000)/1000)), nil
	}
	p, ok := x["prompt"].(map[string]any)
	if !ok {
		return "", errors.New("the launch has no prompt lengths of its own that could be scaled")
	}
	mean := float64(0)
	for _, key := range []string{"mean", "p99", "p50", "median", "sd", "min", "max"} {
		v, ok := p[key]
		if !ok {
			continue
		}
		n, ok := numeric(v)
		if !ok {
			return "", fmt.Errorf("prompt.%s is no plain number", key)
		}
		if n = math.Round(n * by); key == "mean" {
			mean = n
		}
		p[key] = int64(n)
	}
	if mean == 0 {
		return "", errors.New("the launch's prompts have no mean to scale")
	}
	return fmt.Sprintf("prompts of %s tokens in the mean, %s of the planned length", report.Whole(int64(mean)), percent(math.Round(by*1000)/1000)), nil
}

// numeric reads a number of the decoded text.
func numeric(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

func number(v any) int64 {
	n, _ := numeric(v)
	return int64(n)
}

// renegotiated promises more time for the objectives that break.
func (s *search) renegotiated() candidate {
	factors := []float64{1.1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3, 3.5, 4, 5, 6, 8, 10}
	return candidate{name: "another promise", asks: "business", doses: len(factors), edit: func(t tree, d int) (string, error) {
		var said []string
		for _, k := range s.broken {
			o := &s.after.e.SLOs[k]
			x := t.table("slo", o.Name)
			if x == nil || o.Threshold == 0 {
				return "", fmt.Errorf("the objective %q has no threshold in the text", o.Name)
			}
			to := clock.Duration(float64(o.Threshold) * factors[d-1])
			x["threshold"] = fmt.Sprintf("%gs", to.Seconds())
			said = append(said, fmt.Sprintf("%s: %s instead of %s", o.Name, report.Span(to), report.Span(o.Threshold)))
		}
		return strings.Join(said, "; "), nil
	}}
}

// name gives every lever that has an experiment its file.
func (s *search) name() {
	for i := range s.review.Levers {
		l := &s.review.Levers[i]
		if l.text != "" {
			l.File = "lever-" + strings.NewReplacer(" ", "-", "/", "-").Replace(strings.ToLower(l.Name)) + ".toml"
		}
	}
	slices.SortFunc(s.review.NotTried, strings.Compare)
}
