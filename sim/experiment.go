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
	Name     string // file name without .toml
	Title    string
	Question string

	Start        clock.Duration // t = 0, counted from Monday 00:00
	Duration     clock.Duration
	Warmup       clock.Duration // pre-roll, simulated and not counted
	Seed         uint64
	Replications int

	Network clock.Duration // client → gateway, one way; 0 = not modelled

	Pools   []Pool
	Traffic []workloads.Class
	Changes []workloads.Change // in order of At
	SLOs    []slo.Objective

	// Assumptions lists, in plain words, every value of this experiment that has
	// no citable source; the report prints them.
	Assumptions []string
}

// Pool is a group of equal replicas.
type Pool struct {
	Name       string
	Classes    []string // traffic classes it serves; empty = all
	Replicas   int
	Router     string // "round-robin" or "least-outstanding"
	GPUHourUSD float64

	Deployment models.Deployment // model on its GPUs: memory and step time
	Engine     EngineSpec
	Thermal    ThermalSpec
}

// EngineSpec is how one replica schedules.
type EngineSpec struct {
	Kind              string  // "vllm"
	MaxBatchedTokens  int32   // token budget of a step
	MaxSeqs           int32   // requests running at once
	MaxModelLen       int32   // prompt + output tokens
	BlockSize         int32   // tokens per KV block
	KVBlocks          int32   // of the pool, null block included
	ReserveFullPrompt bool    // admit only when the whole prompt fits (scheduler_reserve_full_isl)
	Watermark         float64 // share of blocks kept free at admission
	Stepping          bool    // simulate every step boundary instead of closed-form stretches
}

// ThermalSpec is the thermal model of a pool's GPUs.
type ThermalSpec struct {
	Enabled  bool
	AmbientC float64 // inlet air
}

// GPUs returns how many GPUs the pool holds.
func (p Pool) GPUs() int { return p.Replicas * p.Deployment.TP }
