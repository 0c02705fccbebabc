package experiments

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/workloads"
)

const (
	maxSteps    = 10_000
	maxRequests = 1_000_000_000
)

// rate reads an arrival rate: "6/s", or a table with a shape over time.
func (l *loader) rate(t *config.Table) workloads.Rate {
	r := workloads.Rate{Shape: "constant", Burstiness: 1}
	if !t.IsTable("rate") {
		r.Mean = config.Read(t, "rate", config.Rate, config.Required, config.Note[float64]("constant, Poisson arrivals"), config.Above(0, maxRate))
		return r
	}
	sub := t.Sub("rate", `rate = { mean = "6/s", shape = "diurnal", peak = "14:00", peak_to_trough = 3 }`)
	r = l.shape(sub)
	for _, more := range sub.List("add", `add = [{ mean = "1/s" }]`) {
		r.Add = append(r.Add, l.shape(more))
	}
	l.process(sub, &r)
	return r
}

// shape reads a rate over time, without what kind of process it drives.
func (l *loader) shape(t *config.Table) workloads.Rate {
	var r workloads.Rate
	r.Shape = config.Read(t, "shape", config.OneOf("constant", "diurnal", "hourly", "windows"), config.Default("constant", ""))
	if r.Shape == "windows" {
		l.windows(t, &r)
	} else {
		r.Mean = config.Read(t, "mean", config.Rate, config.Required, config.Above(0, maxRate))
		forbid(t, "", `windows belongs to shape = "windows"`, "windows")
	}
	if r.Shape == "diurnal" {
		r.Peak = config.Read(t, "peak", config.TimeOfDay, config.Required)
		r.PeakToTrough = config.Read(t, "peak_to_trough", config.Float, config.Required, config.Example[float64]("3"), config.Between(1.0, 1000))
	} else {
		forbid(t, "", `peak and peak_to_trough belong to shape = "diurnal"`, "peak", "peak_to_trough")
	}
	if r.Shape == "hourly" {
		r.Hours = normalised(config.Read(t, "hours", numbers(24, "[2, 1, 1, 1, 1, 2, 3, 5, 7, 8, 9, 9, 8, 9, 9, 9, 8, 7, 6, 5, 5, 4, 3, 2]"), config.Required))
	} else {
		forbid(t, "", `hours belongs to shape = "hourly"`, "hours")
	}
	if t.Has("weekdays") {
		r.Weekdays = config.Read(t, "weekdays", numbers(7, "[1, 1, 1, 1, 0.9, 0.5, 0.4]"))
	} else {
		t.Know("weekdays")
	}
	r.Growth = config.Read(t, "growth", config.Share, config.Default(0.0, "per week, compounding, from t = 0 on"), config.Example[float64](`"5%"`), config.Between(-0.9, 10))
	for _, p := range t.List("ramps", `ramps = [{ at = "1h", length = "30m", factor = 2 }]`) {
		r.Ramps = append(r.Ramps, workloads.Ramp{
			At:     config.Read(p, "at", config.Span, config.Required, config.Example[clock.Duration](`"1h"`)),
			Length: config.Read(p, "length", config.Span, config.Required, config.Example[clock.Duration](`"30m"`), config.Above(0, maxSpan)),
			Factor: config.Read(p, "factor", config.Float, config.Required, config.Example[float64]("2"), config.Between(0.0, maxFactor)),
		})
	}
	r.Ladder = ladder(t, r.Mean)
	for _, b := range t.List("bursts", `bursts = [{ at = "9h", length = "10m", factor = 3 }]`) {
		r.Bursts = append(r.Bursts, burst(b, r.Bursts))
	}
	r.RandomBursts = randomBursts(t)
	r.Regimes = regimes(t)
	return r
}

// process reads how arrivals scatter around the rate.
func (l *loader) process(t *config.Table, r *workloads.Rate) {
	r.Burstiness = config.Read(t, "burstiness", config.Float, config.Default(1.0, "Poisson arrivals; gamma gaps with CV² = 1/burstiness"),
		config.Example[float64]("0.5"), config.Between(0.01, 100))
	rule := config.Read(t, "arrivals", config.OneOf("renewal", "vllm-bench"), config.Default("renewal", "gaps are independent"))
	if rule == "vllm-bench" {
		r.Requests = int64(config.Read(t, "requests", config.Int, config.Required, config.Note[int]("the last one comes at requests/mean after the start of the warm-up"),
			config.Example[int]("1000"), config.Between(1, maxRequests)))
		if last := float64(r.Requests) / r.Mean; r.Mean > 0 && last < (l.e.Warmup+l.e.Duration).Seconds() {
			t.Warnf("requests", fmt.Sprintf("--set warmup=0s --set duration=%s", config.SpanText(clock.FromSeconds(math.Ceil(last)))),
				"%d requests at %s end after %s, before the run does: nothing is sent from then on", r.Requests, config.RateText(r.Mean), config.SpanText(clock.FromSeconds(last)))
		}
		if r.Shape != "constant" || len(r.Add) > 0 {
			t.Errorf("arrivals", "", `take shape = "constant", or remove arrivals`, `arrivals = "vllm-bench" has one constant rate: %s is not`, r.Shape)
		}
	} else {
		forbid(t, "", `requests belongs to arrivals = "vllm-bench"`, "requests")
	}
	if !t.Has("hawkes") {
		t.Know("hawkes")
		return
	}
	sub := t.Sub("hawkes", `hawkes = { branching = 0.5, decay = "10s" }`)
	r.Hawkes = workloads.Hawkes{
		Branching: config.Read(sub, "branching", config.Float, config.Required, config.Note[float64]("arrivals that an arrival brings about, on average"), config.Example[float64]("0.5"), config.Between(0.0, 0.95)),
		Decay:     config.Read(sub, "decay", config.Span, config.Required, config.Note[clock.Duration]("mean time until they come"), config.Example[clock.Duration](`"10s"`), config.Between(clock.Millisecond, clock.Day)),
	}
	for _, other := range []struct {
		key   string
		given bool
	}{{"burstiness", r.Burstiness != 1}, {"arrivals", rule != "renewal"}} {
		if other.given {
			t.Errorf("hawkes", "", "remove one of the two", "hawkes and %s exclude each other: each says how arrivals scatter", other.key)
		}
	}
	if len(r.Clients) > 0 {
		t.Errorf("hawkes", "", "remove hawkes", "the windows file has the gaps of each client: hawkes has no meaning beside it")
	}
}

// ladder reads a rate that goes up step by step.
func ladder(t *config.Table, mean float64) workloads.Ladder {
	if !t.Has("ladder") {
		t.Know("ladder")
		return workloads.Ladder{}
	}
	sub := t.Sub("ladder", `ladder = { step = "2/s", every = "2m", steps = 5 }`)
	every := config.Read(sub, "every", config.Span, config.Required, config.Example[clock.Duration](`"2m"`), config.Between(clock.Second, maxSpan))
	step := config.Read(sub, "step", config.Rate, config.Required, config.Note[float64]("added to the mean each time"), config.Example[float64](`"2/s"`), config.Above(0, maxRate))
	ladder := workloads.Ladder{
		Every: every,
		At:    config.Read(sub, "at", config.Span, config.Default(every, "the first step"), config.Example[clock.Duration](`"10m"`)),
		Steps: config.Read(sub, "steps", config.Int, config.Required, config.Example[int]("5"), config.Between(1, maxSteps)),
	}
	if mean > 0 {
		ladder.Step = step / mean
	}
	return ladder
}

// randomBursts reads bursts that come at random.
func randomBursts(t *config.Table) workloads.RandomBursts {
	if !t.Has("random_bursts") {
		t.Know("random_bursts")
		return workloads.RandomBursts{}
	}
	sub := t.Sub("random_bursts", `random_bursts = { rate = "4/day", length = "10m", factor = 3 }`)
	return workloads.RandomBursts{
		PerSecond: config.Read(sub, "rate", config.Rate, config.Required, config.Example[float64](`"4/day"`), config.Above(0, 0.1)),
		Length:    dist(sub, "length", seconds, 1),
		Factor:    dist(sub, "factor", config.Float, 0),
	}
}

// regimes reads the states of a Markov-modulated rate.
func regimes(t *config.Table) []workloads.Regime {
	var out []workloads.Regime
	any := false
	for _, s := range t.List("regimes", `regimes = [{ factor = 1, length = "50m" }, { factor = 4, length = "10m" }]`) {
		out = append(out, workloads.Regime{
			Factor: config.Read(s, "factor", config.Float, config.Required, config.Example[float64]("4"), config.Between(0.0, maxFactor)),
			Length: config.Read(s, "length", config.Span, config.Required, config.Note[clock.Duration]("mean; exponential"), config.Example[clock.Duration](`"10m"`), config.Between(minRepeat, maxSpan)),
		})
		any = any || out[len(out)-1].Factor > 0
	}
	if len(out) == 1 || len(out) > 1 && !any {
		t.Errorf("regimes", "", `for example: regimes = [{ factor = 1, length = "50m" }, { factor = 4, length = "10m" }]`, "regimes needs at least two states, and one with a factor above 0")
	}
	return out
}

// windows reads a rate per window: pairs, or a file of them.
func (l *loader) windows(t *config.Table, r *workloads.Rate) {
	r.Mean, r.Windows = 1, []workloads.Window{{Factor: 1}} // whatever fails
	list := config.Read(t, "windows", windowPairs, config.Required)
	var clients []workloads.Caller
	if list.file != "" {
		path := list.file
		if !filepath.IsAbs(path) && !t.FromSet("windows") {
			path = filepath.Join(l.dir, path)
		}
		var err error
		if list.pairs, clients, err = workloads.ReadWindows(path); err != nil {
			t.Errorf("windows", "", "expected is a CSV with the columns t_s and rate_rps, one line per window; ServeGen's client windows have client, dist, p1 and p2 too", "%s", unread(path, err))
			return
		}
		t.Doc().Note(t.Path("clients"), fmt.Sprint(len(clients)), "derived", "of the windows file; 0 = it has the total only")
	}
	if len(list.pairs) == 0 {
		return
	}
	sum, span := 0.0, 0.0 // the last window is as wide as the one before it
	for i, w := range list.pairs {
		width := 1.0
		if n := len(list.pairs); n > 1 {
			k := min(i, n-2)
			width = (list.pairs[k+1].At - list.pairs[k].At).Seconds()
		}
		sum, span = sum+w.Factor*width, span+width
	}
	if !(sum > 0) {
		t.Errorf("windows", "", "", "no window has a rate above 0")
		return
	}
	found := sum / span
	r.Windows, r.Clients = scaledWindows(list.pairs, found), clients
	for i := range r.Clients {
		r.Clients[i].Windows = scaledWindows(r.Clients[i].Windows, found)
	}
	r.Mean = config.Read(t, "mean", config.Rate, config.Default(found, "over the windows; another one scales them"), config.Example[float64](`"6/s"`), config.Above(0, maxRate))
}

func scaledWindows(list []workloads.Window, mean float64) []workloads.Window {
	out := make([]workloads.Window, len(list))
	for i, w := range list {
		out[i] = workloads.Window{At: w.At, Factor: w.Factor / mean}
	}
	return out
}

// windowList is a rate per window, or the file that has it.
type windowList struct {
	pairs []workloads.Window // factors are rates per second
	file  string
}

var windowPairs = config.Unit[windowList]{
	Name: "windows", Allowed: "pairs [start, rate], starts rising from 0s on, or the name of a CSV file with the columns t_s and rate_rps",
	Example: `[["0s", "5/s"], ["10m", "8/s"]]`,
	Parse: func(v any) (windowList, error) {
		if file, ok := v.(string); ok {
			return windowList{file: file}, nil
		}
		list, ok := v.([]any)
		if !ok || len(list) == 0 {
			return windowList{}, errors.New("is no list of pairs")
		}
		var out windowList
		for i, e := range list {
			pair, ok := e.([]any)
			if !ok || len(pair) != 2 {
				return out, fmt.Errorf("has no pair at position %d", i+1)
			}
			at, err1 := config.Span.Parse(pair[0])
			rate, err2 := config.Rate.Parse(pair[1])
			if err := errors.Join(err1, err2); err != nil || rate < 0 || rate > maxRate {
				return out, fmt.Errorf("has a pair out of range at position %d", i+1)
			}
			if i == 0 && at != 0 || i > 0 && at <= out.pairs[i-1].At {
				return out, errors.New("does not rise from 0s on")
			}
			out.pairs = append(out.pairs, workloads.Window{At: at, Factor: rate})
		}
		return out, nil
	},
	Format: func(w windowList) string {
		if w.file != "" {
			return fmt.Sprintf("%q", w.file)
		}
		var pairs []string
		for _, p := range w.pairs {
			pairs = append(pairs, fmt.Sprintf("[%s, %s]", config.Span.Format(p.At), config.Rate.Format(p.Factor)))
		}
		return "[" + strings.Join(pairs, ", ") + "]"
	},
}

// numbers is a list of n factors, none below 0.
func numbers(n int, example string) config.Unit[[]float64] {
	return config.Unit[[]float64]{
		Name: fmt.Sprintf("a list of %d numbers", n), Allowed: fmt.Sprintf("%d numbers from 0 on, one above 0", n), Example: example,
		Parse: func(v any) ([]float64, error) {
			list, ok := v.([]any)
			if !ok || len(list) != n {
				return nil, fmt.Errorf("is no list of %d numbers", n)
			}
			out := make([]float64, n)
			sum := 0.0
			for i, e := range list {
				f, err := config.Float.Parse(e)
				if err != nil || f < 0 || f > 1e9 {
					return nil, fmt.Errorf("has no factor at position %d", i+1)
				}
				out[i] = f
				sum += f
			}
			if sum == 0 {
				return nil, errors.New("has only zeros")
			}
			return out, nil
		},
		Format: func(list []float64) string {
			parts := make([]string, len(list))
			for i, f := range list {
				parts[i] = config.Float.Format(f)
			}
			return "[" + strings.Join(parts, ", ") + "]"
		},
	}
}

// normalised scales factors to a mean of 1.
func normalised(list []float64) []float64 {
	sum := 0.0
	for _, f := range list {
		sum += f
	}
	out := make([]float64, len(list))
	for i, f := range list {
		out[i] = f * float64(len(list)) / sum
	}
	if len(out) == 0 { // after an error
		out = make([]float64, 24)
	}
	return out
}

// burst reads one burst; those before it are given.
func burst(t *config.Table, before []workloads.Burst) workloads.Burst {
	b := workloads.Burst{
		At: config.Read(t, "at", config.Span, config.Required, config.Example[clock.Duration](`"9h"`)),
		Length: config.Read(t, "length", config.Span, config.Required, config.Example[clock.Duration](`"10m"`),
			config.Above(0, maxSpan)),
		Every:  config.Read(t, "every", config.Span, config.Default(clock.Duration(0), "once"), config.Example[clock.Duration](`"24h"`)),
		Factor: config.Read(t, "factor", config.Float, config.Required, config.Example[float64]("3"), config.Between(0.0, maxFactor)),
	}
	switch {
	case b.Every > 0 && b.Every < b.Length:
		t.Errorf("every", "at least the length, "+config.SpanText(b.Length), "", "every = %s: the burst comes again before it ends", config.SpanText(b.Every))
	case b.Every > 0 && b.Every < minRepeat:
		t.Errorf("every", "at least "+config.SpanText(minRepeat), "for traffic that clumps at this scale take burstiness", "every = %s is too short for a burst", config.SpanText(b.Every))
	}
	for _, other := range before {
		if b.At < other.At {
			t.Errorf("at", "", "write bursts in order of at", "at = %s is before the burst above it", config.SpanText(b.At))
		} else if b.At < other.At+other.Length {
			t.Errorf("at", "from "+config.SpanText(other.At+other.Length)+" on", "", "at = %s: the burst at %s still goes on", config.SpanText(b.At), config.SpanText(other.At))
		}
	}
	return b
}
