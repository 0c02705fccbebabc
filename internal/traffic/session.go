package traffic

import (
	"container/heap"

	"slosim/sim/clock"
	"slosim/sim/rng"
	"slosim/workloads"
)

// turn is the next request of a session.
type turn struct {
	at      clock.Time
	session int64
	number  int32
	left    int32
	context int32
}

// turns is a heap by time, then session.
type turns []turn

func (t turns) Len() int { return len(t) }
func (t turns) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].session < t[j].session
}
func (t turns) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *turns) Push(x any)   { *t = append(*t, x.(turn)) }
func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// drawSessions is Draw for a class of sessions, as if answers took no time: a turn
// follows the one before it after the think time. Sessions have the turns and
// lengths that a run under the seed has.
func drawSessions(c *workloads.Class, changes []workloads.Change, start clock.Duration, seed uint64, from, to clock.Time, f func(at clock.Time, r *workloads.Request)) error {
	shaper, err := workloads.NewShaper(c, changes, seed)
	if err != nil {
		return err
	}
	count, err := c.Session.Turns.Compile()
	if err != nil {
		return err
	}
	think := func(int64) clock.Duration { return 0 }
	if c.Session.Think.Kind != "" && c.Session.Think.Mean+c.Session.Think.Max > 0 {
		l, err := c.Session.Think.Compile()
		if err != nil {
			return err
		}
		draws := rng.New(seed, rng.Think, c.Stream)
		think = func(i int64) clock.Duration { return clock.FromSeconds(max(0, l.Quantile(draws.Float64(i)))) }
	}
	begins, counts := rng.New(seed, rng.SessionBegin, c.Stream), rng.New(seed, rng.SessionTurns, c.Stream)
	share := 1 / count.MeanTurns()
	arrivals := workloads.NewArrivals(c, workloads.NewIntensity(c, changes, start), seed, from, to)
	next, i, more := arrivals.Next()
	var waiting turns
	var r workloads.Request
	for {
		switch {
		case more && next < to && (len(waiting) == 0 || next <= waiting[0].at):
			if begins.Float64(i) < share {
				heap.Push(&waiting, turn{at: next, session: i, left: min(count.At(counts.Float64(i)), workloads.MaxTurns)})
			}
			next, i, more = arrivals.Next()
			continue
		case len(waiting) == 0 || waiting[0].at >= to:
			return nil
		}
		x := heap.Pop(&waiting).(turn)
		shaper.Turn(x.session, x.number, x.context, 0, x.at, &r)
		if most := c.Session.MaxContext; most > 0 && r.Prompt > most && x.context > 0 {
			shaper.Turn(x.session, x.number, 0, 1, x.at, &r)
			x.context = 0
		}
		r.Cached = max(x.context, r.Chain.GroupUnits*r.Chain.UnitSize) // what was said before, or the system prompt
		f(x.at, &r)
		if x.left--; x.left > 0 {
			x.number++
			x.context = r.Prompt + r.Output
			x.at = x.at.Add(think(r.Index))
			heap.Push(&waiting, x)
		}
	}
}
