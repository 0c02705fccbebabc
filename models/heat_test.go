package models

import (
	"math"
	"testing"

	"slosim/sim/clock"

	"pgregory.net/rapid"
)

func h100Heat(t testing.TB, ambientC float64) Heat {
	t.Helper()
	return NewHeat(deployment(t, "llama-3.1-8b", "h100-sxm-80gb", 1), ambientC)
}

// load is steady work: shares of the peak rates at maximum clock. Of the time
// that the compute takes there, bound is a share that grows as the clock falls:
// 1 is compute-bound work, 0 is work that keeps its rate.
type load struct{ compute, memory, bound float64 }

// work returns what the load does in dt at a relative clock.
func (l load) work(f float64, dt clock.Duration) Cost {
	rate := 1 / (1 - l.bound + l.bound/f)
	ps := float64(dt) * 1000
	return Cost{Compute: int64(l.compute * rate * ps), Memory: int64(l.memory * rate * ps)}
}

// do is Tick with the work of a step.
func (h *Heat) do(s *HeatState, work Cost, dt clock.Duration) {
	h.Tick(s, work.Compute, work.Memory, dt)
}

// run ticks the load once a second.
func (h *Heat) run(s *HeatState, l load, seconds int, each func(second int)) {
	for i := range seconds {
		f := float64(s.Bin) / float64(h.MaxBin)
		h.do(s, l.work(f, clock.Second), clock.Second)
		if each != nil {
			each(i)
		}
	}
}

func anyLoad(t *rapid.T) load {
	return load{
		compute: rapid.Float64Range(0, 1).Draw(t, "compute"),
		memory:  rapid.Float64Range(0, 1).Draw(t, "memory"),
		bound:   rapid.Float64Range(0, 1).Draw(t, "compute-bound share"),
	}
}

// anyHeat draws a GPU, an inlet temperature and a power law.
func anyHeat(t *rapid.T) Heat {
	gpu := rapid.SampledFrom(GPUs()).Draw(t, "GPU")
	gpu.Common.Power.ComputeExponent = rapid.SampledFrom([]float64{1, 0.5}).Draw(t, "exponent")
	return NewHeat(Deployment{GPU: gpu}, rapid.Float64Range(15, 45).Draw(t, "inlet"))
}

func TestIdleGPUStaysAtItsStart(t *testing.T) {
	h := h100Heat(t, 30)
	start := h.Start()
	s := start
	h.run(&s, load{}, 3600, nil)
	if math.Abs(s.TempC-start.TempC) > 1e-9 || s.PowerW != start.PowerW || s.Bin != h.MaxBin || s.Slowed {
		t.Errorf("idle for an hour: %+v, start %+v", s, start)
	}
	if math.Abs(start.TempC-35) > 0.1 || start.PowerW != 75 {
		t.Errorf("idle H100 at 30 C inlet: %+v", start)
	}
}

func TestTemperatureFollowsTheClosedForm(t *testing.T) {
	h := h100Heat(t, 30)
	l := load{memory: 0.5, compute: 0.15}
	powerW := h.IdleW + h.MemoryW*0.5 + h.ComputeW*math.Pow(0.15, h.ComputeExponent)
	s := h.Start()
	from, to := s.TempC, 30+h.ResistanceCPerW*powerW
	h.run(&s, l, 600, func(i int) {
		want := to + (from-to)*math.Exp(-float64(i+1)/h.TimeConstantS)
		if math.Abs(s.TempC-want) > 1e-6 {
			t.Fatalf("second %d: %.4f C, want %.4f", i+1, s.TempC, want)
		}
	})
	if s.Bin != h.MaxBin || math.Abs(s.PowerW-powerW) > 1e-6 {
		t.Errorf("%.0f W is under the cap, but the state is %+v", powerW, s)
	}
}

func TestCappedComputeSettlesAtTheClockOfTheCubicLaw(t *testing.T) {
	h := h100Heat(t, 25)
	s := h.Start()
	h.run(&s, load{compute: 0.9, memory: 0, bound: 1}, 600, nil)
	f := math.Cbrt((h.CapW - h.IdleW) / (h.ComputeW * math.Pow(0.9, h.ComputeExponent)))
	want := int(f * float64(h.MaxBin))
	if s.Bin != want {
		t.Errorf("settled at bin %d (%d MHz), the law gives %d", s.Bin, s.Bin*ClockStepMHz, want)
	}
}

func TestPowerIsUnderTheCapFromTheSecondTickAndTheClockSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, l := anyHeat(t), anyLoad(t)
		s := h.Start()
		minBin, lastBin := h.MaxBin, h.MaxBin
		changesAfterSettling := 0
		h.run(&s, l, 1200, func(i int) {
			if s.Bin < h.MinBin || s.Bin > h.MaxBin {
				t.Fatalf("second %d: bin %d outside [%d, %d]", i, s.Bin, h.MinBin, h.MaxBin)
			}
			if i > 0 && s.PowerW > h.CapW+1e-6 && lastBin > h.MinBin {
				t.Fatalf("second %d: %.2f W, cap %.0f W", i, s.PowerW, h.CapW)
			}
			if i > 900 && s.Bin != lastBin {
				changesAfterSettling++
			}
			minBin, lastBin = min(minBin, s.Bin), s.Bin
		})
		if changesAfterSettling > 1 {
			t.Fatalf("the clock still changed %d times in the last 5 minutes of constant work", changesAfterSettling)
		}
	})
}

func TestTemperatureIsBoundedAndConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, l := anyHeat(t), anyLoad(t)
		s := h.Start()
		lowest := h.SteadyTempC(h.IdleW)
		highest := h.SteadyTempC(h.IdleW + h.MemoryW + h.ComputeW)
		h.run(&s, l, 1800, func(int) {
			if s.TempC < lowest-1e-9 || s.TempC > highest+1e-9 {
				t.Fatalf("%.2f C outside [%.2f, %.2f]", s.TempC, lowest, highest)
			}
		})
		if d := math.Abs(s.TempC - h.SteadyTempC(s.PowerW)); d > 0.05 {
			t.Fatalf("after 30 minutes still %.3f C from the steady state of %.1f W: %+v", d, s.PowerW, s)
		}
		if s.Bin > h.MinBin && s.TempC > h.MaxTempC {
			t.Fatalf("settled above the slowdown threshold: %+v", s)
		}
	})
}

func TestMoreWorkIsNeverColder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, l := anyHeat(t), anyLoad(t)
		more := l
		more.compute = min(1, l.compute+rapid.Float64Range(0, 1).Draw(t, "more compute"))
		more.memory = min(1, l.memory+rapid.Float64Range(0, 1).Draw(t, "more memory"))
		a, b := h.Start(), h.Start()
		h.do(&a, l.work(1, clock.Second), clock.Second)
		h.do(&b, more.work(1, clock.Second), clock.Second)
		if a.PowerW > b.PowerW+1e-9 || a.TempC > b.TempC+1e-9 || a.Bin < b.Bin {
			t.Fatalf("%+v gives %+v, but more, %+v, gives %+v", l, a, more, b)
		}
	})
}

func TestAHotInletSlowsTheClockAndHoldsItInsideTheBand(t *testing.T) {
	h := h100Heat(t, 45)
	l := load{memory: 0.5, compute: 0.5, bound: 0.5}
	s := h.Start()
	slowedAt := -1
	h.run(&s, l, 3600, func(i int) {
		if s.Slowed && slowedAt < 0 {
			slowedAt = i
		}
		if slowedAt >= 0 && i > slowedAt && (!s.Slowed || s.TempC > h.MaxTempC+0.5 || s.TempC < h.MaxTempC-h.HysteresisC) {
			t.Fatalf("second %d: left the slowdown under constant work: %+v", i, s)
		}
	})
	if slowedAt < 60 || s.Bin == h.MaxBin {
		t.Errorf("slowdown at second %d, state %+v", slowedAt, s)
	}
	h.run(&s, load{}, 600, nil)
	if s.Slowed || s.Bin != h.MaxBin {
		t.Errorf("ten idle minutes later still slowed: %+v", s)
	}
}

func TestTicksOfAnyLengthReachTheSameTemperature(t *testing.T) {
	h := h100Heat(t, 30)
	l := load{memory: 0.6}
	fine, coarse := h.Start(), h.Start()
	h.run(&fine, l, 60, nil)
	h.do(&coarse, l.work(1, clock.Minute), clock.Minute)
	if math.Abs(fine.TempC-coarse.TempC) > 1e-6 {
		t.Errorf("60 ticks of 1 s: %.6f C, one of 60 s: %.6f C", fine.TempC, coarse.TempC)
	}
	before := coarse
	if h.Tick(&coarse, 0, 0, 0); coarse != before {
		t.Error("a tick of no length changes the state")
	}
}

func BenchmarkTick(b *testing.B) {
	h := h100Heat(b, 30)
	s := h.Start()
	work := load{compute: 0.8, memory: 0.4, bound: 1}.work(0.9, clock.Second)
	b.ReportAllocs()
	for b.Loop() {
		h.do(&s, work, clock.Second)
	}
}

func TestDecayIsWithinItsBound(t *testing.T) {
	for x := 0.0; x < 0.2; x += 1e-4 {
		if got, want := decay(x), math.Exp(-x); math.Abs(got-want) > 3e-11 {
			t.Fatalf("decay(%g) = %.15g, want %.15g", x, got, want)
		}
	}
}

// generalTick is Tick without its short cuts.
func generalTick(h *Heat, s *HeatState, computePs, memoryPs int64, dt clock.Duration) {
	dtPs := float64(dt) * 1000
	f := float64(s.Bin) / float64(h.MaxBin)
	memoryW := h.MemoryW * min(1, float64(memoryPs)/dtPs)
	computeW := h.ComputeW * h.power.of(min(1, float64(computePs)/(dtPs*f)))
	s.PowerW = h.IdleW + memoryW + computeW*f*f*f
	steadyC := h.SteadyTempC(s.PowerW)
	s.TempC = steadyC + (s.TempC-steadyC)*decay(dt.Seconds()/h.TimeConstantS)
	steadyRiseC := h.MemoryResistanceCPerW * memoryW
	s.MemoryRiseC = steadyRiseC + (s.MemoryRiseC-steadyRiseC)*decay(dt.Seconds()/h.MemoryTimeConstantS)
	hotter := func(belowC float64) bool {
		return s.TempC >= h.MaxTempC-belowC || h.MaxMemoryTempC > 0 && s.MemoryTempC() >= h.MaxMemoryTempC-belowC
	}
	s.Slowed = hotter(0) || s.Slowed && hotter(h.HysteresisC)
	roomW := h.capW(s) - h.IdleW
	if s.PowerW > roomW+h.IdleW {
		s.Bin = h.lower(s.Bin, (roomW-memoryW)/(computeW*f*f*f))
	} else {
		s.Bin = h.raise(s.Bin, roomW, memoryW, computeW)
	}
}

func TestTickEqualsTheGeneralWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := anyHeat(t)
		s := h.Start()
		s.TempC += rapid.Float64Range(-10, 60).Draw(t, "warmer")
		s.Bin = rapid.IntRange(h.MinBin, h.MaxBin).Draw(t, "bin")
		want := s
		for range 40 {
			dt := clock.Duration(rapid.Int64Range(1, int64(20*clock.Second)).Draw(t, "span") >> rapid.IntRange(0, 20).Draw(t, "shift"))
			dt = max(dt, 1)
			work := anyLoad(t).work(float64(s.Bin)/float64(h.MaxBin), dt)
			if rapid.IntRange(0, 4).Draw(t, "idle") == 0 {
				work = Cost{}
			}
			h.do(&s, work, dt)
			if generalTick(&h, &want, work.Compute, work.Memory, dt); s != want {
				t.Fatalf("%+v, want %+v", s, want)
			}
		}
	})
}

func TestAddSinceIsTheDifference(t *testing.T) {
	before := Cost{1, 2, 3, 4, 5, 6, 7, 8}
	now := Cost{10, 22, 33, 44, 55, 66, 77, 88}
	got, want := Cost{100, 200, 300, 400, 500, 600, 700, 800}, Cost{100, 200, 300, 400, 500, 600, 700, 800}
	want.Add(&now, 1)
	want.Add(&before, -1)
	if got.AddSince(&now, &before); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
