package slo

import (
	"math"
	"testing"

	"slosim/sim/clock"
)

// kinds are the events in order, with their minutes.
func kinds(events []PolicyEvent) (names []string, minutes []int) {
	for _, e := range events {
		names = append(names, e.Kind)
		minutes = append(minutes, int(e.At/clock.Time(clock.Minute)))
	}
	return names, minutes
}

func check(t *testing.T, events []PolicyEvent, names []string, minutes []int) {
	t.Helper()
	gotNames, gotMinutes := kinds(events)
	if len(gotNames) != len(names) {
		t.Fatalf("%v at %v, want %v at %v", gotNames, gotMinutes, names, minutes)
	}
	for i := range names {
		if gotNames[i] != names[i] || gotMinutes[i] != minutes[i] {
			t.Fatalf("%v at %v, want %v at %v", gotNames, gotMinutes, names, minutes)
		}
	}
}

// One bad event a minute for 100 minutes, a budget of 100, a window of 200: the
// marks pass after 50, 80 and 100 minutes. The freeze lifts in a rolling window when
// fewer than 80 are left in it, 22 minutes after the first one has gone; a calendar
// window starts anew at its end.
func TestPolicyByHand(t *testing.T) {
	l := NewLedger(600 * clock.Minute)
	for m := range 100 {
		l.Bad[m] = 1
	}
	o := &Objective{Target: .99, Window: 200 * clock.Minute, Rolling: true}
	check(t, Events(l, o, 100, false, o.Window), []string{Warned, Frozen, Stopped, Lifted}, []int{50, 80, 100, 221})
	o.Rolling = false
	check(t, Events(l, o, 100, false, o.Window), []string{Warned, Frozen, Stopped, NewStart}, []int{50, 80, 100, 200})
	o.Policy = Policy{10, 20, 90}
	check(t, Events(l, o, 100, false, o.Window), []string{Warned, Frozen, Stopped, NewStart}, []int{10, 20, 90, 200})
	o.Policy, o.Spent = Policy{}, .4
	check(t, Events(l, o, 100, false, o.Window)[:3], []string{Warned, Frozen, Stopped}, []int{10, 40, 60})
}

// After its last whole day repeats, the policy's marks are those of the projection.
func TestPolicyProjects(t *testing.T) {
	l := NewLedger(clock.Day)
	for m := range l.Bad {
		l.Bad[m] = 1
	}
	o := &Objective{Target: .99, Window: 30 * clock.Day}
	events := Events(l, o, 2880, true, o.Window)
	check(t, events, []string{Warned, Frozen, Stopped}, []int{1440, 2304, 2880})
	if events[0].Projected || !events[1].Projected {
		t.Fatal("the second day is projected, the first is not")
	}
}

func TestWeeklyReviewByHand(t *testing.T) {
	l := NewLedger(10 * clock.Day)
	for m := range l.Bad {
		l.Good[m], l.Bad[m] = 98, 2
	}
	weeks := Weeks(l, &Objective{Target: .99}, 2*10080)
	if len(weeks) != 2 || weeks[0].Bad != 2*10080 || weeks[1].To != clock.Time(10*clock.Day) || math.Abs(weeks[0].Spent-1) > 1e-12 || math.Abs(weeks[1].Burn-2) > 1e-12 {
		t.Fatalf("%+v", weeks)
	}
}

// After a step error that has filled its short window ends, an alert ends within
// one evaluation minute of (1 − factor·(1 − target)/e)·short.
func TestAlertsEndAtTheClosedFormTime(t *testing.T) {
	const at, perMinute, target = 5000, 10_000, .99
	own := Pair{2 * clock.Hour, 20 * clock.Minute, 8, "page"}
	for _, e := range []float64{.2, .5, 1} {
		for _, p := range append([]Pair{own}, StandardPairs...) {
			// The error ends an hour after both windows have seen enough.
			last := at + int(p.DetectionTime(target, e)/60) + int(p.Short/clock.Minute) + 1
			l := step(last+5*1440, at, perMinute, e)
			for m := last; m < len(l.Bad); m++ {
				l.Good[m], l.Bad[m] = perMinute, 0
			}
			fired := NewBurn(l, target, nil).Alerts([]Pair{p})
			if len(fired) != 1 {
				t.Fatalf("%s at %g: %d firings", p.Name(), e, len(fired))
			}
			want := p.ResetTime(target, e)
			if got := fired[0].Resolved.Sub(clock.Time(last) * clock.Time(clock.Minute)).Seconds(); got < want-1e-6 || got > want+60+1e-6 {
				t.Errorf("%s at %g: ends %.0f s after the error, closed form %.0f s", p.Name(), e, got, want)
			}
		}
	}
}

func TestGuardOfFewEvents(t *testing.T) {
	l := step(600, 300, 30, 1)
	if len(NewBurn(l, .99, nil).Alerts(StandardPairs[:1])) != 1 || len(NewBurn(l, .99, nil).Guard(1000).Alerts(StandardPairs[:1])) != 0 {
		t.Fatal("150 events in five minutes are enough for a guard of 20, not of 1000")
	}
}
