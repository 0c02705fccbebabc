package experiments

import (
	"fmt"
	"slices"

	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/clock"
)

// What starting a replica takes unless it is given (ENGINE §9 gives the ranges:
// provision 1–10 min, compilation 30–60 s, graph capture 10–40 s).
const (
	defaultProvision = 2 * clock.Minute
	defaultImage     = 30 * clock.Second
	defaultCompile   = 60 * clock.Second
	defaultWarmUp    = 10 * clock.Second
	defaultWeights   = 2e9 // bytes per second: the slowest of network, disk and PCIe
)

// fleet reads what a pool is in the cluster: who comes to it, what the gateway
// holds back, how it grows and breaks.
func (l *loader) fleet(t *config.Table, p *sim.Pool, known bool) {
	p.Router = config.Read(t, "router", config.OneOf(sim.Routers...), config.Default("least-outstanding", "the replica with the fewest requests in flight"))
	if sim.Polls(p.Router) {
		p.Stale = config.Read(t, "stale", config.Span, config.Default(200*clock.Millisecond, "between polls of the replicas' metrics (llm-d's default)"), config.Example[clock.Duration](`"200ms"`), config.Between(clock.Millisecond, clock.Hour))
	} else if t.Know("stale"); t.Has("stale") {
		t.Errorf("stale", "", `remove it, or take router = "least-load", "least-kv" or "prefix-aware"`, "stale has no meaning with router = %q, which polls nothing", p.Router)
	}
	p.Standby = config.Read(t, "standby", config.Bool, config.Default(false, "it takes requests of its classes"), config.Note[bool]("only what overflows or a rule sends"))
	p.MinPrompt = int32(config.Read(t, "min_prompt", config.WholeTokens, config.Default(0, "no bound"), config.Example[int]("8000"), config.Between(0, 1<<30)))
	p.MaxPrompt = int32(config.Read(t, "max_prompt", config.WholeTokens, config.Default(0, "no bound"), config.Example[int]("8000"), config.Between(0, 1<<30)))
	p.Uncached = config.Read(t, "uncached", config.Bool, config.Default(false, "prompts by their whole length"), config.Note[bool]("less what was sent before"))
	if p.MaxPrompt > 0 && p.MaxPrompt <= p.MinPrompt {
		t.Errorf("max_prompt", fmt.Sprintf("more than min_prompt, %d", p.MinPrompt), "", "max_prompt = %d leaves no prompt for pool %q", p.MaxPrompt, p.Name)
	}
	if p.Standby && ranged(p) {
		t.Errorf("standby", "false", "remove it, or the prompt range", "a pool that stands by takes no prompt range: it takes whatever is sent to it")
	}
	if p.Standby && len(p.Classes) > 0 {
		t.Errorf("classes", "", "remove them, or standby", "a pool that stands by has no classes: it takes whatever is sent to it")
	}
	if p.Role == prefill && t.Has("overflow") {
		t.Errorf("overflow", "", "let the decode pool overflow", "pool %q only prefills: it follows the decode pool, and overflows with it", p.Name)
	}
	if (p.MinPrompt > 0 || p.MaxPrompt > 0 || p.Standby) && p.Role != "" {
		t.Errorf("role", `"both"`, "remove it, or the prompt range", "a pool with a role takes no prompt range and stands by for nobody")
	}
	p.Zones = config.Read(t, "zones", config.Int, config.Default(1, "all replicas in one"), config.Note[int]("replicas are spread over them in turn"), config.Example[int]("3"), config.Between(1, 100))
	l.overflow(t, p)
	l.gate(t, p)
	l.wear(t, p)
	l.autoscale(t, p, known)
}

func (l *loader) overflow(t *config.Table, p *sim.Pool) {
	if !t.Has("overflow") {
		t.Know("overflow")
		return
	}
	sub := t.Sub("overflow", `overflow = { to = "spare", at = 50 }`)
	p.OverflowTo = config.Read(sub, "to", config.Text, config.Required, config.Note[string]("a pool, of another model perhaps"), config.Example[string](`"spare"`))
	p.OverflowAt = config.Read(sub, "at", config.Float, config.Required, config.Note[float64]("requests per serving replica"), config.Example[float64]("50"), config.Above(0, 1e9))
}

func (l *loader) gate(t *config.Table, p *sim.Pool) {
	if !t.Has("gate") {
		t.Know("gate")
		return
	}
	sub := t.Sub("gate", `gate = { in_flight = 200, queue = 500, timeout = "10s", order = "fair" }`)
	p.Gate.InFlight = config.Read(sub, "in_flight", config.Int, config.Default(0, "no limit: it holds back only while no replica serves"), config.Example[int]("200"), config.Between(0, 1<<30))
	p.Gate.Queue = config.Read(sub, "queue", config.Int, config.Default(0, "none waits: 429"), config.Example[int]("500"), config.Between(0, 1<<30))
	p.Gate.Timeout = config.Read(sub, "timeout", config.Span, config.Default(clock.Duration(0), "it waits for ever"), config.Example[clock.Duration](`"10s"`), config.Between(0, clock.Day))
	p.Gate.Order = config.Read(sub, "order", config.OneOf("fcfs", "priority", "fair"), config.Default("fcfs", "first come, first served; fair: by weight of the classes, in tokens"))
}

func (l *loader) wear(t *config.Table, p *sim.Pool) {
	if !t.Has("wear") {
		t.Know("wear")
		return
	}
	sub := t.Sub("wear", `wear = { mtbf = "264d", mttr = "2h" }`)
	// 419 unexpected interruptions of 16,384 H100 in 54 days (ENGINE §9): 4.74e-4 per
	// GPU and day; one dead GPU takes its whole replica.
	p.Wear.Together = config.Read(sub, "together", config.Int, config.Default(1, "each breaks for itself"), config.Note[int]("replicas of a node that break together"), config.Example[int]("8"), config.Between(1, maxReplicas))
	perDay := 4.74e-4 * float64(max(1, p.Deployment.GPUs())*p.Wear.Together)
	def := clock.FromSeconds(86400 / perDay)
	p.Wear.MTBF = config.Read(sub, "mtbf", config.Span, config.Default(def/clock.Hour*clock.Hour, "of what breaks together: 4.74e-4 faults per GPU and day (Llama 3 training on 16,384 H100)"), config.Example[clock.Duration](`"264d"`), config.Between(clock.Second, 100*maxSpan))
	p.Wear.MTTR = config.Read(sub, "mttr", config.Span, config.Default(2*clock.Hour, "assumption"), config.Example[clock.Duration](`"2h"`), config.Between(clock.Second, maxSpan))
	if !sub.Has("mttr") {
		l.assume.add("Pool %s: a broken replica is back after two hours on average.", p.Name)
	}
}

func (l *loader) autoscale(t *config.Table, p *sim.Pool, known bool) {
	if !t.Has("autoscale") {
		t.Know("autoscale")
		return
	}
	sub := t.Sub("autoscale", `autoscale = { metric = "concurrency", target = 40, min = 2, max = 10 }`)
	a := &sim.Autoscale{}
	a.Metric = config.Read(sub, "metric", config.OneOf("concurrency", "queue", "kv", "ttft", "rate", "schedule"), config.Default("concurrency", "requests in flight per replica"))
	if a.Metric == "schedule" {
		for _, s := range sub.List("schedule", `schedule = [{ at = "08:00", replicas = 8 }]`) {
			a.Schedule = append(a.Schedule, sim.ScheduledSize{
				At:       config.Read(s, "at", config.TimeOfDay, config.Required),
				Replicas: config.Read(s, "replicas", config.Int, config.Required, config.Example[int]("8"), config.Between(1, maxReplicas)),
			})
		}
		slices.SortStableFunc(a.Schedule, func(x, y sim.ScheduledSize) int { return int(x.At - y.At) })
		if len(a.Schedule) == 0 {
			sub.Errorf("metric", "", `add schedule = [{ at = "08:00", replicas = 8 }]`, `metric = "schedule" has no schedule`)
		}
		forbid(sub, "", `target has no meaning beside metric = "schedule"`, "target")
	} else {
		forbid(sub, "", `schedule belongs to metric = "schedule"`, "schedule")
		a.Target = config.Read(sub, "target", config.Float, config.Required, config.Note[float64]("per replica: requests; waiting requests; share of KV; share of the TTFT threshold; requests/s"), config.Example[float64]("40"), config.Above(0, 1e9))
	}
	if a.Metric == "kv" && a.Target > 1 {
		sub.Errorf("target", "more than 0, at most 1", "for 80 %: target = 0.8", "target = %g is no share of the KV blocks", a.Target)
	}
	checkSchedule(sub, a)
	a.Min = config.Read(sub, "min", config.Int, config.Default(1, ""), config.Example[int]("2"), config.Between(1, maxReplicas))
	a.Max = config.Read(sub, "max", config.Int, config.Required, config.Example[int]("10"), config.Between(1, maxReplicas))
	if a.Min > a.Max {
		sub.Errorf("min", fmt.Sprintf("at most max, %d", a.Max), "", "min = %d is more than max = %d", a.Min, a.Max)
	} else if p.Replicas < a.Min || p.Replicas > a.Max {
		t.Errorf("replicas", fmt.Sprintf("%d to %d, autoscale's min and max", a.Min, a.Max), "", "replicas = %d, where the pool starts, lies outside of min and max", p.Replicas)
	}
	a.Interval = config.Read(sub, "interval", config.Span, config.Default(15*clock.Second, "HPA's"), config.Example[clock.Duration](`"15s"`), config.Between(clock.Second, clock.Hour))
	a.Up = config.Read(sub, "stabilise_up", config.Span, config.Default(clock.Duration(0), "HPA's"), config.Example[clock.Duration](`"30s"`), config.Between(0, clock.Day))
	a.Down = config.Read(sub, "stabilise_down", config.Span, config.Default(5*clock.Minute, "HPA's"), config.Example[clock.Duration](`"5m"`), config.Between(0, clock.Day))
	a.StartUp = l.startUp(sub, p, known)
	a.Warm = config.Read(sub, "warm", config.Int, config.Default(0, "none"), config.Note[int]("replicas that need only warm_up"), config.Example[int]("1"), config.Between(0, maxReplicas))
	a.WarmUp = config.Read(sub, "warm_up", config.Span, config.Default(defaultWarmUp, "assumption: loaded, and woken up"), config.Example[clock.Duration](`"10s"`), config.Between(0, clock.Day))
	a.Lead = config.Read(sub, "lead", config.Span, config.Default(a.StartUp, `metric "rate": as long as a start-up takes`), config.Example[clock.Duration](`"5m"`), config.Between(0, clock.Day))
	p.Autoscale = a
}

// startUp reads how long a new replica takes until it serves.
func (l *loader) startUp(t *config.Table, p *sim.Pool, known bool) clock.Duration {
	parts := []string{"provision", "image", "weights_bandwidth", "compile"}
	if t.Has("start_up") {
		for _, key := range parts {
			forbid(t, "start_up", "start_up is the sum of the parts", key)
		}
		t.Know(parts...)
		return config.Read(t, "start_up", config.Span, config.Required, config.Example[clock.Duration](`"3m"`), config.Between(0, clock.Day))
	}
	var given bool
	for _, key := range parts {
		given = given || t.Has(key)
	}
	span := func(key string, def clock.Duration, what string) clock.Duration {
		return config.Read(t, key, config.Span, config.Default(def, "assumption: "+what), config.Example[clock.Duration](`"60s"`), config.Between(0, clock.Day))
	}
	d := span("provision", defaultProvision, "a node in a cloud") + span("image", defaultImage, "pulled over a fast network") + span("compile", defaultCompile, "compilation and graph capture")
	bandwidth := config.Read(t, "weights_bandwidth", config.Bandwidth, config.Default(defaultWeights, "assumption: the slowest of network, disk and PCIe"), config.Above(0.0, 1e15))
	if known {
		d += clock.FromSeconds(float64(p.Deployment.LLM.WeightBytes(p.Deployment.WeightDtype)) / bandwidth)
		t.Derived("start_up", config.Span.Format(d/clock.Second*clock.Second), "provision + image + weights ÷ weights_bandwidth + compile")
	} else {
		t.Know("start_up")
	}
	if !given {
		l.assume.add("Pool %s: a new replica serves after %s (node 2 min, image 30 s, weights at 2 GB/s, compilation 60 s).", p.Name, config.SpanText(d/clock.Second*clock.Second))
	}
	return d
}

// limit reads what the gateway admits of a class.
func (l *loader) limit(t *config.Table) {
	var x sim.Limit
	if t.Has("limit") {
		sub := t.Sub("limit", `limit = { requests = "10/s", tokens = 50000, in_flight = 100, max_prompt = 32000 }`)
		x.Requests = config.Read(sub, "requests", config.Rate, config.Default(0.0, "no limit"), config.Example[float64](`"10/s"`), config.Between(0, maxRate))
		x.Tokens = config.Read(sub, "tokens", config.Float, config.Default(0.0, "no limit"), config.Note[float64]("prompt and output, per second"), config.Example[float64]("50000"), config.Between(0.0, 1e12))
		x.Burst = config.Read(sub, "burst", config.Span, config.Default(clock.Second, "of either rate may be saved up"), config.Example[clock.Duration](`"5s"`), config.Between(clock.Millisecond, clock.Day)).Seconds()
		x.InFlight = config.Read(sub, "in_flight", config.Int, config.Default(0, "no limit"), config.Example[int]("100"), config.Between(0, 1<<30))
		x.MaxPrompt = int32(config.Read(sub, "max_prompt", config.WholeTokens, config.Default(0, "no limit"), config.Example[int]("32000"), config.Between(0, 1<<30)))
		x.Weight = config.Read(sub, "weight", config.Float, config.Default(1.0, `share at a gate with order = "fair"`), config.Example[float64]("3"), config.Above(0, 1e6))
		if x.Requests > 0 && x.Requests*x.Burst < 1 {
			sub.Errorf("burst", fmt.Sprintf("at least %s", config.SpanText(clock.FromSeconds(1/x.Requests))), "", "requests = %s with burst = %s never lets one request through", config.RateText(x.Requests), config.SpanText(clock.FromSeconds(x.Burst)))
		}
	} else {
		t.Know("limit")
	}
	l.e.Limits = append(l.e.Limits, x)
}

// cluster reads what happens to the cluster as a whole.
func (l *loader) cluster(faults []*config.Table) {
	for _, t := range faults {
		l.fault(t)
	}
	for _, t := range l.rollouts {
		l.rollout(t)
	}
	for _, t := range l.rules {
		l.rule(t)
	}
	if !slices.ContainsFunc(l.e.Limits, func(x sim.Limit) bool { return x != sim.Limit{Burst: 1, Weight: 1} && x != sim.Limit{} }) {
		l.e.Limits = nil
	}
	l.checkFleet()
}

func (l *loader) find(name string) *sim.Pool {
	k := slices.IndexFunc(l.e.Pools, func(p sim.Pool) bool { return p.Name == name })
	if k < 0 {
		return nil
	}
	return &l.e.Pools[k]
}

// poolNamed returns the pool of a name, or reports that there is none.
func (l *loader) poolNamed(t *config.Table, key, name string) *sim.Pool {
	if p := l.find(name); p != nil || name == "" {
		return p
	}
	var names []string
	for _, p := range l.e.Pools {
		names = append(names, p.Name)
	}
	unknown(t, key, name, "no [[pool]] has this name", names)
	return nil
}

// onePool reads the pool of a table; it may be left out where there is only one.
func (l *loader) onePool(t *config.Table) *sim.Pool {
	if len(l.e.Pools) == 1 && !t.Has("pool") {
		t.Know("pool")
		return &l.e.Pools[0]
	}
	return l.poolNamed(t, "pool", config.Read(t, "pool", config.Text, config.Required, config.Example[string](`"main"`)))
}

func (l *loader) fault(t *config.Table) {
	x := sim.Fault{}
	name(t, "name", `"one down"`)
	p := l.onePool(t)
	x.At = config.Read(t, "at", config.Span, config.Default(clock.Duration(0), "from the start"), config.Example[clock.Duration](`"1h"`), config.Between(0, maxSpan))
	x.For = config.Read(t, "for", config.Span, config.Default(clock.Duration(0), "to the end"), config.Example[clock.Duration](`"30m"`), config.Between(0, maxSpan))
	if t.Has("zone") {
		forbid(t, "zone", "all replicas of the zone are hit", "replicas")
		t.Know("replicas")
		x.Zone = config.Read(t, "zone", config.Int, config.Required, config.Example[int]("1"), config.Between(1, 100))
		if p != nil && x.Zone > p.Zones {
			t.Errorf("zone", fmt.Sprintf("1 to %d", p.Zones), "raise zones of the pool", "pool %q has %s, and zone = %d", p.Name, count(p.Zones, "zone"), x.Zone)
		}
	} else {
		t.Know("zone")
		x.Replicas = config.Read(t, "replicas", config.Int, config.Default(1, "N − 1"), config.Example[int]("1"), config.Between(1, maxReplicas))
		if p != nil && x.Replicas > p.Limit() {
			t.Errorf("replicas", fmt.Sprintf("1 to %d", p.Limit()), "", "pool %q has only %s", p.Name, count(p.Limit(), "replica"))
		}
	}
	x.Slow = config.Read(t, "slow", config.Float, config.Default(0.0, "they are gone"), config.Note[float64]("steps take so many times as long"), config.Example[float64]("1.3"),
		config.Where(func(v float64) bool { return v == 0 || v > 1 && v <= 100 }, "is no slowness", "more than 1, at most 100", ""))
	if x.Cut = config.Read(t, "cut", config.Bool, config.Default(false, "they break down"), config.Note[bool]("they run, but the network to them is gone: their requests fail, their caches stay")); x.Cut && x.Slow > 0 {
		t.Errorf("cut", "", "make two faults of it", "a replica that nobody reaches is not slow: cut and slow exclude each other")
	}
	if p != nil {
		x.Pool = p.Name
	}
	if x.At >= l.e.Duration && l.e.Duration > 0 {
		t.Warnf("at", "", "at = %s is after the end of the run: it never happens", config.SpanText(x.At))
	}
	l.e.Faults = append(l.e.Faults, x)
}

func (l *loader) rollout(t *config.Table) {
	name(t, "name", `"upgrade"`)
	x := sim.Rollout{}
	p := l.onePool(t)
	x.At = config.Read(t, "at", config.Span, config.Required, config.Example[clock.Duration](`"1h"`), config.Between(0, maxSpan))
	x.Batch = config.Read(t, "batch", config.Int, config.Default(1, "replica at a time"), config.Example[int]("1"), config.Between(1, maxReplicas))
	x.Drain = config.Read(t, "drain", config.Span, config.Default(5*clock.Minute, "then what is left fails"), config.Example[clock.Duration](`"5m"`), config.Between(0, clock.Day))
	x.Down = config.Read(t, "down", config.Span, config.Default(3*clock.Minute, "assumption: restart, weights, compilation"), config.Example[clock.Duration](`"3m"`), config.Between(0, clock.Day))
	if p != nil {
		x.Pool = p.Name
		if x.Batch >= p.Replicas && p.Replicas > 0 {
			all := fmt.Sprintf("all %d replicas", p.Replicas)
			if p.Replicas == 1 {
				all = "the only replica"
			}
			t.Warnf("batch", "take fewer at a time", "batch = %d restarts %s of pool %q at once: nobody serves meanwhile", x.Batch, all, p.Name)
		}
	}
	l.e.Rollouts = append(l.e.Rollouts, x)
}

func (l *loader) rule(t *config.Table) {
	r := sim.Rule{Name: name(t, "name", `"shed the free tier"`)}
	r.Signal = config.Read(t, "signal", config.OneOf("misses", "burn", "queue", "kv"), config.Required, config.Note[string]("bad share or burn rate of an slo; waiting requests per replica or KV use of a pool"))
	if r.Signal == "queue" || r.Signal == "kv" {
		forbid(t, "", "slo and window belong to the signals misses and burn", "slo", "window")
		t.Know("slo", "window")
		if p := l.onePool(t); p != nil {
			r.Pool = p.Name
		}
	} else {
		forbid(t, "", "pool belongs to the signals queue and kv", "pool")
		t.Know("pool")
		r.SLO = config.Read(t, "slo", config.Text, config.Required, config.Example[string](`"chat TTFT"`))
		var names []string
		for _, o := range l.e.SLOs {
			names = append(names, o.Name)
		}
		if r.SLO != "" && !slices.Contains(names, r.SLO) {
			unknown(t, "slo", r.SLO, "no [[slo]] has this name", names)
		}
		r.Window = config.Read(t, "window", config.Span, config.Default(5*clock.Minute, "of the events that are looked at"), config.Example[clock.Duration](`"5m"`), config.Between(clock.Minute, 30*clock.Day))
	}
	r.Above = config.Read(t, "above", config.Float, config.Required, config.Note[float64]("it begins"), config.Example[float64]("14.4"), config.Between(0.0, 1e9))
	r.Below = config.Read(t, "below", config.Float, config.Default(r.Above/2, "it ends: half of above"), config.Example[float64]("1"), config.Between(0.0, 1e9))
	if r.Below > r.Above {
		t.Errorf("below", fmt.Sprintf("at most above, %g", r.Above), "", "below = %g is more than above = %g: the rule would end where it begins", r.Below, r.Above)
	}
	l.checkRule(t, &r)
	r.Action = config.Read(t, "action", config.OneOf("shed", "cap", "route"), config.Required)
	r.Class = config.Read(t, "classes", config.Texts, config.Required, config.Example[[]string](`["free"]`))
	for _, c := range r.Class {
		if !l.hasClass(c) {
			unknown(t, "classes", c, "no [[traffic]] has this class", l.classNames())
		}
	}
	if len(r.Class) == 0 && t.Has("classes") {
		t.Errorf("classes", l.quotedClasses(), "name the classes that it is about", "a rule without classes does nothing")
	}
	if r.Action == "cap" {
		r.Cap = int32(config.Read(t, "cap", config.WholeTokens, config.Required, config.Note[int]("output tokens"), config.Example[int]("256"), config.Between(1, 1<<30)))
	} else {
		forbid(t, "", `cap belongs to action = "cap"`, "cap")
		t.Know("cap")
	}
	if r.Action == "route" {
		r.To = config.Read(t, "to", config.Text, config.Required, config.Example[string](`"small model"`))
		if p := l.poolNamed(t, "to", r.To); p != nil && p.Role != "" {
			t.Errorf("to", `a pool with role = "both"`, "", "pool %q has a role: it serves no whole request", p.Name)
		}
		r.Over = int32(config.Read(t, "min_prompt", config.WholeTokens, config.Default(0, "every prompt"), config.Note[int]("only prompts of at least so many tokens"), config.Example[int]("8000"), config.Between(0, 1<<30)))
	} else {
		forbid(t, "", `to and min_prompt belong to action = "route"`, "to", "min_prompt")
		t.Know("to", "min_prompt")
	}
	l.e.Rules = append(l.e.Rules, r)
}
