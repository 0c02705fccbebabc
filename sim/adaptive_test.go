package sim

import (
	"context"
	"sort"
	"strings"
	"testing"

	"slosim/sim/clock"
	"slosim/sim/slo"
)

// adaptiveHour has one objective that stands and one per controller.
func adaptiveHour(t testing.TB) Experiment {
	e := busyHour(t)
	o := slo.Objective{Name: "stands", Class: "chat", Metric: slo.TTFT, Threshold: clock.Second, Target: .95, Window: clock.Hour}
	e.SLOs = []slo.Objective{o}
	add := func(a slo.Adaptive) {
		o.Name, o.Adaptive = a.By, &a
		a.Min, a.Max, a.Every, a.Step = 500*clock.Millisecond, 3*clock.Second, 2*clock.Minute, .1
		e.SLOs = append(e.SLOs, o)
	}
	add(slo.Adaptive{By: "budget", Low: .25, High: .75})
	add(slo.Adaptive{By: "traffic", Low: 1, High: 3, Notice: clock.Minute})
	add(slo.Adaptive{By: "feedback", Low: .02, High: .1, Voices: .5, Bearable: 2 * clock.Second})
	return e
}

// Every request is judged by the threshold that was in force when it was sent: the bad
// ones are those that the log of adjustments and the requests' rows give. Thresholds
// stay within their bounds, and each adjustment begins where the last one ended.
func TestRequestsAreJudgedByTheThresholdInForce(t *testing.T) {
	e := adaptiveHour(t)
	type row struct {
		send clock.Time
		ttft clock.Duration
	}
	var rows []row
	r, err := Run(context.Background(), e, Options{Workers: 1, Served: func(s Served) {
		if s.Send < 0 || s.Send >= clock.Time(e.Duration) || s.Outcome == OutcomeUndecided {
			return
		}
		d := clock.Duration(1 << 60)
		if s.First != clock.Never {
			d = s.First.Sub(s.Send)
		}
		rows = append(rows, row{s.Send, d})
	}})
	if err != nil {
		t.Fatal(err)
	}
	late := r.Phases[0].Classes[0].Outcomes.Late
	for i := range r.SLOs {
		s := &r.SLOs[i]
		from := s.Objective.Threshold
		for _, a := range s.Adjusted {
			x := s.Adaptive
			if a.From != from || a.To < x.Min || a.To > x.Max || a.InForce.Sub(a.At) != x.Notice || a.Reason == "" {
				t.Errorf("%s: %+v after %s", s.Name, a, from)
			}
			from = a.To
		}
		bad := int64(0)
		for _, x := range rows {
			limit := s.Objective.Threshold
			if k := sort.Search(len(s.Adjusted), func(k int) bool { return s.Adjusted[k].InForce > x.send }); k > 0 {
				limit = s.Adjusted[k-1].To
			}
			if x.ttft > limit {
				bad++
			}
		}
		t.Logf("%s: %d adjustments, %d bad", s.Name, len(s.Adjusted), bad)
		if s.Bad < bad || s.Bad > bad+late || bad == 0 {
			t.Errorf("%s: %d bad, the rows give %d and %d late ones", s.Name, s.Bad, bad, late)
		}
		if adapts := s.Adaptive != nil; adapts != (len(s.Adjusted) > 0) {
			t.Errorf("%s: %d adjustments", s.Name, len(s.Adjusted))
		}
	}
}

// The controllers by hand: plenty left tightens, nearly spent relaxes, in between
// nothing; half way between the rates lies half way between the bounds; users who
// complain tighten; too few ratings say nothing; and no bound is passed.
func TestControllersByHand(t *testing.T) {
	ms := clock.Millisecond
	a := slo.Adaptive{By: "budget", Min: 900 * ms, Max: 1100 * ms, Step: .2, Low: .25, High: .75}
	for _, c := range []struct {
		spent float64
		want  clock.Duration
	}{{.1, 900 * ms}, {.5, 1000 * ms}, {.8, 1100 * ms}} {
		if got, why := a.Next(1000*ms, slo.Signal{Spent: c.spent}); got != c.want || (why == "") != (got == 1000*ms) {
			t.Errorf("%g spent: %s, %q", c.spent, got, why)
		}
	}
	a = slo.Adaptive{By: "traffic", Min: 1000 * ms, Max: 3000 * ms, Step: .1, Low: 2, High: 6}
	for rate, want := range map[float64]clock.Duration{1: 1000 * ms, 4: 2000 * ms, 9: 3000 * ms} {
		if got, _ := a.Next(1500*ms, slo.Signal{Rate: rate}); got != want {
			t.Errorf("%g/s: %s", rate, got)
		}
	}
	if got, why := a.Next(2000*ms, slo.Signal{Rate: 4.1}); got != 2000*ms || why != "" {
		t.Errorf("a small move is announced: %s, %s", got, why)
	}
	a = slo.Adaptive{By: "feedback", Min: 500 * ms, Max: 3000 * ms, Step: .1, Low: .02, High: .1}
	for _, c := range []struct {
		n, bad int64
		want   clock.Duration
	}{{100, 20, 900 * ms}, {100, 5, 1000 * ms}, {100, 1, 1100 * ms}, {19, 19, 1000 * ms}} {
		if got, why := a.Next(1000*ms, slo.Signal{Ratings: c.n, Bad: c.bad}); got != c.want || c.want < 1000*ms && !strings.Contains(why, "tightened") {
			t.Errorf("%d of %d: %s, %q", c.bad, c.n, got, why)
		}
	}
}
