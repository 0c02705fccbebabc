package sim

import (
	"context"
	"math"
	"testing"

	"slosim/sim/clock"
	"slosim/sim/slo"
)

// The bill by hand: a run of two days of a period of four, 100 events a minute. On
// day 1 one in a hundred is bad, on day 2, which repeats, two: 1.75 % in all. A fee of
// 1,000 USD and 25 % below 99 % make 250 USD; exempting all of day 2's bad ones leaves
// 0.25 %, which is no breach.
func TestTheBillOfAPeriodByHand(t *testing.T) {
	const day = 1440
	a := slo.SLA{Target: .99, Period: 4 * clock.Day, FeeUSD: 1000, Credits: []slo.Credit{{Below: .99, Share: .25}, {Below: .95, Share: 1}}}
	r := slaRep{}
	for m := range 2 * day {
		bad := 1.0
		if m >= day {
			bad = 2
		}
		r.good, r.bad, r.excused = append(r.good, 100-bad), append(r.bad, bad), append(r.excused, 0)
	}
	b := &bills{sla: &a, span: 2 * day, length: 4 * day, repeat: true}
	x := b.of(&r, 0, 0)
	if len(x) != 1 || math.Abs(x[0].attained-.9825) > 1e-12 || x[0].credit*x[0].bill != 250 {
		t.Fatalf("%+v", x)
	}
	for m := day; m < 2*day; m++ {
		r.excused[m] = 2
	}
	if x = b.of(&r, 0, 0); math.Abs(x[0].bad-day) > 1e-9 || math.Abs(x[0].attained-(99+3*98)/(100+3*98.)) > 1e-12 || x[0].credit != 0 {
		t.Fatalf("%+v", x)
	}
	// Without a whole day the last phase's mean goes on: here day 2's.
	b.repeat, b.last = false, day
	if y := b.of(&r, 0, 0); math.Abs(y[0].attained-x[0].attained) > 1e-12 {
		t.Fatalf("%+v", y)
	}
	// Usage: 4 million tokens in 2 days at 10 USD a million are 80 USD in 4 days.
	a.USDPerMOut = 10
	if y := b.of(&r, 0, 4); math.Abs(y[0].bill-1080) > 1e-9 {
		t.Fatalf("%+v", y)
	}
	// Three periods of 16 hours: the last one is simulated in full.
	b = &bills{sla: &a, span: 2 * day, length: 960, repeat: true}
	if y := b.of(&r, 0, 0); len(y) != 3 || y[0].bad != 960 || y[1].bad+y[1].excused != 480+960 {
		t.Fatalf("%+v", y)
	}
}

// Each line of the table begins below its share, and the last that applies counts.
func TestCreditsFollowTheTable(t *testing.T) {
	a := slo.SLA{Credits: []slo.Credit{{Below: .999, Share: .1}, {Below: .99, Share: .25}, {Below: .95, Share: 1}}}
	for attained, want := range map[float64]float64{1: 0, .999: 0, .9989: .1, .99: .1, .9899: .25, .95: .25, .94: 1} {
		if got := a.CreditOf(attained); got != want {
			t.Errorf("%g: %g, want %g", attained, got, want)
		}
	}
	a.Maintenance = []slo.Maintenance{{At: clock.Hour, For: 10 * clock.Minute, Every: clock.Day}}
	for minute, want := range map[int]bool{59: false, 60: true, 69: true, 70: false, 1440 + 65: true, 1440 + 71: false} {
		if a.Maintained(minute) != want {
			t.Errorf("minute %d", minute)
		}
	}
}

// What a contract takes out is what happened: cancellations before the threshold had
// passed, not those after it; rejections over the limit; and good plus bad events are
// those of the objective.
func TestExemptionsTakeOutWhatTheyName(t *testing.T) {
	e := busyHour(t)
	e.Traffic[0].Client.Timeout = 20 * clock.Second
	base := slo.Objective{Class: "chat", Metric: slo.TTFT, Target: .99, Window: 30 * clock.Day}
	long, short := base, base
	long.Name, long.Threshold = "patient", 30*clock.Second // every cancellation comes before it
	short.Name, short.Threshold = "impatient", 5*clock.Second
	e.SLOs = []slo.Objective{long, short}
	e.Limits = []Limit{{Requests: 12, Burst: 5}}
	e.Traffic[0].Rate.Mean = 12
	sla := func(name, of string, exempt ...string) slo.SLA {
		return slo.SLA{Name: name, SLO: of, Target: .9, Period: 30 * clock.Minute, FeeUSD: 100, Credits: []slo.Credit{{Below: .9, Share: .5}}, Exempt: exempt}
	}
	e.SLAs = []slo.SLA{sla("a", "patient", slo.Cancelled), sla("b", "impatient", slo.Cancelled), sla("c", "patient", slo.OverLimit), sla("d", "patient")}
	var gone, rejected int64
	r, err := Run(context.Background(), e, Options{Workers: 1, Served: func(s Served) {
		if s.Send < 0 || s.Send >= clock.Time(e.Duration) || s.First != clock.Never {
			return
		}
		switch s.Outcome {
		case OutcomeTimedOut:
			gone++
		case OutcomeRejected:
			rejected++
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if gone == 0 || rejected == 0 {
		t.Fatalf("%d given up, %d rejected: the test proves nothing", gone, rejected)
	}
	for i, want := range []int64{gone, 0, rejected} {
		if got := r.SLAs[i].Excused[0].Bad; got != want {
			t.Errorf("%s: %d exempt, the rows show %d", r.SLAs[i].Name, got, want)
		}
	}
	s, d := &r.SLOs[0], &r.SLAs[3]
	if want := float64(s.Good) / float64(s.Good+s.Bad); math.Abs(d.Periods[0].Attained.V-want) > 1e-12 || d.Unexempted.V != d.Periods[0].Attained.V {
		t.Errorf("attained %g, the objective's events give %g", d.Periods[0].Attained.V, want)
	}
	if a := &r.SLAs[0]; a.Unexempted.V != d.Unexempted.V || a.Periods[0].Attained.V <= d.Periods[0].Attained.V {
		t.Errorf("%+v", a.Periods[0])
	}
}
