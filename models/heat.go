package models

import (
	"math"

	"slosim/sim/clock"
)

// Heat is the power, clock and temperature model of one GPU of a deployment.
// All GPUs of a replica do the same work, so one HeatState stands for them.
//
// Power is idle + memory·u_mem + compute·u_cmp^e·(f/f_max)³, where u_mem is the
// HBM rate and u_cmp the tensor-core rate, each as a share of its peak, the
// latter of the peak at the present clock f. The clock is the highest that
// keeps power under a cap. Temperature follows power with one time constant.
type Heat struct {
	IdleW, MemoryW, ComputeW float64
	ComputeExponent          float64 // e, 0–1
	power                    *powers // of e
	CapW                     float64 // power limit of the GPU (TDP)
	AmbientC                 float64 // inlet air
	ResistanceCPerW          float64 // inlet air to sensor
	TimeConstantS            float64
	MaxTempC                 float64 // a thermal slowdown starts here
	HysteresisC              float64 // and ends this far below
	MinBin, MaxBin           int     // clock bins

	MaxMemoryTempC        float64 // HBM: a slowdown starts there too; 0 = never
	MemoryResistanceCPerW float64 // of memory power, from the GPU's sensor to HBM
	MemoryTimeConstantS   float64
}

// HeatState is one GPU's state; Start makes the first one.
type HeatState struct {
	TempC  float64
	PowerW float64 // over the last tick
	Bin    int     // clock bin from now on
	Slowed bool    // a thermal slowdown is on

	MemoryRiseC float64 // HBM above TempC
}

// MemoryTempC returns the temperature of the HBM.
func (s HeatState) MemoryTempC() float64 { return s.TempC + s.MemoryRiseC }

// NewHeat returns the model of d's GPU with this inlet temperature. The
// catalogue's power figures are scaled by TDP, thermal resistance inversely: the
// heat sink suits the GPU.
func NewHeat(d Deployment, ambientC float64) Heat {
	g, p := d.GPU, d.GPU.Common.Power
	scale := g.TDPW / p.ReferenceTDPW
	maxTempC := g.MaxTempC
	if maxTempC == 0 {
		maxTempC = math.Inf(1) // unknown: CheckThermal refuses it where users ask
	}
	return Heat{
		IdleW:           p.IdleW * scale,
		MemoryW:         p.MemoryW * scale,
		ComputeW:        p.ComputeW * scale,
		ComputeExponent: p.ComputeExponent,
		power:           newPowers(p.ComputeExponent),
		CapW:            g.TDPW,
		AmbientC:        ambientC,
		ResistanceCPerW: p.ResistanceCPerW / scale,
		TimeConstantS:   p.TimeConstantS,
		MaxTempC:        maxTempC,
		HysteresisC:     p.HysteresisC,
		MinBin:          max(1, g.MinClockMHz/ClockStepMHz),
		MaxBin:          g.maxBin(),

		MaxMemoryTempC:        g.MaxMemoryTempC,
		MemoryResistanceCPerW: p.MemoryResistanceCPerW / scale,
		MemoryTimeConstantS:   p.MemoryTimeConstantS,
	}
}

// Start returns the state of a GPU that has idled for long, at maximum clock.
func (h *Heat) Start() HeatState {
	return HeatState{TempC: h.SteadyTempC(h.IdleW), PowerW: h.IdleW, Bin: h.MaxBin}
}

// SteadyTempC returns the temperature at which a constant power settles.
func (h *Heat) SteadyTempC(powerW float64) float64 { return h.AmbientC + h.ResistanceCPerW*powerW }

// Tick carries s over dt, during which the GPU did this work at s.Bin, in picoseconds
// at its peak rates (Cost.Compute and Memory), and sets the clock for the next tick.
//
// Lowering assumes that the work's rate stays, raising that u_cmp stays and
// u_mem grows with the clock. Power can exceed neither, whatever binds the work:
// so one tick after a jump of steady work it is under the cap and stays there,
// and the clock then only rises until it settles.
func (h *Heat) Tick(s *HeatState, computePs, memoryPs int64, dt clock.Duration) {
	if dt <= 0 {
		return
	}
	seconds := dt.Seconds()
	x, y := seconds/h.TimeConstantS, seconds/h.MemoryTimeConstantS
	left, leftRise := soon(x), soon(y)
	if x >= soonBelow || y >= soonBelow {
		left, leftRise = decay(x), decay(y)
	}

	dtPs := float64(dt) * 1000
	f, peakPs := 1.0, dtPs // what the tensor cores can do
	if s.Bin != h.MaxBin {
		f = float64(s.Bin) / float64(h.MaxBin)
		peakPs = dtPs * f
	}
	u := atMost1(float64(computePs) / peakPs)
	power := h.power.near(u)
	if !isNear(u) {
		power = h.power.of(u)
	}
	maxComputeW := h.ComputeW * power // at maximum clock
	computeW := maxComputeW
	if s.Bin != h.MaxBin {
		computeW = maxComputeW * f * f * f
	}
	memoryW := h.MemoryW * atMost1(float64(memoryPs)/dtPs)
	powerW := h.IdleW + memoryW + computeW
	s.PowerW = powerW

	steadyC := h.SteadyTempC(powerW)
	s.TempC = steadyC + (s.TempC-steadyC)*left
	steadyRiseC := h.MemoryResistanceCPerW * memoryW
	s.MemoryRiseC = steadyRiseC + (s.MemoryRiseC-steadyRiseC)*leftRise
	s.Slowed = h.hot(s)

	roomW := h.capW(s) - h.IdleW
	if powerW > roomW+h.IdleW {
		s.Bin = h.lower(s.Bin, (roomW-memoryW)/computeW)
	} else if s.Bin < h.MaxBin {
		s.Bin = h.raise(s.Bin, roomW, memoryW, maxComputeW)
	}
}

// atMost1 is min(1, x) for a share, of which none is NaN: with fewer instructions.
func atMost1(x float64) float64 {
	if x > 1 {
		return 1
	}
	return x
}

// hot says whether a thermal slowdown is on: the GPU or its HBM has reached its limit, or it has
// been on and they are not yet as far below.
func (h *Heat) hot(s *HeatState) bool {
	belowC := 0.0
	if s.Slowed {
		belowC = h.HysteresisC
	}
	return s.TempC >= h.MaxTempC-belowC || h.MaxMemoryTempC > 0 && s.TempC+s.MemoryRiseC >= h.MaxMemoryTempC-belowC
}

// capW returns the power limit. During a slowdown it is the power that settles
// in the middle of the hysteresis band, so constant work ends in a steady state
// inside the band instead of cycling between its edges.
func (h *Heat) capW(s *HeatState) float64 {
	if !s.Slowed {
		return h.CapW
	}
	holdC := h.MaxTempC
	if h.MaxMemoryTempC > 0 {
		holdC = min(holdC, h.MaxMemoryTempC-s.MemoryRiseC)
	}
	return min(h.CapW, (holdC-h.HysteresisC/2-h.AmbientC)/h.ResistanceCPerW)
}

// lower returns the highest bin below bin at which compute power falls to this
// share. Work of a constant rate has u_cmp ∝ 1/f, so its power is ∝ f^(3−e).
func (h *Heat) lower(bin int, share float64) int {
	if !(share > 0) {
		return h.MinBin
	}
	f := math.Pow(share, 1/(3-h.ComputeExponent))
	return max(h.MinBin, min(bin-1, int(f*float64(bin))))
}

// decay returns e^−x, of small x by its series: within 3e-11.
func decay(x float64) float64 {
	if x < soonBelow {
		return soon(x)
	}
	return math.Exp(-x)
}

// soonBelow is where the series of decay ends, soon is that series.
const soonBelow = 0.05

func soon(x float64) float64 {
	return 1 - x*(1-x*(1./2-x*(1./6-x*(1./24-x*(1./120)))))
}

// maxRaiseBins bounds how far the clock rises in one tick.
const maxRaiseBins = 8

// raise returns the highest bin, up to maxRaiseBins above, at which memory power
// that grows with the clock and compute power that grows with its cube stay
// within roomW.
func (h *Heat) raise(bin int, roomW, memoryW, computeW float64) int {
	top := min(h.MaxBin, bin+maxRaiseBins)
	perBin := memoryW / float64(bin)
	for bin < top {
		f := float64(bin+1) / float64(h.MaxBin)
		if perBin*float64(bin+1)+computeW*f*f*f > roomW {
			break
		}
		bin++
	}
	return bin
}
