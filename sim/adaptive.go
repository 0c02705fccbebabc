package sim

import (
	"fmt"
	"sort"

	"slosim/sim/clock"
	"slosim/sim/rng"
	"slosim/sim/slo"
)

// Adaptive objectives: a control process moves their thresholds, and every request is
// judged by the one that was in force when it was sent.

// promise is an adaptive objective's threshold over time.
type promise struct {
	at     []clock.Time // ascending; the first one is before every request
	limit  []clock.Duration
	log    []slo.Adjustment
	voices rng.Source
	ratings
}

// ratings are what users said.
type ratings struct{ n, bad int64 }

// on returns the threshold in force at t.
func (p *promise) on(t clock.Time) clock.Duration {
	k := len(p.at) - 1
	if t < p.at[k] {
		k = sort.Search(len(p.at), func(i int) bool { return p.at[i] > t }) - 1
	}
	return p.limit[max(k, 0)]
}

// addPromises prepares the adaptive objectives; without any there is nothing to ask
// for per request.
func (r *recorder) addPromises(seed uint64) {
	for k := range r.plan.exp.SLOs {
		o := &r.plan.exp.SLOs[k]
		if o.Adaptive == nil {
			continue
		}
		if r.promises == nil {
			r.promises = make([]*promise, len(r.plan.exp.SLOs))
			for i := range r.ledgers {
				r.ledgers[i].sure = -1
			}
		}
		r.promises[k] = &promise{
			at: []clock.Time{-1 << 62}, limit: []clock.Duration{o.Threshold},
			voices: rng.New(seed, rng.Rating, o.Name),
		}
	}
}

// limit returns the threshold that a request is judged by.
func (r *recorder) limit(k int32, f *flight) clock.Duration {
	if r.promises == nil {
		return r.plan.exp.SLOs[k].Threshold
	}
	return r.promised(k, f.req.Send)
}

func (r *recorder) promised(k int32, sent clock.Time) clock.Duration {
	if p := r.promises[k]; p != nil {
		return p.on(sent)
	}
	return r.plan.exp.SLOs[k].Threshold
}

// rate lets the user of a request that was decided at a time say what it was like.
func (r *recorder) rate(k int32, f *flight, at clock.Time, stage int) {
	p, a := r.promises[k], r.plan.exp.SLOs[k].Adaptive
	if p == nil || a.By != "feedback" || p.voices.Float64(f.req.Index) >= a.Voices {
		return
	}
	p.n++
	if stage >= rejectedStage || at.Sub(f.req.Send) > a.Bearable {
		p.bad++
	}
}

// adapt lets the controllers look, those whose time it is.
func (c *cluster) adapt(now clock.Time) {
	for _, m := range c.policy.meters {
		a := c.plan.exp.SLOs[m.slo].Adaptive
		if a == nil || clock.Duration(now)%a.Every != 0 || now >= clock.Time(c.plan.exp.Duration) {
			continue
		}
		p := c.rec.promises[m.slo]
		sent := c.requestsOf(m.slo)
		s := slo.Signal{
			Spent: m.used, Rate: float64(sent-c.policy.sent[m.slo]) / a.Every.Seconds(),
			Ratings: p.n - c.policy.rated[m.slo].n, Bad: p.bad - c.policy.rated[m.slo].bad,
		}
		c.policy.sent[m.slo], c.policy.rated[m.slo] = sent, p.ratings
		from := p.limit[len(p.limit)-1]
		to, why := a.Next(from, s)
		if why == "" {
			continue
		}
		force := now.Add(a.Notice)
		p.at, p.limit = append(p.at, force), append(p.limit, to)
		p.log = append(p.log, slo.Adjustment{At: now, InForce: force, From: from, To: to, Reason: why})
		c.note(now, fmt.Sprintf("threshold of %q: %s instead of %s%s: %s", c.plan.exp.SLOs[m.slo].Name, seconds(to.Seconds()), seconds(from.Seconds()), noticeText(a.Notice), why))
	}
}

func noticeText(d clock.Duration) string {
	if d == 0 {
		return ""
	}
	return ", in force " + d.String() + " later"
}

// requestsOf counts the requests of an objective's class so far.
func (c *cluster) requestsOf(k int) int64 {
	n := int64(0)
	for g := range c.rec.cells {
		if c.plan.exp.Traffic[c.plan.groups[g].class].Name == c.plan.exp.SLOs[k].Class {
			for ph := range c.rec.cells[g] {
				n += c.rec.cells[g][ph].n
			}
		}
	}
	return n
}

// adjustments returns what became of an objective's threshold, and its mean over the
// span; the threshold itself where it stands still.
func (r *recorder) adjustments(k int) ([]slo.Adjustment, float64) {
	if r.promises == nil || r.promises[k] == nil {
		return nil, r.plan.exp.SLOs[k].Threshold.Seconds()
	}
	p, end, sum := r.promises[k], clock.Time(r.plan.exp.Duration), 0.0
	for i := range p.at {
		from, to := max(p.at[i], 0), end
		if i+1 < len(p.at) {
			to = min(p.at[i+1], end)
		}
		sum += max(0, to.Sub(min(from, end)).Seconds()) * p.limit[i].Seconds()
	}
	return p.log, sum / r.plan.exp.Duration.Seconds()
}
