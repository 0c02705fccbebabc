package sim

import (
	"fmt"
	"slices"

	"slosim/sim/clock"
	"slosim/sim/kernel"
	"slosim/sim/slo"
)

// Rule is one line of a degradation policy: while its signal is high its action is
// in force. It begins above Above and ends below Below.
type Rule struct {
	Name         string
	Signal       string  // "misses": bad share of SLO over Window; "burn": its burn rate; "queue": requests waiting per replica; "kv": share of KV blocks
	SLO          string  // of "misses" and "burn"
	Pool         string  // of "queue" and "kv"
	Above, Below float64 // hysteresis
	Window       clock.Duration

	Action string   // "shed", "cap", "route"
	Class  []string // whom it is about
	Cap    int32    // "cap": most output tokens
	To     string   // "route": the pool that takes them
	Over   int32    // "route": only prompts of at least so many tokens
}

// ruleInterval is how often the policy is looked at.
const ruleInterval = 10 * clock.Second

// inForce is what the rules do at the moment, per class.
type inForce struct {
	shed bool
	cap  int32
	to   int32 // pool; −1 = as usual
	over int32 // to: only prompts of at least so many tokens
}

// degrade is the body of the control process that applies the rules.
func (c *cluster) degrade(p *kernel.Process) {
	rules := c.plan.exp.Rules
	on := make([]bool, len(rules))
	told := p.Now() >= 0
	for {
		p.Sleep(ruleInterval)
		if !told && p.Now() >= 0 { // the timeline begins with what is in force
			told = true
			for k := range rules {
				if on[k] {
					c.note(p.Now(), fmt.Sprintf("rule %q is in force since before the start", rules[k].Name))
				}
			}
		}
		for k := range rules {
			r := &rules[k]
			v := c.signal(p.Now(), r)
			if !on[k] && v > r.Above || on[k] && v < r.Below {
				on[k] = !on[k]
				verb := "ends"
				if on[k] {
					verb = "begins"
				}
				c.note(p.Now(), fmt.Sprintf("rule %q %s: %s is %.3g", r.Name, verb, r.Signal, v))
			}
		}
		c.apply(on)
	}
}

// apply sets what the rules in force amount to: the first one that names a class
// and an action decides.
func (c *cluster) apply(on []bool) {
	for class := range c.plan.exp.Traffic {
		d := inForce{to: -1}
		for k := len(on) - 1; k >= 0; k-- {
			r := &c.plan.exp.Rules[k]
			if !on[k] || !slices.Contains(r.Class, c.plan.exp.Traffic[class].Name) {
				continue
			}
			switch r.Action {
			case "shed":
				d.shed = true
			case "cap":
				d.cap = r.Cap
			case "route":
				d.to, d.over = int32(c.plan.poolNamed(r.To)), r.Over
			}
		}
		c.force[class] = d
		c.degraded = c.degraded || d != inForce{to: -1}
	}
}

// signal measures what a rule looks at.
func (c *cluster) signal(now clock.Time, r *Rule) float64 {
	switch r.Signal {
	case "queue", "kv":
		f := &c.pools[c.plan.poolNamed(r.Pool)]
		sum := 0.0
		for _, i := range f.ups {
			l := f.replicas[i].Load(now)
			if r.Signal == "kv" {
				sum += float64(l.Blocks) / float64(l.Total)
			} else {
				sum += float64(l.Waiting)
			}
		}
		if r.Signal == "queue" {
			sum += float64(f.gate.waiting)
		}
		return sum / float64(max(1, len(f.ups)))
	}
	k := c.plan.sloNamed(r.SLO)
	good, bad := c.rec.ledgers[k].minutes.Between(now.Add(-r.Window), now)
	bad += c.overdue(now, k, r.Window)
	if good+bad == 0 {
		return 0
	}
	share := float64(bad) / float64(good+bad)
	if r.Signal == "burn" {
		return share / (1 - c.plan.exp.SLOs[k].Target)
	}
	return share
}

// overdue counts the requests of an objective that wait for their first token beyond
// its threshold, since less than the window: misses that no ledger knows of yet.
func (c *cluster) overdue(now clock.Time, k int, window clock.Duration) int64 {
	o := &c.plan.exp.SLOs[k]
	if o.Metric != slo.TTFT {
		return 0
	}
	n := int64(0)
	for i := range c.flights {
		f := &c.flights[i]
		if !f.live || f.dead || !f.counted() || f.first != clock.Never || !slices.Contains(c.plan.goals[f.at.group].ttft, int32(k)) {
			continue
		}
		if late := now.Sub(f.req.Send.Add(c.rec.limit(int32(k), f))); late > 0 && late <= window {
			n++
		}
	}
	return n
}

func (p *plan) poolNamed(name string) int {
	return slices.IndexFunc(p.exp.Pools, func(o Pool) bool { return o.Name == name })
}

// watchTTFT lets the recorder keep the newest TTFTs where an autoscaler looks at them.
func (c *cluster) watchTTFT() {
	for k := range c.plan.exp.Pools {
		a := c.plan.exp.Pools[k].Autoscale
		if a == nil || a.Metric != "ttft" {
			continue
		}
		c.rec.recent = make([]*recentTTFT, len(c.plan.exp.Traffic))
		for i := range c.rec.recent {
			c.rec.recent[i] = &recentTTFT{}
		}
		for g := range c.rec.cells {
			for ph := range c.rec.cells[g] {
				c.rec.cells[g][ph].recent = c.rec.recent[c.plan.groups[g].class]
			}
		}
	}
}

func (p *plan) sloNamed(name string) int {
	for k := range p.exp.SLOs {
		if p.exp.SLOs[k].Name == name {
			return k
		}
	}
	return -1
}

// ttftLevel is the highest P90 of the last minute's TTFT among a pool's objectives,
// as a share of the threshold: 1 is at the limit.
func (c *cluster) ttftLevel(f *fleet) float64 {
	level := 0.0
	for i, o := range c.plan.exp.SLOs {
		for k := range c.plan.exp.Traffic {
			if o.Metric == slo.TTFT && c.plan.exp.Traffic[k].Name == o.Class && c.plan.serves(k, f.index) {
				limit := o.Threshold
				if c.rec.promises != nil {
					limit = c.rec.promised(int32(i), c.loop.Now())
				}
				level = max(level, c.rec.recent[k].p90(c.loop.Now())/limit.Seconds())
			}
		}
	}
	return level
}

// recentTTFT keeps the newest TTFTs of a class for the autoscaler.
type recentTTFT struct {
	at   [512]clock.Time
	ttft [512]clock.Duration
	n    int
}

func (r *recentTTFT) add(at clock.Time, d clock.Duration) {
	k := r.n % len(r.at)
	r.at[k], r.ttft[k] = at, d
	r.n++
}

// p90 returns the P90 of the last minute, in seconds; 0 without any.
func (r *recentTTFT) p90(now clock.Time) float64 {
	var list []clock.Duration
	for k := range min(r.n, len(r.at)) {
		if now.Sub(r.at[k]) <= clock.Minute {
			list = append(list, r.ttft[k])
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[(len(list)-1)*9/10].Seconds()
}
