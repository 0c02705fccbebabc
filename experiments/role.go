package experiments

import (
	"fmt"
	"slices"

	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/clock"
)

// Roles of pools; "" is both.
const (
	prefill = "prefill"
	decode  = "decode"
)

// defaultLink is one 400 Gbit/s NIC per replica.
const defaultLink = 50e9

// roles reads a role; "both" is the empty one.
var roles = config.Unit[string]{
	Name: "a role", Allowed: `"both", "prefill", "decode"`, Example: `"decode"`,
	Parse: func(v any) (string, error) {
		one := config.OneOf("both", prefill, decode)
		s, err := one.Parse(v)
		if s == "both" {
			s = ""
		}
		return s, err
	},
	Format: func(s string) string {
		if s == "" {
			s = "both"
		}
		return fmt.Sprintf("%q", s)
	},
}

// link reads the network of a pool that hands KV over or takes it.
func (l *loader) link(pool *config.Table, name, role string) sim.Link {
	if role == "" {
		pool.Know("link")
		if pool.Has("link") {
			pool.Errorf("link", "", `remove it, or set role = "prefill" or "decode"`, "link has no meaning without a role: a pool that prefills and decodes sends no KV")
			pool.Sub("link", "").Skip()
		}
		return sim.Link{}
	}
	t := pool.Sub("link", `link = { bandwidth = "50GB/s", latency = "5ms" }`)
	link := sim.Link{BytesPerS: config.Read(t, "bandwidth", config.Bandwidth, config.Default(defaultLink, "one 400 Gbit/s NIC per replica, each way (ENGINE §5.5)"),
		config.Above(0.0, 1e15))}
	if role == prefill {
		forbid(t, "", `latency, overlap and min_tokens belong to the link of the decode pool, which has the last word on a hand-over`, "latency", "overlap", "min_tokens")
		return link
	}
	link.Latency = config.Read(t, "latency", config.Span, config.Default(clock.Duration(0), "assumption: the proxy's hop and the set-up of a transfer take no time"),
		config.Example[clock.Duration](`"5ms"`), config.Between(0, clock.Minute))
	if !t.Has("latency") {
		l.assume.add("Pool %s: a hand-over from prefill to decode takes the transfer alone (latency = 0s); the proxy's hop and the set-up come on top.", name)
	}
	link.Overlap = config.Read(t, "overlap", config.Bool, config.Default(false, "KV is sent when the whole prompt is computed"))
	link.MinTokens = int32(config.Read(t, "min_tokens", config.WholeTokens, config.Default(0, "every prompt is handed over"), config.Example[int]("2000"), config.Between(0, 1<<30)))
	return link
}

// checkRole reports a role that the engine cannot have.
func checkRole(t *config.Table, p *sim.Pool) {
	if kind := p.Engine.Kind; p.Role != "" && kind != "" && kind != vllm {
		t.Errorf("role", `"both" with this engine`, `remove it, or set engine = { kind = "vllm" }`, "role = %q: only kind = \"vllm\" hands KV over here, not %q", p.Role, kind)
	}
}

// speculative reads speculative decoding, which runs in step with the GPU.
func (r *engineReader) speculative() {
	t := r.t.Sub("speculative", `speculative = { drafts = 3, acceptance = "70%", draft_time = "0.8ms" }`)
	r.e.SpecDrafts = int32(config.Read(t, "drafts", config.Int, config.Required, config.Note[int]("per step, verified together"), config.Example[int]("3"), config.Between(1, 16)))
	r.e.SpecAccept = config.Read(t, "acceptance", config.Share, config.Required, config.Note[float64]("of each draft, independently: an assumption until measured on your traffic"),
		config.Example[float64](`"70%"`), config.Where(func(v float64) bool { return v >= 0 && v < 1 }, "is out of range", `"0%" to less than "100%"`, ""))
	r.e.SpecDraftTime = config.Read(t, "draft_time", config.Span, config.Required, config.Note[clock.Duration]("of one draft, for the whole batch"),
		config.Example[clock.Duration](`"0.8ms"`), config.Between(0, clock.Second))
	r.l.assume.add("Pool %s: every draft is accepted with the same probability, whatever the text and the drafts before it.", r.p.Name)
	if !r.t.Has("async") {
		r.t.Derived("async", "false", "speculation runs in step with the GPU: no async scheduling")
		return
	}
	if config.Read(r.t, "async", config.Bool, config.Required) {
		r.t.Errorf("async", "false beside speculative", "remove async, or remove speculative", "async = true has no meaning beside speculative: a step is known only when the drafts before it are verified")
	}
}

// assignPrompts settles who computes the prompts of a decode pool's classes:
// exactly one prefill pool each. assignClasses has settled who decodes.
func (l *loader) assignPrompts() {
	for i := range l.e.Pools {
		p, t := &l.e.Pools[i], l.pools[i]
		switch p.Role {
		case decode:
			for _, c := range l.served(p) {
				l.checkFeeder(t, p, c)
			}
		case prefill:
			for _, c := range l.served(p) {
				if !l.decoded(c) {
					t.Errorf("role", "", fmt.Sprintf(`add a pool with role = "decode" and classes = [%q], or remove the role`, c), "pool %q only prefills, and no pool with role = \"decode\" serves class %q", p.Name, c)
				}
			}
		}
	}
}

// checkFeeder reports a class of a decode pool without a prefill pool that fits
// it. That there is only one, assign has checked.
func (l *loader) checkFeeder(t *config.Table, d *sim.Pool, class string) {
	k := slices.IndexFunc(l.e.Pools, func(p sim.Pool) bool { return p.Role == prefill && slices.Contains(l.served(&p), class) })
	if k < 0 {
		t.Errorf("role", "", fmt.Sprintf(`add a pool with role = "prefill" and classes = [%q], or remove the role`, class), "pool %q only decodes, and no pool with role = \"prefill\" serves class %q", d.Name, class)
		return
	}
	f := &l.e.Pools[k]
	if a, b := f.Deployment.LLM.Name, d.Deployment.LLM.Name; a != b && a != "" && b != "" {
		t.Errorf("model", "", "give both the same model", "pool %q decodes %s, but pool %q prefills class %q with %s", d.Name, b, f.Name, class, a)
	}
	if a, b := f.Deployment.KVDtype, d.Deployment.KVDtype; a != b {
		t.Errorf("kv_dtype", "", "give both the same kv_dtype", "pool %q has kv_dtype = %q, but pool %q, which prefills class %q, has %q", d.Name, b, f.Name, class, a)
	}
}

// served returns the classes of a pool: all of them if it names none.
func (l *loader) served(p *sim.Pool) []string {
	if len(p.Classes) > 0 {
		return p.Classes
	}
	var all []string
	for _, c := range l.e.Traffic {
		if c.Name != "" {
			all = append(all, c.Name)
		}
	}
	return all
}
