package traffic

import (
	"math"
	"slices"

	"slosim/sim/clock"
	"slosim/sim/rng"
	"slosim/sim/stats"
	"slosim/workloads"
)

// Bounds of an analysis.
const (
	maxWindows = 720
	minPerBin  = 200       // requests of a window, where the span allows it
	sampleSize = 40_000    // rows that the correlation is taken from
	maxIDs     = 4_000_000 // distinct block ids that are remembered
	precision  = 10        // of length histograms: off by at most 0.05 %
)

// widths are the widths that a window may have.
var widths = []clock.Duration{
	100 * clock.Millisecond, 200 * clock.Millisecond, 500 * clock.Millisecond,
	clock.Second, 2 * clock.Second, 5 * clock.Second, 10 * clock.Second, 30 * clock.Second, clock.Minute, 2 * clock.Minute, 5 * clock.Minute, 10 * clock.Minute,
	20 * clock.Minute, 30 * clock.Minute, clock.Hour, 2 * clock.Hour, 3 * clock.Hour, 6 * clock.Hour, 12 * clock.Hour, clock.Day, clock.Week,
}

// windowWidth returns the narrowest width with at most most windows and, as far
// as at least few of them remain, minPerBin requests in each.
func windowWidth(span clock.Duration, rows int64, most, few int) clock.Duration {
	for _, w := range widths {
		n := int(span/w) + 1
		full := float64(rows)/float64(n) >= minPerBin
		if n <= most && (full || n <= 2*few) {
			return w
		}
	}
	return widths[len(widths)-1]
}

// Window is what one window of time holds.
type Window struct{ N, Prompt, Output float64 }

// Analysis is what was measured of a stream of requests.
type Analysis struct {
	Rows    int64
	Span    clock.Duration // from the first arrival to the last
	Width   clock.Duration
	Windows []Window

	Prompt, Output Lengths
	Reuse          *workloads.Reuse
	HitTokens      *stats.Hist // of rows that find something

	gaps       moments
	last       clock.Duration
	started    bool
	dispersion []*counter
	sample     []pair
}

// Lengths measures the lengths of prompts or outputs.
type Lengths struct {
	Hist *stats.Hist
	sum  float64
}

// Mean returns the mean length.
func (l *Lengths) Mean() float64 { return l.sum / float64(max(1, l.Hist.N())) }

// Quantile returns a quantile of the lengths; 0 without any.
func (l *Lengths) Quantile(p float64) float64 {
	if l.Hist.N() == 0 {
		return 0
	}
	return l.Hist.Quantiles(p)[0]
}

func (l *Lengths) add(n int32) {
	l.Hist.Add(int64(n))
	l.sum += float64(n)
}

type pair struct{ prompt, output int32 }

// moments accumulate mean and variance.
type moments struct{ n, mean, square float64 }

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.square += d * (x - m.mean)
}

func (m *moments) variance() float64 { return m.square / max(1, m.n-1) }

// counter measures the dispersion of counts in windows of one width.
type counter struct {
	width clock.Duration
	now   int64 // window that is being counted
	n     float64
	m     moments
}

func (c *counter) add(at clock.Duration) {
	for w := int64(at / c.width); c.now < w; c.now++ {
		c.m.add(c.n)
		c.n = 0
	}
	c.n++
}

// dispersionWidths are those over which counts are compared.
var dispersionWidths = []clock.Duration{clock.Second, 10 * clock.Second, clock.Minute, 10 * clock.Minute, clock.Hour}

// NewAnalysis returns an analysis of about rows requests over span.
func NewAnalysis(span clock.Duration, rows int64) *Analysis {
	a := &Analysis{
		Width: windowWidth(span, rows, maxWindows, 48), Reuse: workloads.NewReuse(maxIDs), HitTokens: stats.NewHist(precision),
		Prompt: Lengths{Hist: stats.NewHist(precision)}, Output: Lengths{Hist: stats.NewHist(precision)},
	}
	a.Windows = make([]Window, int(span/a.Width)+1)
	for _, w := range dispersionWidths {
		a.dispersion = append(a.dispersion, &counter{width: w})
	}
	return a
}

// Add counts a request that arrives at a time since the start, not before the
// one before it.
func (a *Analysis) Add(at clock.Duration, prompt, output int32, row *workloads.Row) {
	if a.started {
		a.gaps.add((at - a.last).Seconds())
	}
	a.started, a.last, a.Span = true, at, at
	k := int(at / a.Width)
	if k >= len(a.Windows) {
		a.Windows = append(a.Windows, make([]Window, k+1-len(a.Windows))...)
	}
	w := &a.Windows[k]
	w.N++
	w.Prompt += float64(prompt)
	w.Output += float64(output)
	a.Prompt.add(prompt)
	a.Output.add(output)
	for _, c := range a.dispersion {
		c.add(at)
	}
	a.keep(pair{prompt, output})
	if row != nil && len(row.IDs) > 0 {
		before := a.Reuse.Found
		a.Reuse.Add(row)
		if found := a.Reuse.Found - before; found > 0 {
			a.HitTokens.Add(found)
		}
	}
	a.Rows++
}

// keep puts the pair into the sample, with the same probability for each row.
func (a *Analysis) keep(p pair) {
	if len(a.sample) < sampleSize {
		a.sample = append(a.sample, p)
		return
	}
	if k := rng.New(0, rng.PromptLength, "sample").Uint64(a.Rows) % uint64(a.Rows+1); k < sampleSize {
		a.sample[k] = p
	}
}

// GapCV returns the coefficient of variation of the gaps; 0 without any.
func (a *Analysis) GapCV() float64 {
	if a.gaps.mean == 0 {
		return 0
	}
	return math.Sqrt(a.gaps.variance()) / a.gaps.mean
}

// Rate returns the mean rate over the span, per second.
func (a *Analysis) Rate() float64 { return float64(a.Rows) / max(a.Span.Seconds(), 1e-9) }

// Dispersion returns variance ÷ mean of the counts per window, for each width of
// which there are at least 20 windows.
func (a *Analysis) Dispersion() (w []clock.Duration, value []float64) {
	for _, c := range a.dispersion {
		if c.m.n >= 20 {
			w, value = append(w, c.width), append(value, c.m.variance()/c.m.mean)
		}
	}
	return w, value
}

// Correlation returns the rank correlation of prompt and output.
func (a *Analysis) Correlation() float64 {
	if len(a.sample) < 3 {
		return 0
	}
	x := ranks(a.sample, func(p pair) int32 { return p.prompt })
	y := ranks(a.sample, func(p pair) int32 { return p.output })
	var mx, my moments
	for i := range x {
		mx.add(x[i])
		my.add(y[i])
	}
	sum := 0.0
	for i := range x {
		sum += (x[i] - mx.mean) * (y[i] - my.mean)
	}
	if spread := math.Sqrt(mx.square * my.square); spread > 0 {
		return sum / spread
	}
	return 0
}

// ranks returns each pair's rank; ties share their mean rank.
func ranks(list []pair, of func(pair) int32) []float64 {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(of(list[a])) - int(of(list[b])) })
	out := make([]float64, len(list))
	for k := 0; k < len(order); {
		end := k
		for end < len(order) && of(list[order[end]]) == of(list[order[k]]) {
			end++
		}
		for _, i := range order[k:end] {
			out[i] = float64(k+end-1) / 2
		}
		k = end
	}
	return out
}

// Trace analyses a trace file.
func Trace(spec workloads.Trace) (*Analysis, workloads.TraceStats, error) {
	about, err := workloads.ScanTrace(spec)
	if err != nil {
		return nil, about, err
	}
	a := NewAnalysis(about.Span, about.Rows)
	err = Rows(spec, func(r *workloads.Row) { a.Add(r.Arrival, r.Prompt, r.Output, r) })
	return a, about, err
}

// Rows calls f for each row of a trace.
func Rows(spec workloads.Trace, f func(*workloads.Row)) error {
	spec.Loop = false
	in, err := workloads.OpenTrace(spec)
	if err != nil {
		return err
	}
	defer in.Close()
	for {
		row, err := in.Next()
		if err != nil || !row.OK {
			return err
		}
		f(&row)
	}
}
