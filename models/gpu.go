package models

import (
	"fmt"
	"strings"
)

// GPU is one accelerator: its data sheet, and the kernel coefficients measured
// on it, or taken over from the GPU that it is Like. Each figure's source is in
// Sources under the figure's TOML key; one that starts with "unknown" marks a
// figure that nobody published, whose value is zero.
type GPU struct {
	Name      string   `toml:"name"`
	Aliases   []string `toml:"aliases"`
	MemoryMiB int      `toml:"memory_mib"` // as torch sees it

	PeakBF16TFLOPS float64 `toml:"peak_bf16_tflops"` // dense
	PeakFP8TFLOPS  float64 `toml:"peak_fp8_tflops"`  // dense; 0 = not supported
	PeakINT8TOPS   float64 `toml:"peak_int8_tops"`   // dense; 0 = not supported
	PeakFP4TFLOPS  float64 `toml:"peak_fp4_tflops"`  // dense; 0 = not supported
	BandwidthGBs   float64 `toml:"bandwidth_gbs"`    // HBM, GB/s
	NVLinkGBs      float64 `toml:"nvlink_gbs"`       // one direction per GPU; 0 = PCIe only

	SMs      int     `toml:"sms"`       // streaming multiprocessors, or compute units
	Topology string  `toml:"topology"`  // of the links between a node's GPUs: one of topologies
	NodeGPUs int     `toml:"node_gpus"` // GPUs that these links connect
	PCIeGBs  float64 `toml:"pcie_gbs"`  // one direction per GPU

	TDPW           float64 `toml:"tdp_w"`
	MaxClockMHz    int     `toml:"max_clock_mhz"`
	MinClockMHz    int     `toml:"min_clock_mhz"`     // lowest SM clock that a power cap or heat leads to
	MaxTempC       float64 `toml:"max_temp_c"`        // software thermal slowdown starts here; 0 = unknown
	MaxMemoryTempC float64 `toml:"max_memory_temp_c"` // HBM slows the GPU down above; 0 = unknown, never

	// Like names the GPU whose kernel efficiencies and collectives are taken over:
	// nothing was measured on this one. Links are those of LinkLike, if given.
	Like     string `toml:"like"`
	LinkLike string `toml:"link_like"`

	GEMM      ByDtype[GEMM]      `toml:"gemm"`       // by weight dtype
	Attention ByDtype[Attention] `toml:"attention"`  // by KV dtype
	MoE       ExpertKernels      `toml:"moe"`        // by weight dtype and kernel
	MLA       ByDtype[MLAKernel] `toml:"mla"`        // by weight dtype
	AllReduce AllReduces         `toml:"all_reduce"` // by TP degree
	AllToAll  AllToAll           `toml:"all_to_all"`

	Common  Common            `toml:"-"`      // the catalogue's constants for every GPU
	Sources map[string]string `toml:"source"` // read-only, shared by copies
}

// Topologies of the links between the GPUs of a node.
const (
	meshTopology  = "mesh"  // every pair at full speed (NVSwitch, Infinity Fabric)
	pairsTopology = "pairs" // bridges between pairs, PCIe between these
	pcieTopology  = "pcie"
)

// GEMM holds the coefficients of a matrix multiplication's time (see
// gemmKernel.seconds), fitted to a kernel table at locked maximum clock.
type GEMM struct {
	LaunchUs   float64 `toml:"launch_us"`   // t0, µs per kernel
	ComputeEff float64 `toml:"compute_eff"` // ef, share of the dtype's dense peak, 0–1
	MemoryEff  float64 `toml:"memory_eff"`  // em, share of HBM peak, 0–1
	P          float64 `toml:"p"`           // how sharply compute and memory time combine; large = max
	QuantPs    float64 `toml:"quant_ps"`    // aq, ps per activation element, dynamic FP8 scales only
	Wave       float64 `toml:"wave"`        // share of the last, partly filled wave of tiles that costs a full one
	ExtraK     float64 `toml:"extra_k"`     // start of a tile, as extra columns of k
	MemoryWave float64 `toml:"memory_wave"` // the same as wave for the bytes of narrow outputs
	MPower     float64 `toml:"m_power"`     // how compute time per row grows with m
	MAPEPct    float64 `toml:"mape_pct"`    // mean absolute error on the shapes left out of the fit, %
}

// Attention holds the coefficients of the attention kernels of one layer.
type Attention struct {
	PrefillUs         float64 `toml:"prefill_us"`            // launch, µs per layer
	PrefillEff        float64 `toml:"prefill_eff"`           // ea, share of the dense BF16 peak, 0–1
	PrefillPasses     float64 `toml:"prefill_passes"`        // over the bytes of Q, K, V and output
	DecodeUs          float64 `toml:"decode_us"`             // launch, µs per layer
	DecodeEff         float64 `toml:"decode_eff"`            // eg, share of HBM peak on KV bytes, 0–1
	DecodePerSeqNs    float64 `toml:"decode_per_seq_ns"`     // g_seq, ns per decode row and layer
	DecodePerKVHeadNs float64 `toml:"decode_per_kv_head_ns"` // g_kv, ns per decode row, KV head and layer
	DecodeOccupancy   float64 `toml:"decode_occupancy"`      // o: KV is read 1 + o/(rows·KV heads) times as slowly
	PrefillMAPEPct    float64 `toml:"prefill_mape_pct"`      // %
	DecodeMAPEPct     float64 `toml:"decode_mape_pct"`       // %
}

// MoEKernel holds the coefficients of a layer's expert GEMMs with routing,
// permutation and sum (see moeKernel.seconds).
type MoEKernel struct {
	LaunchUs   float64 `toml:"launch_us"`
	ComputeEff float64 `toml:"compute_eff"` // share of the dtype's dense peak
	MemoryEff  float64 `toml:"memory_eff"`  // share of HBM peak, on the weights of the experts touched
	LocalBytes float64 `toml:"local_bytes"` // a_l: passes over the activations of this rank's experts
	GroupBytes float64 `toml:"group_bytes"` // a_g: passes over those of the whole group
	MAPEPct    float64 `toml:"mape_pct"`
}

// ExpertKernels are the expert layers' coefficients by weight dtype, and those of
// further kernels for mxfp4, which a deployment names (see Deployment.ExpertKernel).
type ExpertKernels struct {
	ByDtype[MoEKernel]
	MXFP8  MoEKernel `toml:"mxfp4_mxfp8"`
	Marlin MoEKernel `toml:"mxfp4_marlin"`
}

// named returns the coefficients of a kernel that a deployment names.
func (k *ExpertKernels) named(kernel string) MoEKernel {
	switch kernel {
	case ExpertMXFP8:
		return k.MXFP8
	case ExpertMarlin:
		return k.Marlin
	}
	return MoEKernel{}
}

// MLAKernel holds the coefficients of a whole latent-attention block:
// projections, attention and output (see mlaKernel).
type MLAKernel struct {
	DecodeUs       float64 `toml:"decode_us"`
	ComputeEff     float64 `toml:"compute_eff"` // of the projections, share of the dtype's peak
	MemoryEff      float64 `toml:"memory_eff"`
	AttnEff        float64 `toml:"attn_eff"`    // of decode attention, share of the BF16 peak
	KVEff          float64 `toml:"kv_eff"`      // share of HBM peak on a BF16 latent
	KVEffFP8       float64 `toml:"kv_eff_fp8"`  // the same on an FP8 latent
	SeqHeadPs      float64 `toml:"seq_head_ps"` // per decode row and head of the rank
	PrefillUs      float64 `toml:"prefill_us"`
	PrefillEff     float64 `toml:"prefill_eff"`      // projections of prefill
	PrefillAttnEff float64 `toml:"prefill_attn_eff"` // share of the BF16 peak
	TokenHeadPs    float64 `toml:"token_head_ps"`    // per prefill token and head
	DecodeMAPEPct  float64 `toml:"decode_mape_pct"`
	PrefillMAPEPct float64 `toml:"prefill_mape_pct"`
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

// AllToAll is the exchange of tokens with the GPUs that hold their experts, on
// one node: alpha + bytes of the rank's tokens/bus, for dispatch and combine each.
type AllToAll struct {
	AlphaUs float64 `toml:"alpha_us"`
	BusGBs  float64 `toml:"bus_gbs"`
}

// ByDtype holds one set of coefficients per number format; a zero set was not
// measured.
type ByDtype[T comparable] struct {
	BF16  T `toml:"bf16"`
	FP8   T `toml:"fp8"`
	MXFP4 T `toml:"mxfp4"`
	NVFP4 T `toml:"nvfp4"`
}

// of returns the coefficients measured for a dtype.
func (b ByDtype[T]) of(dtype string) (T, bool) {
	var zero T
	v := zero
	switch dtype {
	case BF16:
		v = b.BF16
	case FP8:
		v = b.FP8
	case MXFP4:
		v = b.MXFP4
	case NVFP4:
		v = b.NVFP4
	}
	return v, v != zero
}

// Common holds what the step time and power models share between all GPUs.
type Common struct {
	KappaFixed    float64 `toml:"kappa_fixed"`     // share of kernel-table compute speed without thermal model
	KappaMaxClock float64 `toml:"kappa_max_clock"` // the same at maximum clock with it

	LayerSmallUs   float64 `toml:"layer_small_us"`   // norms, rope, KV write, activation: launches, µs per layer
	SmallMemoryEff float64 `toml:"small_memory_eff"` // share of HBM peak on their bytes

	EagerLayerUs   float64 `toml:"eager_layer_us"`   // least time of a layer in a step without CUDA graph, µs
	GraphMaxTokens int32   `toml:"graph_max_tokens"` // largest captured step

	SamplerBytes     float64 `toml:"sampler_bytes"` // passes over the logits, bytes per sequence and vocabulary entry
	SamplerMemoryEff float64 `toml:"sampler_memory_eff"`
	TopPSortNs       float64 `toml:"top_p_sort_ns"` // sampling by top-p: sort of the vocabulary, ns per logit and sequence
	TopKSortNs       float64 `toml:"top_k_sort_ns"` // the same with top-k, which besides masks by rank

	AllReduceKnotBytes [allReduceKnots]int64 `toml:"all_reduce_knot_bytes"`

	NetworkGBs       float64 `toml:"network_gbs"`        // one NIC per GPU, one direction
	NetworkUs        float64 `toml:"network_us"`         // latency of a hop between nodes
	NodeLinkUs       float64 `toml:"node_link_us"`       // latency of a hop between the GPUs of a node
	RouterSkewFactor float64 `toml:"router_skew_factor"` // see DefaultExpertImbalance
	RouterSkewPower  float64 `toml:"router_skew_power"`

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

	MemoryResistanceCPerW float64 `toml:"memory_resistance_c_per_w"` // GPU sensor to HBM, per watt of memory power
	MemoryTimeConstantS   float64 `toml:"memory_time_constant_s"`
}

// bandwidth returns the HBM peak in bytes/s.
func (g GPU) bandwidth() float64 { return g.BandwidthGBs * 1e9 }

// peakBF16 returns the dense BF16 peak in FLOP/s.
func (g GPU) peakBF16() float64 { return g.PeakBF16TFLOPS * 1e12 }

// maxBin returns the clock bin of the maximum SM clock.
func (g GPU) maxBin() int { return g.MaxClockMHz / ClockStepMHz }

// Measured says whether kernels were measured on this GPU. If not, its step
// times are those of another GPU scaled by the peak rates: right to about ±30 %.
func (g GPU) Measured() bool { return g.Like == "" }

// Unknown returns the keys of the figures that nobody published.
func (g GPU) Unknown() []string {
	var keys []string
	for _, key := range []string{"max_temp_c", "min_clock_mhz"} {
		if strings.HasPrefix(g.Sources[key], "unknown") {
			keys = append(keys, key)
		}
	}
	return keys
}

// CheckThermal says why power and heat cannot be modelled on this GPU: figures
// that they need are unknown, and are not guessed.
func (g GPU) CheckThermal() error {
	if keys := g.Unknown(); len(keys) > 0 {
		return fmt.Errorf("heat of %s cannot be modelled, unknown: %s (%s)", g.Name, strings.Join(keys, ", "),
			strings.TrimPrefix(g.Sources[keys[0]], "unknown: "))
	}
	return nil
}
