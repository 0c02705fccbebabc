package workloads

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"slosim/sim/clock"
)

// Requests drawn column by column are those drawn one by one, to the last of them,
// whatever the class does.
func TestColumnsAreTheRequestsOneByOne(t *testing.T) {
	longer := Dist{Kind: "lognormal", Mean: 20_000, P99: 60_000}
	on := []Window{{0, 2}, {clock.Hour, 0}, {90 * clock.Minute, 3}}
	for name, alter := range map[string]func(c *Class){
		"plain":      func(*Class) {},
		"fixed":      func(c *Class) { c.Prompt, c.Output = Dist{Kind: "fixed", Mean: 100}, Dist{Kind: "fixed", Mean: 7} },
		"priority":   func(c *Class) { c.Priority = 3 },
		"bursty":     func(c *Class) { c.Rate.Burstiness = 0.3 },
		"daily":      func(c *Class) { c.Rate.Shape, c.Rate.PeakToTrough = "diurnal", 4 },
		"with a gap": func(c *Class) { c.Rate.Shape, c.Rate.Windows = "windows", on },
		"correlated": func(c *Class) { c.Correlation = 0.4 },
		"counted":    func(c *Class) { c.Rate.Requests = 5000 },
		"exciting":   func(c *Class) { c.Rate.Hawkes = Hawkes{Branching: 0.5, Decay: 3 * clock.Second} },
		"of clients": func(c *Class) {
			c.Rate.Clients = []Caller{{Windows: on, Gaps: []Gap{{Shape: 1}, {Shape: 1}, {Shape: 2}}}}
		},
		"with system": func(c *Class) { c.System = System{Tokens: 160, Variants: 5, Skew: 1} },
		"with hits":   func(c *Class) { c.Hit = Hit{Ratio: 0.5, Tokens: Dist{Kind: "uniform", Min: 10, Max: 500}} },
		"moved":       func(c *Class) { c.Name = "moved" },
	} {
		c := Class{Name: "chat", Stream: "chat", Rate: Rate{Mean: 3, Shape: "constant", Burstiness: 1},
			Prompt: Dist{Kind: "lognormal", Mean: 2000, P99: 6400}, Output: Dist{Kind: "exponential", Mean: 256, Max: 4095}}
		alter(&c)
		changes := []Change{{Name: "f", Class: "moved", At: 30 * clock.Minute, Ramp: clock.Hour, Share: 0.5, RateFactor: 1.5, Prompt: &longer, OutputCap: 100}}
		for _, many := range []float64{0, worthATable} {
			s, err := NewShaper(&c, changes, 7)
			if err != nil {
				t.Fatal(err)
			}
			s.Expect(many)
			all := func() *Arrivals {
				return NewArrivals(&c, NewIntensity(&c, changes, 0), 7, -clock.Time(clock.Minute), clock.Time(2*clock.Hour))
			}
			one, column := all(), all()
			var got [Ahead]Request
			for k := range got {
				got[k] = s.Blank()
			}
			requests := 0
			for n := Ahead; n == Ahead; requests += n {
				n = column.NextAll(&got)
				s.ShapeAll(got[:n])
				for k := range Ahead {
					at, i, ok := one.Next()
					if ok != (k < n) {
						t.Fatalf("%s: request %d of %d is there: %v", name, k, n, ok)
					}
					if !ok {
						break
					}
					want := Request{Send: at}
					s.Shape(i, at, &want)
					if !reflect.DeepEqual(got[k], want) {
						t.Fatalf("%s: request %d is %+v, want %+v", name, i, got[k], want)
					}
				}
			}
			if requests < 4000 {
				t.Errorf("%s: only %d requests", name, requests)
			}
		}
	}
}

// Where the cumulative rate is straight its inverse is the general one, to the
// nanosecond.
func TestStraightCellsAreInvertedAsAnyOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate{Mean: math.Pow(10, rapid.Float64Range(-3, 4).Draw(t, "mean")), Shape: rapid.SampledFrom([]string{"constant", "windows", "diurnal"}).Draw(t, "shape"), PeakToTrough: 3}
		r.Windows = []Window{{0, 1}, {clock.Hour, rapid.Float64Range(0, 5).Draw(t, "factor")}, {2 * clock.Hour, 0}, {3 * clock.Hour, 1e-3}}
		if rapid.Bool().Draw(t, "growth") {
			r.Growth = math.Pow(10, rapid.Float64Range(-14, -1).Draw(t, "rate")) // from straight to just not
		}
		if rapid.Bool().Draw(t, "ladder") {
			r.Ladder = Ladder{At: 20 * clock.Minute, Every: 7*clock.Minute + 3, Step: 0.1, Steps: 9}
		}
		c := Class{Name: "x", Rate: r}
		in := NewIntensity(&c, nil, 0)
		from, to := clock.Time(-clock.Minute), clock.Time(4*clock.Hour+1)
		fast, general := NewCurve(&in, from, to), NewCurve(&in, from, to)
		u, total := 0.0, fast.Total()
		for ok := true; ok; {
			got, there := fast.Invert(u)
			want, exists := general.invert(u)
			if got != want || there != exists {
				t.Fatalf("Λ reaches %v of %v at %v (%v), want %v (%v)", u, total, got, there, want, exists)
			}
			ok = there
			step := rapid.SampledFrom([]float64{0, 1e-12, 1e-6, 1e-3, 0.02}).Draw(t, "step") * total
			if u += step; rapid.IntRange(0, 9).Draw(t, "edge") == 0 && fast.cell < len(fast.c1) {
				u = max(u, fast.sum[fast.cell+1]) // exactly at the end of a cell
			}
			if step == 0 {
				u += total / 500
			}
		}
	})
	c := Class{Name: "x", Rate: Rate{Mean: 123, Shape: "constant"}}
	in := NewIntensity(&c, nil, 0)
	curve := NewCurve(&in, 0, clock.Time(clock.Day))
	for k := range curve.c1 {
		if curve.straight(k).to == 0 {
			t.Fatalf("cell %d of a constant rate is not straight", k)
		}
	}
}
