package review

import (
	"context"
	"fmt"
	"math"
	"slices"

	"slosim/internal/report"
	"slosim/sim"
)

// What common random numbers gain: the variance of the difference of two worlds with
// independent draws, Var(a) + Var(b), over that of the paired difference, Var(a − b).
// Both come from the same replications. 4 means that unpaired worlds would need four
// times the replications for the same interval.

// varianceFrom is the first replication that variances are taken on.
const varianceFrom = 3001

// Gain is the variance ratio of one comparison.
type Gain struct {
	Name         string `json:"name"` // "before and after", or a lever
	Hours        string `json:"hours"`
	Replications int    `json:"replications"`
	SLO          string `json:"slo"`
	Bad          Number `json:"bad_share"`   // ratio of the objective's bad share
	Quantile     Number `json:"at_target"`   // of the quantile at its target; null: not finite
	Mean         Number `json:"ttft_mean"`   // of the mean TTFT of the answered requests
	Correlation  Number `json:"correlation"` // of the bad shares of the two worlds
}

// ratio returns (Var a + Var b) / Var(a − b) and the correlation of a and b; +Inf when
// they are the same, NaN when nothing varies or a value is not finite.
func ratio(a, b []float64) (gain, correlation float64) {
	n := min(len(a), len(b))
	var ma, mb float64
	for i := range n {
		ma += a[i] / float64(n)
		mb += b[i] / float64(n)
	}
	var va, vb, cov float64
	for i := range n {
		va += (a[i] - ma) * (a[i] - ma)
		vb += (b[i] - mb) * (b[i] - mb)
		cov += (a[i] - ma) * (b[i] - mb)
	}
	switch d := va + vb - 2*cov; {
	case n < 2 || !(va+vb > 0) || math.IsInf(va+vb, 0):
		return math.NaN(), math.NaN()
	case d <= 1e-12*(va+vb): // the same, request by request
		return math.Inf(1), 1
	default:
		return (va + vb) / d, cov / math.Sqrt(va*vb)
	}
}

// gain compares two worlds by objective k of the second one.
func gain(name, hours string, a, b *world, k int) Gain {
	g := Gain{Name: name, Hours: hours, Replications: min(len(a.reps), len(b.reps)), SLO: b.e.SLOs[k].Name}
	i := sloLike(a.e, b.e, k)
	if i < 0 {
		i = k
	}
	bad, rho := ratio(a.badShares(i), b.badShares(k))
	q, _ := ratio(a.each(quantileOf(i)), b.each(quantileOf(k)))
	mean := func(w *world, k int) []float64 {
		return w.of(w.e.SLOs[k].Class, "all", func(c *sim.ClassPhase) float64 { return c.Answered.Mean.V })
	}
	m, _ := ratio(mean(a, i), mean(b, k))
	g.Bad, g.Quantile, g.Mean, g.Correlation = Number(bad), Number(q), Number(m), Number(rho)
	return g
}

// variances measures what pairing gains for each lever, at its dose, in the searched
// hours.
func (s *search) variances(ctx context.Context, n int) error {
	run := func(e sim.Experiment) (*world, error) {
		reps, err := s.lab.all(ctx, s.hours(e), varianceFrom, varianceFrom+n)
		return &world{e, reps}, err
	}
	after, err := run(s.after.e)
	if err != nil {
		return err
	}
	add := func(name string, a, b *world) {
		for _, k := range s.broken {
			s.review.Gains = append(s.review.Gains, gain(name, s.review.Hours, a, b, k))
		}
	}
	before, err := run(s.before.e)
	if err != nil {
		return err
	}
	add(beforeAfter, before, after)
	for i := range s.review.Levers {
		l := &s.review.Levers[i]
		e, err := s.full(l)
		if err != nil {
			continue
		}
		w, err := run(e)
		if err != nil {
			return err
		}
		add(l.Name, after, w)
	}
	return nil
}

const beforeAfter = "before and after"

// MedianGain returns the median of a ratio over the levers and the objectives that the
// change breaks; NaN without any.
func (r *Review) MedianGain(of func(*Gain) Number) float64 {
	var list []float64
	for i := range r.Gains {
		g := &r.Gains[i]
		if v := float64(of(g)); g.Name != beforeAfter && !math.IsNaN(v) {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// gainGrid shows what common random numbers gain.
func (r *Review) gainGrid() report.Grid {
	g := report.Grid{Caption: "What common random numbers gain", Left: 2, Head: []string{"comparison", "objective", "bad share", "at target", "mean TTFT", "correlation", "replications"}}
	ratio := func(v Number) string {
		switch {
		case math.IsNaN(float64(v)):
			return "–"
		case math.IsInf(float64(v), 1):
			return "∞"
		}
		return report.Number(math.Round(float64(v)*100)/100) + "×"
	}
	for _, x := range r.Gains {
		g.Rows = append(g.Rows, []string{x.Name + ", " + x.Hours, x.SLO, ratio(x.Bad), ratio(x.Quantile), ratio(x.Mean), report.Number(math.Round(float64(x.Correlation)*100) / 100), report.Whole(int64(x.Replications))})
	}
	g.Notes = []string{"Variance of unpaired differences over that of paired ones, from the same replications: 4× means that unpaired worlds would need four times as many."}
	median := func(of func(*Gain) Number) string { return ratio(Number(r.MedianGain(of))) }
	if bad := median(func(g *Gain) Number { return g.Bad }); bad != "–" {
		g.Notes = append(g.Notes, fmt.Sprintf("Medians over the levers: bad share %s, at target %s, mean TTFT %s. Where one of the worlds has next to no bad requests the other one holds nearly all of the variance, and there is nothing to gain.",
			bad, median(func(g *Gain) Number { return g.Quantile }), median(func(g *Gain) Number { return g.Mean })))
	}
	return g
}

// gainGrids is the table where there is anything in it.
func (r *Review) gainGrids() []report.Grid {
	if len(r.Gains) == 0 {
		return nil
	}
	return []report.Grid{r.gainGrid()}
}
