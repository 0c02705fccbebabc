package sim

import (
	"fmt"
	"slices"

	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// SLA is what a promise that was sold costs.
type SLA struct {
	slo.SLA
	Class      string
	Internal   float64        // target of the objective whose events it counts
	Periods    []SLAPeriod    // from t = 0 to the end of the one that the run ends in
	Bill       stats.Estimate // USD, all periods
	Payout     stats.Estimate // USD, all periods: credits that are due
	Unexempted stats.Estimate // share of good events before exemptions, all periods
	Excused    []Excused
	Basis      string // how much of the periods was simulated, and what stands for the rest
}

// SLAPeriod is one period of the bill.
type SLAPeriod struct {
	From, To  clock.Time
	Simulated float64        // share of its minutes
	Attained  stats.Estimate // share of good events, exemptions aside
	Credit    stats.Estimate // share of the bill that is due
	Payout    stats.Estimate // USD
	Breached  int            // replications that attain less than was promised
	Tiers     []int          // replications per line of the table, the first: none applies
}

// Excused is how many bad events an exemption takes out, all replications.
type Excused struct {
	Name string
	Bad  int64
}

// excuses are the bad events of an SLA that do not count against it.
type excuses struct {
	slo     int32
	exempt  map[string]bool
	minutes []int64
	by      map[string]int64
}

// slaRep is an SLA in one replication.
type slaRep struct {
	good, bad, excused []float64 // per minute
	by                 map[string]int64
}

func (r *recorder) addExcuses() {
	for i := range r.plan.exp.SLAs {
		a := &r.plan.exp.SLAs[i]
		x := &excuses{slo: int32(r.plan.sloNamed(a.SLO)), exempt: map[string]bool{}, by: map[string]int64{}}
		for _, name := range a.Exempt {
			x.exempt[name] = true
		}
		x.minutes = make([]int64, len(slo.NewLedger(r.plan.exp.Duration).Bad))
		r.excuses = append(r.excuses, x)
	}
}

// excuse takes a bad event, decided at a time and known to be bad at another, out of
// the SLAs that exempt it.
func (r *recorder) excuse(k int32, f *flight, decided, known clock.Time, stage int) {
	name := r.exemption(k, f, decided, stage)
	if name == "" {
		return
	}
	for _, x := range r.excuses {
		if x.slo == k && x.exempt[name] {
			x.minutes[min(max(0, int(known/clock.Time(clock.Minute))), len(x.minutes)-1)]++
			x.by[name]++
		}
	}
}

// exemption names what a bad event of an objective may be excused by; "" = nothing.
func (r *recorder) exemption(k int32, f *flight, decided clock.Time, stage int) string {
	switch stage {
	case rejectedStage:
		switch r.refusal {
		case RefusedRate, RefusedTokens, RefusedInFlight, RefusedLength:
			return slo.OverLimit
		case RefusedShed:
			return slo.Shed
		case RefusedTooLong:
			return slo.TooLong
		}
	case timedOutStage:
		if limit := r.limit(k, f); limit == 0 || decided.Sub(f.req.Send) <= limit {
			return slo.Cancelled
		}
	}
	return ""
}

// slaReps returns the events of the SLAs, minute by minute.
func (r *recorder) slaReps() []slaRep {
	var out []slaRep
	for i, x := range r.excuses {
		if x.slo < 0 {
			out = append(out, slaRep{})
			continue
		}
		l, a := r.ledgers[x.slo].minutes, &r.plan.exp.SLAs[i]
		rep := slaRep{by: x.by}
		maintained := int64(0)
		for m := range l.Good {
			good, bad, excused := l.Good[m], l.Bad[m], x.minutes[m]
			if a.Maintained(m) {
				maintained += bad - excused
				good, excused = 0, bad
			}
			rep.good = append(rep.good, float64(good))
			rep.bad = append(rep.bad, float64(bad))
			rep.excused = append(rep.excused, float64(excused))
		}
		if len(a.Maintenance) > 0 {
			rep.by[maintenanceName] = maintained
		}
		out = append(out, rep)
	}
	return out
}

const maintenanceName = "maintenance"

// slas combines the replications of what was sold.
func (p *plan) slas(reps []*rep, r *Result) []SLA {
	var out []SLA
	for i, a := range p.exp.SLAs {
		k := p.sloNamed(a.SLO)
		if k < 0 {
			continue
		}
		o := &p.exp.SLOs[k]
		s := SLA{SLA: a, Class: o.Class, Internal: o.Target}
		bill := newBills(p, &a, k, r.End)
		list := make([][]billed, len(reps))
		for j, rep := range reps {
			in, out := p.tokens(rep, o.Class)
			list[j] = bill.of(&rep.slas[i], in, out)
		}
		for n := range bill.periods() {
			s.Periods = append(s.Periods, bill.period(list, n))
		}
		total := func(f func(b billed) float64) []float64 {
			return over(list, func(l []billed) float64 {
				sum := 0.0
				for _, b := range l {
					sum += f(b)
				}
				return sum
			})
		}
		s.Bill = stats.Of(total(func(b billed) float64 { return b.bill }), int64(len(reps)))
		s.Payout = stats.Of(total(func(b billed) float64 { return b.bill * b.credit }), int64(len(reps)))
		good, bad := total(func(b billed) float64 { return b.good }), total(func(b billed) float64 { return b.bad + b.excused })
		for j := range good {
			good[j] /= good[j] + bad[j]
		}
		s.Unexempted = stats.Share(good, s.Bill.N)
		s.Payout.Lo, s.Bill.Lo = max(0, s.Payout.Lo), max(0, s.Bill.Lo)
		s.Payout.Hi = max(s.Payout.V, min(s.Payout.Hi, s.Bill.Hi*a.Credits[len(a.Credits)-1].Share)) // no more can be due
		names := slices.Clone(a.Exempt)
		if len(a.Maintenance) > 0 {
			names = append(names, maintenanceName)
		}
		for _, name := range names {
			s.Excused = append(s.Excused, Excused{name, sumOf(reps, func(rep *rep) int64 { return rep.slas[i].by[name] })})
		}
		s.Basis = bill.basis()
		out = append(out, s)
	}
	return out
}

// tokens returns the millions of prompt and output tokens that were served of a class
// in one replication.
func (p *plan) tokens(r *rep, class string) (in, out float64) {
	for c := range p.exp.Traffic {
		if p.exp.Traffic[c].Name != class {
			continue
		}
		for k := range r.pools {
			in += float64(r.pools[k].use[c].in) / 1e6
			out += float64(r.pools[k].use[c].out) / 1e6
		}
	}
	return in, out
}

// bills makes the bills of an SLA's periods out of a run that may be shorter.
type bills struct {
	sla    *slo.SLA
	span   int  // minutes of the run
	length int  // minutes of a period
	repeat bool // the run's last whole day repeats after its end; else its last phase's mean goes on
	last   int  // first minute of the last phase
	phase  string
}

// billed is one period in one replication.
type billed struct{ good, bad, excused, bill, credit, attained float64 }

func newBills(p *plan, a *slo.SLA, k int, end clock.Time) *bills {
	minute := clock.Time(clock.Minute)
	b := &bills{sla: a, span: max(1, int((end+minute-1)/minute)), length: int(a.Period / clock.Minute)}
	cut := end < clock.Time(p.exp.Duration)
	b.repeat = p.needs() == "" && !cut
	ph := len(p.phases) - 1
	for ph > 0 && p.phases[ph].from >= end {
		ph--
	}
	b.last, b.phase = min(int(p.phases[ph].from/minute), b.span-1), p.phases[ph].name
	return b
}

// periods is how many periods the run touches.
func (b *bills) periods() int { return (b.span + b.length - 1) / b.length }

// basis says what the periods are made of.
func (b *bills) basis() string {
	rest := b.periods()*b.length - b.span
	run := clock.Duration(b.span) * clock.Minute
	if rest == 0 {
		return fmt.Sprintf("simulated in full: %s", run)
	}
	of := clock.Duration(b.periods()*b.length) * clock.Minute
	if b.repeat {
		return fmt.Sprintf("%s of %s simulated; for the rest the run's last day repeats", run, of)
	}
	return fmt.Sprintf("%s of %s simulated; for the rest every minute is taken to be like the mean of phase %q, which holds no whole day: read it as what such hours would cost all month", run, of, b.phase)
}

// of makes the bills of one replication.
func (b *bills) of(r *slaRep, in, out float64) []billed {
	const day = int(clock.Day / clock.Minute)
	span := min(b.span, len(r.good))
	sum := func(list []float64, from, to int) float64 {
		s := 0.0
		for _, v := range list[from:to] {
			s += v
		}
		return s
	}
	mean := func(list []float64) float64 { return sum(list, b.last, span) / float64(span-b.last) }
	good, bad, excused := mean(r.good), mean(r.bad), mean(r.excused)
	events := sum(r.good, 0, span) + sum(r.bad, 0, span)
	usage := (in*b.sla.USDPerMIn + out*b.sla.USDPerMOut) / max(1, events) // USD per event
	var list []billed
	for n := range b.periods() {
		x := billed{}
		for m := n * b.length; m < (n+1)*b.length; m++ {
			k := m
			if m >= span && b.repeat && span >= day {
				k = span - day + (m-span)%day
			}
			g, w, e := good, bad, excused
			if k < span {
				g, w, e = r.good[k], r.bad[k], r.excused[k]
			}
			if m >= span && b.sla.Maintained(m) {
				x.bill += (g + w) * usage
				continue
			}
			x.good += g
			x.bad += w - e
			x.excused += e
			x.bill += (g + w) * usage
		}
		x.bill += b.sla.FeeUSD
		x.attained = 1
		if x.good+x.bad > 0 {
			x.attained = x.good / (x.good + x.bad)
		}
		x.credit = b.sla.CreditOf(x.attained)
		list = append(list, x)
	}
	return list
}

// period combines one period over the replications.
func (b *bills) period(list [][]billed, n int) SLAPeriod {
	at := func(f func(x billed) float64) []float64 {
		return over(list, func(l []billed) float64 { return f(l[n]) })
	}
	minute := clock.Time(clock.Minute)
	out := SLAPeriod{From: clock.Time(n*b.length) * minute, To: clock.Time((n+1)*b.length) * minute, Tiers: make([]int, len(b.sla.Credits)+1)}
	out.Simulated = float64(min(b.span, (n+1)*b.length)-n*b.length) / float64(b.length)
	events := int64(0)
	for _, l := range list {
		events += int64(l[n].good + l[n].bad)
		tier := 0
		for i, c := range b.sla.Credits {
			if l[n].attained < c.Below {
				tier = i + 1
			}
		}
		out.Tiers[tier]++
		if l[n].attained < b.sla.Target {
			out.Breached++
		}
	}
	out.Attained = stats.Share(at(func(x billed) float64 { return x.attained }), events)
	out.Credit = stats.Share(at(func(x billed) float64 { return x.credit }), int64(len(list)))
	out.Payout = stats.Of(at(func(x billed) float64 { return x.credit * x.bill }), int64(len(list)))
	out.Payout.Lo = max(0, out.Payout.Lo)
	return out
}
