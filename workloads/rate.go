package workloads

import (
	"math"
	"slices"
	"sort"

	"slosim/sim/clock"
	"slosim/sim/rng"
)

// Rate is the arrival rate over time, per second: Mean times every shape that is
// set, plus the rates of Add.
type Rate struct {
	Mean         float64        // requests per second; what it averages over, each shape says
	Shape        string         // "constant", "diurnal", "hourly" or "windows"
	Peak         clock.Duration // time of day of the maximum (diurnal)
	PeakToTrough float64        // maximum ÷ minimum (diurnal), ≥ 1; Mean is over 24 h
	Hours        []float64      `json:",omitempty"` // hourly: factors at the 24 full hours, linear in between; their mean is 1
	Windows      []Window       `json:",omitempty"` // windows: factors from a time on, in order; the first also holds before it

	Weekdays []float64 `json:",omitempty"` // 7 factors, Monday first
	Growth   float64   `json:",omitempty"` // per week, compounding: ×(1 + Growth)^(t/week)
	Ramps    []Ramp    `json:",omitempty"`
	Ladder   Ladder    `json:",omitzero"`

	Bursts       []Burst      // in order of At
	RandomBursts RandomBursts `json:",omitzero"`
	Regimes      []Regime     `json:",omitempty"` // Markov-modulated: two or more

	Add []Rate `json:",omitempty"` // further rates on top, with shapes of their own

	Burstiness float64  // shape of the gamma gaps: 1 = Poisson, CV² = 1/Burstiness
	Hawkes     Hawkes   `json:",omitzero"`
	Clients    []Caller `json:",omitempty"` // independent renewal processes that share out the rate
	// Requests > 0: the arrival rule of "vllm bench serve": that many gaps from the
	// start of the run on, scaled so that the last arrival comes at Requests/Mean.
	Requests int64 `json:",omitempty"`
}

// Burst multiplies the rate by Factor during [At, At+Length), and again every
// Every when that is > 0.
type Burst struct {
	At, Length, Every clock.Duration
	Factor            float64
}

// Window is a factor that holds from At on.
type Window struct {
	At     clock.Duration
	Factor float64
}

// Ramp takes a factor from 1 at At to Factor at At+Length, linearly; it stays.
type Ramp struct {
	At, Length clock.Duration
	Factor     float64
}

// Ladder adds Step times Mean at At and again after each Every, Steps times.
type Ladder struct {
	At, Every clock.Duration
	Step      float64
	Steps     int
}

// RandomBursts come as a Poisson process. A burst lasts Length seconds and adds
// Factor − 1 times the rate; bursts may overlap.
type RandomBursts struct {
	PerSecond float64
	Length    Dist // seconds
	Factor    Dist
}

// Regime is a state of a Markov-modulated rate. It lasts an exponential time; the
// next one is any other, all alike. Factors are relative to their mean over time.
type Regime struct {
	Factor float64
	Length clock.Duration // mean
}

// Hawkes makes arrivals excite further ones: each has Branching direct offspring
// on average, at exponential distances of mean Decay. The rate over time stays
// what the shapes say; over long windows the variance of counts is
// 1/(1 − Branching)² times their mean.
type Hawkes struct {
	Branching float64 // 0 to below 1
	Decay     clock.Duration
}

// Caller is one of many clients: a share of the rate over time, with gaps of its
// own.
type Caller struct {
	Windows []Window // factors: requests per second
	Gaps    []Gap    // one per window
}

// Gap is a distribution of gaps: gamma or Weibull of a shape; CV 1 at shape 1.
type Gap struct {
	Shape   float64
	Weibull bool
}

// at returns the rate at t, without bursts that are drawn.
func (r *Rate) at(t clock.Time, start clock.Duration) float64 {
	v := r.Mean
	week := clock.Duration(t) + start // since Monday 00:00
	switch r.Shape {
	case "diurnal":
		a := (r.PeakToTrough - 1) / (r.PeakToTrough + 1)
		v *= 1 + a*math.Cos(2*math.Pi*(week-r.Peak).Seconds()/86400)
	case "hourly":
		v *= hourly(r.Hours, week)
	case "windows":
		v *= windowAt(r.Windows, t)
	}
	if len(r.Weekdays) == 7 {
		v *= r.Weekdays[modulo(week, clock.Week)/clock.Day]
	}
	if r.Growth != 0 {
		v *= math.Pow(1+r.Growth, t.Seconds()/clock.Week.Seconds())
	}
	for i := range r.Ramps {
		p := &r.Ramps[i]
		done := min(max((clock.Duration(t)-p.At).Seconds()/p.Length.Seconds(), 0), 1)
		v *= 1 + (p.Factor-1)*done
	}
	if l := &r.Ladder; l.Steps > 0 && clock.Duration(t) >= l.At {
		v *= 1 + l.Step*float64(min(1+(clock.Duration(t)-l.At)/l.Every, clock.Duration(l.Steps)))
	}
	for i := range r.Bursts {
		if r.Bursts[i].covers(t) {
			v *= r.Bursts[i].Factor
		}
	}
	return v
}

func modulo(d, by clock.Duration) clock.Duration {
	if d %= by; d < 0 {
		d += by
	}
	return d
}

// hourly interpolates between the values at full hours, round the clock.
func hourly(hours []float64, week clock.Duration) float64 {
	day := modulo(week, clock.Day)
	h := int(day / clock.Hour)
	x := float64(day%clock.Hour) / float64(clock.Hour)
	return hours[h] + (hours[(h+1)%24]-hours[h])*x
}

// windowAt returns the factor of the window that t lies in.
func windowAt(w []Window, t clock.Time) float64 {
	return w[windowIndex(w, t)].Factor
}

func windowIndex(w []Window, t clock.Time) int {
	return max(0, sort.Search(len(w), func(i int) bool { return w[i].At > clock.Duration(t) })-1)
}

func (b *Burst) covers(t clock.Time) bool {
	d := clock.Duration(t) - b.At
	if b.Every > 0 && d >= 0 {
		d %= b.Every
	}
	return d >= 0 && d < b.Length
}

// breaks calls add for the instants up to to at which the rate or its slope
// jumps; it may call it for others.
func (r *Rate) breaks(from, to clock.Time, start clock.Duration, add func(d clock.Duration)) {
	if len(r.Weekdays) == 7 || r.Shape == "hourly" {
		first := clock.Duration(from) - modulo(clock.Duration(from)+start, clock.Hour)
		for d := first; clock.Time(d) < to; d += clock.Hour {
			if r.Shape == "hourly" || modulo(d+start, clock.Day) == 0 {
				add(d)
			}
		}
	}
	if r.Shape == "windows" {
		for i := windowIndex(r.Windows, from); i < len(r.Windows) && clock.Time(r.Windows[i].At) < to; i++ {
			add(r.Windows[i].At)
		}
	}
	for _, p := range r.Ramps {
		add(p.At)
		add(p.At + p.Length)
	}
	for k := range r.Ladder.Steps {
		add(r.Ladder.At + clock.Duration(k)*r.Ladder.Every)
	}
	for _, u := range r.Bursts {
		for at := u.At; clock.Time(at) < to; at += u.Every {
			add(at)
			add(at + u.Length)
			if u.Every <= 0 {
				break
			}
		}
	}
}

// factors is a rate's random part: a factor that holds from a time on. Without a
// seed it is the factor's mean over time.
type factors struct {
	mean   float64
	at     []clock.Time
	factor []float64
}

func (f *factors) on(t clock.Time) float64 {
	if len(f.at) == 0 {
		return f.mean
	}
	return f.factor[max(0, sort.Search(len(f.at), func(i int) bool { return f.at[i] > t })-1)]
}

// expectedFactors returns the mean of a rate's random factor over time.
func expectedFactors(r *Rate) factors {
	f := factors{mean: 1}
	if b := &r.RandomBursts; b.PerSecond > 0 {
		f.mean += b.PerSecond * average(b.Length) * (average(b.Factor) - 1)
	}
	return f
}

// drawFactors draws a rate's random part over [from, to).
func drawFactors(r *Rate, seed uint64, stream string, from, to clock.Time) factors {
	f := expectedFactors(r)
	if r.RandomBursts.PerSecond > 0 {
		f = r.RandomBursts.draw(seed, stream, from, to)
	}
	if len(r.Regimes) > 1 {
		f = f.times(drawRegimes(r.Regimes, seed, stream, from, to))
	}
	return f
}

// times returns the product of two factors.
func (f factors) times(g factors) factors {
	at := append(slices.Clone(f.at), g.at...)
	slices.Sort(at)
	out := factors{mean: f.mean * g.mean, at: slices.Compact(at)}
	for _, t := range out.at {
		out.factor = append(out.factor, f.on(t)*g.on(t))
	}
	return out
}

// longBefore is how many mean lengths before the start bursts are drawn from, so
// that the start is like any other time.
const longBefore = 10

func (b *RandomBursts) draw(seed uint64, stream string, from, to clock.Time) factors {
	gaps := rng.New(seed, rng.Gap, stream+"\x00bursts")
	lengths := rng.New(seed, rng.Gap, stream+"\x00burst lengths")
	sizes := rng.New(seed, rng.Gap, stream+"\x00burst factors")
	length, err1 := b.Length.Compile()
	size, err2 := b.Factor.Compile()
	if err1 != nil || err2 != nil {
		return factors{mean: 1}
	}
	type edge struct {
		at clock.Time
		up float64
	}
	var edges []edge
	t := from.Add(-clock.FromSeconds(longBefore * average(b.Length)))
	for i := int64(0); ; i++ {
		t = t.Add(clock.FromSeconds(rng.Exp(gaps.Float64(i)) / b.PerSecond))
		if t >= to {
			break
		}
		up := max(0, size.Quantile(sizes.Float64(i))) - 1
		edges = append(edges, edge{t, up}, edge{t.Add(clock.FromSeconds(max(0, length.Quantile(lengths.Float64(i))))), -up})
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return int(min(max(a.at-b.at, -1), 1)) })
	f := factors{mean: 1, at: []clock.Time{from.Add(-clock.Week)}, factor: []float64{1}}
	sum := 1.0
	for i, e := range edges {
		sum += e.up
		if i+1 < len(edges) && edges[i+1].at == e.at || e.at >= to {
			continue
		}
		f.at, f.factor = append(f.at, e.at), append(f.factor, max(0, sum))
	}
	return f
}

// drawRegimes draws the states over [from, to), the first by how long each lasts.
func drawRegimes(states []Regime, seed uint64, stream string, from, to clock.Time) factors {
	stays := rng.New(seed, rng.Gap, stream+"\x00regimes")
	picks := rng.New(seed, rng.Gap, stream+"\x00next regime")
	total, mean := 0.0, 0.0
	for _, s := range states {
		total += s.Length.Seconds()
		mean += s.Length.Seconds() * s.Factor
	}
	mean /= total
	now, u := 0, picks.Float64(0)*total
	for now < len(states)-1 && u > states[now].Length.Seconds() {
		u -= states[now].Length.Seconds()
		now++
	}
	f := factors{mean: 1}
	for t, i := from, int64(1); t < to; i++ {
		f.at, f.factor = append(f.at, t), append(f.factor, states[now].Factor/mean)
		t = t.Add(max(1, clock.FromSeconds(rng.Exp(stays.Float64(i))*states[now].Length.Seconds())))
		next := int(picks.Uint64(i) % uint64(len(states)-1))
		if next >= now {
			next++
		}
		now = next
	}
	return f
}
