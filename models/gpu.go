package models

import "fmt"

// GPU is one accelerator: its data sheet, and the kernel coefficients measured
// on it. Each figure's source is in Sources under the figure's TOML key.
type GPU struct {
	Name      string `toml:"name"`
	MemoryMiB int    `toml:"memory_mib"` // as torch sees it

	PeakBF16TFLOPS float64 `toml:"peak_bf16_tflops"` // dense
	PeakFP8TFLOPS  float64 `toml:"peak_fp8_tflops"`  // dense; 0 = not supported
	BandwidthGBs   float64 `toml:"bandwidth_gbs"`    // HBM, GB/s
	NVLinkGBs      float64 `toml:"nvlink_gbs"`       // one direction per GPU

	TDPW        float64 `toml:"tdp_w"`
	MaxClockMHz int     `toml:"max_clock_mhz"`
	MinClockMHz int     `toml:"min_clock_mhz"` // lowest SM clock that a power cap or heat leads to
	MaxTempC    float64 `toml:"max_temp_c"`    // software thermal slowdown starts here

	GEMM      ByDtype[GEMM]      `toml:"gemm"`       // by weight dtype
	Attention ByDtype[Attention] `toml:"attention"`  // by KV dtype
	AllReduce AllReduces         `toml:"all_reduce"` // by TP degree

	Common  Common            `toml:"-"`      // the catalogue's constants for every GPU
	Sources map[string]string `toml:"source"` // read-only, shared by copies
}

// GEMM holds the coefficients of a matrix multiplication's time (see
// gemmKernel.seconds), fitted to a kernel table at locked maximum clock.
type GEMM struct {
	LaunchUs   float64 `toml:"launch_us"`   // t0, µs per kernel
	ComputeEff float64 `toml:"compute_eff"` // ef, share of the dtype's dense peak, 0–1
	MemoryEff  float64 `toml:"memory_eff"`  // em, share of HBM peak, 0–1
	P          float64 `toml:"p"`           // how sharply compute and memory time combine; large = max
	QuantPs    float64 `toml:"quant_ps"`    // aq, ps per activation element, dynamic FP8 scales only
	MAPEPct    float64 `toml:"mape_pct"`    // mean absolute error of the fit, %
}

// Attention holds the coefficients of the attention kernels of one layer.
type Attention struct {
	PrefillUs          float64 `toml:"prefill_us"`           // launch, µs per layer
	PrefillEff         float64 `toml:"prefill_eff"`          // ea, share of the dense BF16 peak, 0–1
	PrefillExtraTokens float64 `toml:"prefill_extra_tokens"` // delta: cost of a query token as extra keys
	DecodeUs           float64 `toml:"decode_us"`            // launch, µs per layer
	DecodeEff          float64 `toml:"decode_eff"`           // eg, share of HBM peak on KV bytes, 0–1
	DecodePerSeqNs     float64 `toml:"decode_per_seq_ns"`    // g_seq, ns per decode row and layer
	PrefillMAPEPct     float64 `toml:"prefill_mape_pct"`     // %
	DecodeMAPEPct      float64 `toml:"decode_mape_pct"`      // %
}

// AllReduce is the time of one all-reduce between the GPUs of a replica inside a CUDA graph: a
// measured row at Common.AllReduceKnotBytes, or alpha/bus where none is at hand.
type AllReduce struct {
	KnotsUs [allReduceKnots]float64 `toml:"knots_us"`
	AlphaUs float64                 `toml:"alpha_us"`
	BusGBs  float64                 `toml:"bus_gbs"`
	MAPEPct float64                 `toml:"mape_pct"` // over the measured table's sizes, 2 KiB–512 MiB, %
}

const allReduceKnots = 10

// AllReduces holds the all-reduce of each TP degree.
type AllReduces struct {
	TP2 AllReduce `toml:"tp2"`
	TP4 AllReduce `toml:"tp4"`
	TP8 AllReduce `toml:"tp8"`
}

func (a AllReduces) of(tp int) AllReduce {
	switch tp {
	case 2:
		return a.TP2
	case 4:
		return a.TP4
	case 8:
		return a.TP8
	}
	return AllReduce{}
}

// ByDtype holds one set of coefficients per number format; a zero set was not
// measured.
type ByDtype[T comparable] struct {
	BF16 T `toml:"bf16"`
	FP8  T `toml:"fp8"`
}

func (b ByDtype[T]) of(dtype string) (T, error) {
	var zero T
	v := b.BF16
	if dtype == FP8 {
		v = b.FP8
	}
	if v == zero {
		return zero, fmt.Errorf("no %s coefficients in the catalogue", dtype)
	}
	return v, nil
}

// Common holds what the step time and power models share between all GPUs.
type Common struct {
	KappaFixed    float64 `toml:"kappa_fixed"`     // share of kernel-table compute speed without thermal model
	KappaMaxClock float64 `toml:"kappa_max_clock"` // the same at maximum clock with it

	LayerSmallUs   float64 `toml:"layer_small_us"`   // norms, rope, KV write, activation: launches, µs per layer
	SmallMemoryEff float64 `toml:"small_memory_eff"` // share of HBM peak on their bytes
	EagerLayerUs   float64 `toml:"eager_layer_us"`   // launch floor of a layer without CUDA graph, µs
	GraphMaxTokens int32   `toml:"graph_max_tokens"` // largest captured CUDA graph, tokens

	SamplerBytes     float64 `toml:"sampler_bytes"`      // per logit
	SamplerMemoryEff float64 `toml:"sampler_memory_eff"` // share of HBM peak

	AllReduceKnotBytes [allReduceKnots]int64 `toml:"all_reduce_knot_bytes"`

	Power   Power             `toml:"power"`
	Sources map[string]string `toml:"source"` // read-only, shared by copies
}

// Power holds the power and heat figures of a GPU of ReferenceTDPW; NewHeat
// scales them to other GPUs by their TDP.
type Power struct {
	ReferenceTDPW   float64 `toml:"reference_tdp_w"`
	IdleW           float64 `toml:"idle_w"`
	MemoryW         float64 `toml:"memory_w"`           // at full HBM rate
	ComputeW        float64 `toml:"compute_w"`          // at full tensor-core rate and maximum clock
	ComputeExponent float64 `toml:"compute_exponent"`   // of the tensor-core rate, 0–1
	ResistanceCPerW float64 `toml:"resistance_c_per_w"` // inlet air to sensor
	TimeConstantS   float64 `toml:"time_constant_s"`
	HysteresisC     float64 `toml:"hysteresis_c"` // a slowdown ends this far below MaxTempC
}

// peakFLOPS returns the dense peak of a weight dtype in FLOP/s.
func (g GPU) peakFLOPS(dtype string) float64 {
	if dtype == FP8 {
		return g.PeakFP8TFLOPS * 1e12
	}
	return g.PeakBF16TFLOPS * 1e12
}

// bandwidth returns the HBM peak in bytes/s.
func (g GPU) bandwidth() float64 { return g.BandwidthGBs * 1e9 }

// maxBin returns the clock bin of the maximum SM clock.
func (g GPU) maxBin() int { return g.MaxClockMHz / ClockStepMHz }
