package review

import (
	"fmt"
	"slices"

	"slosim/models"
	"slosim/sim"
)

// hardwareLevers change what the busiest pool runs on: how wide its replicas are, the
// GPU, whether prompts are computed apart. A dose that cannot be (weights that do not
// fit, a role that the engine does not know) is passed over.
func (s *search) hardwareLevers() []candidate {
	pool, i := s.busiest()
	p := s.after.e.Pools[i]
	if p.Role != "" {
		return nil
	}
	in := func(f func(t tree, x map[string]any, dose int) string) func(tree, int) (string, error) {
		return func(t tree, dose int) (string, error) {
			x := t.table("pool", pool)
			if x == nil {
				return "", fmt.Errorf("the text has no pool %q", pool)
			}
			return f(t, x, dose), nil
		}
	}
	widths := slices.DeleteFunc([]int{1, 2, 4, 8}, func(tp int) bool { return tp == max(1, p.Deployment.TP) })
	// as many GPUs, or the next whole replica
	replicas := func(tp int) int { return max(1, (p.Replicas*max(1, p.Deployment.TP)+tp-1)/tp) }
	list := []candidate{{name: "another TP degree", asks: "platform", doses: len(widths), scan: true, probe: true, edit: in(func(_ tree, x map[string]any, d int) string {
		tp := widths[d-1]
		x["tensor_parallel"], x["replicas"] = int64(tp), int64(replicas(tp))
		resize(x, replicas(tp))
		return fmt.Sprintf("tensor_parallel = %d, %s of %s", tp, plural(replicas(tp), "replica"), pool)
	})}}
	if gpus := alternatives(p.Deployment.GPU); len(gpus) > 0 {
		list = append(list, candidate{name: "another GPU", asks: "platform", doses: len(gpus), scan: true, unpriced: true, edit: in(func(_ tree, x map[string]any, d int) string {
			x["gpu"] = gpus[d-1]
			delete(x, "gpu_hour_usd")
			return fmt.Sprintf("gpu = %q; its price is not known here", gpus[d-1])
		})})
	}
	if p.Engine.Kind == "vllm" && p.Replicas > 1 && p.Autoscale == nil && p.MinPrompt+p.MaxPrompt == 0 && len(s.after.e.Pools) == 1 {
		shares := splits(p.Replicas)
		list = append(list, candidate{name: "P/D split", asks: "platform", doses: len(shares), scan: true, probe: true, edit: in(func(t tree, x map[string]any, d int) string {
			n := shares[d-1]
			prefill := clone(x).(map[string]any)
			x["role"], x["replicas"] = "decode", int64(p.Replicas-n)
			prefill["name"], prefill["role"], prefill["replicas"] = pool+"-prefill", "prefill", int64(n)
			t["pool"] = append(t["pool"].([]map[string]any), prefill)
			return fmt.Sprintf("%d of the %d replicas of %s for prompts, %d to decode", n, p.Replicas, pool, p.Replicas-n)
		})})
	}
	return append(list, s.priority(pool, p)...)
}

// resize keeps an autoscaler's bounds around a new number of replicas.
func resize(x map[string]any, replicas int) {
	if a, ok := x["autoscale"].(map[string]any); ok {
		a["max"] = max(number(a["max"]), int64(replicas))
		a["min"] = min(number(a["min"]), int64(replicas))
	}
}

// splits are the numbers of replicas that may compute prompts: a quarter to three
// quarters of them, at most five tries.
func splits(replicas int) []int {
	var out []int
	for _, share := range []float64{.5, .375, .625, .25, .75} {
		n := min(max(1, int(share*float64(replicas)+.5)), replicas-1)
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// alternatives are the measured GPUs with more memory bandwidth than the one in use,
// the least of them first.
func alternatives(now models.GPU) []string {
	var list []models.GPU
	for _, g := range models.GPUs() {
		if g.Measured() && g.BandwidthGBs > 1.05*now.BandwidthGBs {
			list = append(list, g)
		}
	}
	slices.SortStableFunc(list, func(a, b models.GPU) int {
		return int(a.BandwidthGBs - b.BandwidthGBs)
	})
	var out []string
	for _, g := range list {
		out = append(out, g.Name)
	}
	return out[:min(len(out), 2)]
}

// priority lets the classes that were there before go first. It needs a class of the
// launch's own: requests of one class have one priority.
func (s *search) priority(pool string, p sim.Pool) []candidate {
	_, name, _, class := s.subject()
	if class == nil || p.Engine.Kind != "vllm" || len(s.after.e.Traffic) < 2 {
		return nil
	}
	return []candidate{{name: "lower priority", asks: "business", doses: 1, edit: func(t tree, _ int) (string, error) {
		x, c := t.table("pool", pool), t.table("traffic", name)
		if x == nil || c == nil {
			return "", fmt.Errorf("the text has no pool %q or class %q", pool, name)
		}
		sub(x, "engine")["policy"] = "priority"
		c["priority"] = int64(1)
		return fmt.Sprintf("class %s goes behind the others: policy = \"priority\", priority = 1", name), nil
	}}}
}
