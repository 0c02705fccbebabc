package slo

import (
	"math"
	"testing"

	"slosim/sim/clock"
)

// step is a ledger with a clean start and a constant bad share e from minute at.
func step(minutes, at, perMinute int, e float64) *Ledger {
	l := NewLedger(clock.Duration(minutes) * clock.Minute)
	for m := range minutes {
		bad := 0
		if m >= at {
			bad = int(math.Round(e * float64(perMinute)))
		}
		l.Bad[m] = int64(bad)
		l.Good[m] = int64(perMinute - bad)
	}
	return l
}

// After a step error an alert fires within one evaluation minute of
// t = factor·(1 − target)·window/e.
func TestAlertsFireAtTheClosedFormTime(t *testing.T) {
	const at, perMinute = 5000, 10_000
	for _, target := range []float64{0.99, 0.999} {
		for _, e := range []float64{0.02, 0.05, 0.2, 1} {
			l := step(at+5*1440, at, perMinute, e)
			fired := map[string]clock.Time{}
			for _, f := range NewBurn(l, target, nil).Alerts(StandardPairs) {
				fired[f.Pair.Name()] = f.Fired
			}
			for _, p := range StandardPairs {
				want := p.DetectionTime(target, e)
				got, ok := fired[p.Name()]
				if math.IsInf(want, 1) {
					if ok {
						t.Errorf("%s at %g %%: fired, should not", p.Name(), 100*e)
					}
					continue
				}
				delay := got.Sub(clock.Time(at * clock.Minute)).Seconds()
				if !ok || delay < want-1e-6 || delay > want+60+1e-6 {
					t.Errorf("target %g, %s at %g %%: fired after %.0f s, closed form %.0f s", target, p.Name(), 100*e, delay, want)
				}
			}
		}
	}
}

// An error right at the start is diluted by the clean history before t = 0.
func TestHistoryBeforeTheStartIsClean(t *testing.T) {
	l := step(120, 0, 100, 1)
	b := NewBurn(l, 0.99, func(d clock.Duration) float64 { return d.Seconds() / 60 * 100 })
	if rate, n := b.Rate(5, clock.Hour); math.Abs(rate-10) > 1e-9 || n != 6000 {
		t.Fatalf("burn %v over %v events, want 6 bad minutes of 60 = 10x over 6000", rate, n)
	}
}

func TestFewEventsFireNoAlert(t *testing.T) {
	if f := NewBurn(step(600, 300, 3, 1), 0.99, nil).Alerts(StandardPairs[:1]); len(f) != 0 {
		t.Fatalf("%+v from 15 events in the short window", f)
	}
}

// 10 M requests at 99.9 %: 10,000 bad events; 43.2 minutes a month.
func TestBudgetArithmetic(t *testing.T) {
	if b := (1 - 0.999) * 10e6; math.Abs(b-10_000) > 1e-6 {
		t.Fatal(b)
	}
	if m := (1 - 0.999) * (30 * clock.Day).Seconds() / 60; math.Abs(m-43.2) > 1e-9 {
		t.Fatal(m)
	}
	// 10 bad per minute from minute 1440 on, budget 28,800: half of it is gone
	// a day later, all of it two days later.
	l := NewLedger(2 * clock.Day)
	for m := 1440; m < 2880; m++ {
		l.Bad[m] = 10
	}
	o := Look(l, 28_800, 30*clock.Day, 0, Forecast{Repeat: true})
	day := clock.Time(clock.Day)
	if o.Marks[0] != 2*day || o.Marks[2] != 3*day || math.Abs(o.Spent-0.5) > 1e-9 || math.Abs(o.Projected-14.5) > 1e-6 || !o.WeekAlarm {
		t.Fatalf("marks %v, spent %v, projected %v", o.Marks, o.Spent, o.Projected)
	}
	if want := day + day + clock.Time(1440*6*clock.Minute/10); o.Marks[1] != want {
		t.Fatalf("80 %% at %v, want %v", o.Marks[1], want)
	}
	if o := Look(l, 28_800, 30*clock.Day, 0.25, Forecast{}); o.Projected != -1 || o.Marks[0] != clock.Time(1.5*float64(day)) || o.Marks[2] != clock.Never {
		t.Fatalf("%+v", o.Marks)
	}
}

// Good and bad spread evenly: the week alarm needs 80 % within seven days.
func TestWeekAlarm(t *testing.T) {
	for _, c := range []struct {
		share float64
		want  bool
	}{{2.5, false}, {4, true}} {
		l := NewLedger(clock.Day)
		for m := range l.Bad {
			l.Bad[m] = 1
		}
		budget := 30 * 1440 / c.share
		if o := Look(l, budget, 30*clock.Day, 0, Forecast{Repeat: true}); o.WeekAlarm != c.want {
			t.Errorf("%g budgets a month: alarm %v", c.share, o.WeekAlarm)
		}
	}
}
