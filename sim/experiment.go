package sim

import (
	"slosim/models"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/workloads"
)

// Experiment is one run, fully resolved: no defaults are filled in later and no
// catalogue is read any more. It is plain data; where each value came from
// travels beside it (internal/config.Provenance).
type Experiment struct {
	Name       string // file name without .toml
	Title      string
	Question   string
	Postmortem string `json:",omitempty"` // where incidents are reviewed
	Review     Review `json:"-"`          // by what a launch is judged; no part of what is simulated

	Start        clock.Duration // t = 0, counted from Monday 00:00
	Duration     clock.Duration
	Warmup       clock.Duration // pre-roll, simulated and not counted
	Seed         uint64
	Replications int
	// Settle shortens the warm-up to what MSER-5 finds to be enough in a pilot run.
	Settle bool `json:",omitzero"`
	// Metrics is whose definitions the reported quantiles and TPOT follow: one of
	// Definitions, or "" for ours.
	Metrics string `json:",omitempty"`
	// Precision is the half width of the intervals, relative to their values, until
	// which further replications are run, up to MaxReplications; 0 = off.
	Precision       float64 `json:",omitzero"`
	MaxReplications int     `json:",omitzero"`

	Network clock.Duration // client → gateway, one way; 0 = not modelled

	Pools   []Pool
	Traffic []workloads.Class
	Changes []workloads.Change // in order of At
	SLOs    []slo.Objective
	SLAs    []slo.SLA `json:",omitempty"` // what was sold
	Holds   []Hold    `json:",omitempty"` // changes that error budgets may hold back

	StageBudgets []StageBudget `json:",omitempty"`

	Limits []Limit // per class; nil = none

	Faults   []Fault
	Rollouts []Rollout
	Rules    []Rule

	// Assumptions lists, in plain words, every value of this experiment that has
	// no citable source; the report prints them.
	Assumptions []string
}

// Pool is a group of equal replicas.
type Pool struct {
	Name       string
	Classes    []string // traffic classes it serves; empty = all
	Replicas   int
	Router     string         // one of Routers
	Stale      clock.Duration // between polls of what the router cannot count itself
	GPUHourUSD float64

	// Role splits prefill from decode: "" does both, "prefill" computes prompts for
	// the "decode" pool that serves the same class.
	Role string
	Link Link // of each replica, for KV between prefill and decode

	Deployment models.Deployment // model on its GPUs: memory and step time
	Engine     EngineSpec
	Thermal    ThermalSpec

	// MinPrompt and MaxPrompt bound the prompts that it takes of its classes, [Min,
	// Max); 0 = no bound. Uncached measures what a shared beginning does not cover.
	MinPrompt, MaxPrompt int32
	Uncached             bool
	Standby              bool // it takes only what overflows to it or a rule sends
	// Overflow sends to another pool what finds more than this many requests per
	// serving replica, or none that serves.
	OverflowTo string
	OverflowAt float64

	Gate      Gate
	Autoscale *Autoscale
	Wear      Wear
	Zones     int
}

// Link is one replica's network for KV transfers: full duplex, shared max–min
// fairly by the transfers that use it.
type Link struct {
	BytesPerS float64        // each way
	Latency   clock.Duration // proxy hop and set-up of one transfer
	// Overlap sends layer by layer during prefill: only what prefill could not hide
	// and the last layer remain.
	Overlap bool
	// MinTokens sends only prompts of at least so many tokens to the prefill pool;
	// shorter ones are computed where they decode. Set on the decode pool.
	MinTokens int32
}

// EngineSpec is how one replica schedules.
type EngineSpec struct {
	Kind             string // "vllm", "sglang", "trtllm", "tgi" or "static"
	MaxBatchedTokens int32  // token budget of a step
	MaxSeqs          int32  // requests running at once
	MaxModelLen      int32  // prompt + output tokens
	BlockSize        int32  // tokens per KV block, a power of two
	KVBlocks         int32  // of the pool, null block included
	MaxWaiting       int32  // requests that may wait in a replica; further ones are rejected; 0 = no limit
	MaxNewTokens     int32  // output that clients ask for, where a scheduler reserves it; 0 = the output itself

	// vLLM
	ReserveFullPrompt bool    // admit only when the whole prompt fits (scheduler_reserve_full_isl)
	Watermark         float64 // share of blocks kept free at admission
	LongPrefillTokens int32   // long_prefill_token_threshold; 0 = off
	Priority          bool    // policy "priority" instead of "fcfs"
	SkipAhead         int32   // what-if: requests that admission looks past when one does not fit
	StopEOS           bool    // outputs end by EOS, unknown ahead, instead of by max_tokens
	PrefixCache       bool
	OffloadBlocks     int32          // KV blocks in host memory; 0 = no second tier
	OffloadBlockPs    int64          // time to load one block, ps
	SpecDrafts        int32          // speculative decoding: drafts per step; 0 = off
	SpecAccept        float64        // probability that a draft is accepted, in [0, 1)
	SpecDraftTime     clock.Duration // of one draft, for the whole batch
	Stepping          bool           // simulate every step boundary instead of closed-form stretches

	// SGLang
	ChunkTokens      int32   // chunked_prefill_size
	Conservativeness float64 // schedule_conservativeness
	MixedChunk       bool    // enable_mixed_chunk

	// TensorRT-LLM
	Frontend       string // of trtllm: the server around it; it chooses calibrated host times
	CapacityPolicy string // "guaranteed_no_evict", "max_utilization" or "static_batch"

	// TGI
	WaitingServedRatio    float64
	MaxWaitingTokens      int32
	MaxBatchPrefillTokens int32
	MaxBatchTotalTokens   int32
}

// ThermalSpec is the thermal model of a pool's GPUs.
type ThermalSpec struct {
	Enabled  bool
	AmbientC float64 // inlet air, mean over the day

	SwingC    float64        // the inlet's daily cosine: so much above and below AmbientC
	HottestAt clock.Duration // of the day
	HotC      float64        // a hot aisle: its inlet is warmer by so much
	HotFrom   int            // replicas in it, from the first on

	RackW        float64 // power that the GPUs of a rack may draw together; 0 = no limit
	RackReplicas int     // consecutive replicas in a rack
}

// gpusPerReplica returns the GPUs of one replica.
func (p *Pool) gpusPerReplica() float64 { return float64(p.Deployment.GPUs()) }

// GPUs returns how many GPUs the pool holds at the start.
func (p Pool) GPUs() int { return p.Replicas * p.Deployment.GPUs() }

// Review is by what sim review judges a launch. The zero value stands for its
// defaults.
type Review struct {
	Gate      string  // "block", "warn" or "none": the call that fails a pipeline
	Material  float64 // growth of the burn rate from which on a worsening counts
	Chance    float64 // family-wise level of the test
	TimeLimit clock.Duration
	Levers    bool
}
