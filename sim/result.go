package sim

import (
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

// Result is what a run found: per phase and cohort, per SLO, per pool, and over
// time. All times are simulated; nothing depends on the machine.
type Result struct {
	Experiment  Experiment
	Seeds       []uint64   // one per replication
	Partial     bool       // interrupted: covers [0, End) only
	End         clock.Time // end of the counted span
	Verdict     Verdict
	Phases      []Phase
	SLOs        []SLO
	SLAs        []SLA
	Pools       []PoolResult
	Series      Series
	Actions     []Action     // what the control plane did, in the first replication
	Costs       []ClassCost  // by pool and class
	Findings    []Finding    // ordered by how much of the bad events they explain
	Held        []HeldChange // changes that error budgets may hold back
	Warnings    []string
	Stages      []StageReport // of classes with stage budgets
	NotModelled []string      // what the run leaves out, in plain words
	Precision   Precision     // of a run that replicates until it is reached
	Requests    int64         // simulated over all replications, pre-roll and cool-down included
	Steps       int64         // engine steps, all replications
}

// Status of an SLO or of a whole run.
type Status string

// The three-valued verdict.
const (
	Met       Status = "MET"
	Missed    Status = "MISSED"
	Undecided Status = "UNDECIDED"
)

// Verdict is the answer to the experiment's question.
type Verdict struct {
	Status Status
	SLO    string // the objective that decided it
	Reason string // one sentence
}

// Phase is a span between changes; headline numbers are per phase.
type Phase struct {
	Name     string // "before", "ramp", "after", or with the change's name when there are several
	From, To clock.Time
	Classes  []ClassPhase
}

// ClassPhase is one class, or one cohort of it, in one phase.
type ClassPhase struct {
	Class  string
	Cohort string // "all", "existing" (in no cohort), or a change's name
	N      int64  // arrivals, all replications

	Outcomes Outcomes
	TTFT     Distribution // seconds; never answered = +Inf
	Answered Distribution // TTFT of the answered requests only
	TPOT     Distribution
	E2E      Distribution
	Stages   Stages       // mean seconds of each stage, of requests with a first token
	Prompt   Distribution // tokens
	Output   Distribution // tokens

	// ByLength is TTFT by prompt length: one entry per bucket of PromptEdges, the
	// last one open. Quantiles are within 0.8 %; R = 0 in empty buckets.
	ByLength []LengthBand
}

// LengthBand is the requests of one prompt-length bucket.
type LengthBand struct {
	UpTo     float64        // upper edge, tokens; +Inf for the last
	N        int64          // answered, all replications
	P50, P99 stats.Estimate // TTFT, seconds
}

// Outcomes counts what became of requests, all replications.
type Outcomes struct {
	OK, Rejected, TimedOut, Failed int64
	Late                           int64           // undecided at the end, older than the threshold
	Young                          int64           // unfinished at the end and not late: no events beyond what was decided already
	Retries                        int64           // of all requests: second and later attempts
	Refused                        [Refusals]int64 // of Rejected, by RefusalNames
	Lost                           int64           // requests whose last attempt was rejected or timed out, by the time of that
}

// Distribution summarises one metric.
type Distribution struct {
	Mean, P50, P90, P95, P99, P999 stats.Estimate
	Max                            float64
	Exact                          bool    // quantiles from all values, not from a histogram
	RelError                       float64 // bound of the histogram's error otherwise
}

// Stages are the parts of a request's life, in seconds: Network is network and
// front end; the first, second, third and fifth add up to TTFT.
type Stages struct {
	Network, Queue, Prefill, Decode, Publish stats.Estimate
}

// StageNames in the order of Blame.Bad and of a request's life.
var StageNames = [5]string{"network", "queue", "prefill", "decode", "publish"}

// SLO is what became of one objective.
type SLO struct {
	slo.Objective
	Status     Status
	Judged     string         // the phase that Status and Attained are about: the last one
	Attained   stats.Estimate // good ÷ (good + bad) in that phase
	Good, Bad  int64          // all replications
	Reason     string
	MoreReps   int            // replications that would decide an UNDECIDED; 0 = unknown
	IdleFloor  stats.Estimate // share that misses the threshold on an idle replica, last phase; R = 0 if not defined
	IdleLength int32          // smallest prompt that misses it; 0 = none
	Phases     []SLOPhase     // same order as Result.Phases
	Blame      []Blame        // bad events by cohort and stage, largest first
	BlameText  string         // the same as a sentence
	Budget     Budget
	Burn       []BurnPoint       // mean over replications, over the span
	Alerts     []Alert           // of the first replication
	Policy     []slo.PolicyEvent // of the first replication
	Weeks      []Week            // the weekly review
	Again      int64             // of Bad: of second and later attempts
	Bands      []SLOBand         // of an objective on TTFT, by prompt length, last phase
	Adjusted   []slo.Adjustment  // of an adaptive threshold, first replication
	InForce    stats.Estimate    // seconds: mean over the span of an adaptive threshold; R = 0 where it stands
}

// SLOPhase is an objective within a phase.
type SLOPhase struct {
	Good, Bad int64
	BadShare  stats.Estimate
}

// SLOBand is the requests of one prompt-length bucket in the last phase.
type SLOBand struct {
	UpTo   float64 // tokens, +Inf for the last
	N, Bad int64   // answered, and of them too late; all replications
	Tokens float64 // prompt tokens
}

// Blame is a share of the bad events of an objective.
type Blame struct {
	Cohort string
	Stage  string // dominant stage; "rejected", "never answered" or "given up" for events without an answer
	Share  float64
	Count  int64
}

// Budget is an objective's error budget and its projection.
type Budget struct {
	Total          float64        // bad events allowed in the window
	WindowN        float64        // requests expected in the window
	Spent          stats.Estimate // share of Total spent within the span
	Projected      stats.Estimate // share of Total spent at the window's end; R = 0 if no projection
	Marks          []Mark         // 50, 80, 100 %
	Unstable       bool           // the backlog grew: marks are a lower bound
	Needs          string         // why there is no projection, and what it would take
	WeekAlarm      bool           // 80 % of the window's budget spent within one week
	BadMinutes     stats.Estimate // minutes of the span whose bad share exceeds 1 − target
	AllowedMinutes float64        // (1 − target) × window, in minutes
	Curve          []BudgetPoint  // from 0 to the window's end or until exhausted + 1 day; hourly after the span
}

// Mark is the first time that Percent of the budget is spent.
type Mark struct {
	Percent float64
	Reached bool
	At      clock.Time // mean over the replications that reach it
	Lo, Hi  clock.Time
	InSpan  bool // simulated, not projected
}

// BudgetPoint is the spent share of a budget at a time.
type BudgetPoint struct {
	T         clock.Time
	Spent     float64 // mean over replications; 1 = all of it
	Lo, Hi    float64
	Projected bool
}

// BurnPoint is the burn rate at a time, over the last hour.
type BurnPoint struct {
	T    clock.Time
	Rate float64
}

// Alert is one firing of a multi-window burn-rate alert.
type Alert struct {
	Name     string // "page 14.4x 1h/5m"
	Severity string // "page" or "ticket"
	Fired    clock.Time
	Resolved clock.Time // clock.Never = still firing at the end
}

// PoolResult is what one pool did.
type PoolResult struct {
	Name           string
	Replicas       int
	GPUs           int
	KVBlocks       int32
	KVTokens       int64
	KVPeak         float64        // largest share of blocks in use on any replica
	Preemptions    stats.Estimate // per replication
	LostTokens     stats.Estimate // tokens computed again after a preemption
	Busy           stats.Estimate // share of time that a step runs
	PrefixHit      stats.Estimate // share of prompt tokens found in the prefix cache
	PrefixLoaded   stats.Estimate // the part of it that came back from host memory
	Serving        stats.Estimate // replicas that serve, mean over time
	Paid           stats.Estimate // replicas that are paid for, likewise
	LinkUse        stats.Estimate // share of the KV link that transfers took; 0 without one
	ITL            []PhaseITL     // per phase
	Load           []PhaseLoad    // per phase
	SaturationRate float64        // requests/s of the last phase's mix that the pool can serve, an autoscaled one at its most
	PeakLoad       float64        // highest rate of the last phase ÷ SaturationRate
	ClockMHz       stats.Estimate // mean
	ClockMinMHz    float64
	PowerW         stats.Estimate // mean per GPU
	TempC          stats.Estimate // mean
	TempMaxC       float64
	GPUHours       float64 // of the span
	USD            float64 // of the span
	USDPerMonth    float64 // 30 days
	EnergyKWh      float64 // of the span: GPUs of replicas that serve, those that start and the warm pool at idle power
	IdleGPUHours   float64 // of GPUHours: no step ran
	IdleUSD        float64
	Unused         float64 // share of what was paid for that the traffic did not need: 1 − mean rate ÷ what the paid replicas can serve; NaN without a closed form
	Split          StepSplit
}

// PhaseLoad is offered load in one phase.
type PhaseLoad struct {
	Phase                          string
	MeanRate, PeakRate, Saturation float64 // requests per second of the pool
}

// StepSplit is where the step time goes, as shares that add up to 1.
type StepSplit struct {
	Gemm, Attn, Comm, Small, Head, Host float64
}

// Series is the run over time, mean over replications unless said otherwise.
// All slices have one entry per window.
type Series struct {
	Width   clock.Duration
	T       []clock.Time // start of each window
	Classes []ClassSeries
	Pools   []PoolSeries
}

// ClassSeries is one class or cohort over time. NaN marks windows without data.
type ClassSeries struct {
	Class, Cohort                    string
	Arrivals                         []float64 // per second
	Completions                      []float64 // per second, by the time of the last token
	Bad                              []float64 // share bad of any objective on the class's TTFT; NaN if none
	TTFTP50, TTFTP99                 []float64 // seconds; +Inf where rejected or never answered requests reach the quantile
	TTFTP99Lo, TTFTP99Hi             []float64 // smallest and largest over replications
	TPOTP50, TPOTP99                 []float64
	Network, Queue, Prefill, Publish []float64 // mean stage, seconds
	PromptP50, PromptP90, PromptP99  []float64
	PromptMix                        [][]float64 // per window: share by PromptEdges bucket ("all" cohort only)
}

// PromptEdges are the upper edges, in tokens, of the prompt-length mix buckets;
// the last bucket is open.
var PromptEdges = []float64{250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000}

// PoolSeries is one pool over time, per replica unless said otherwise.
type PoolSeries struct {
	Name      string
	Running   []float64 // requests
	Waiting   []float64
	KVUse     []float64 // share of blocks
	KVMax     []float64 // largest over the replicas
	Preempt   []float64 // per second, whole pool
	ClockMHz  []float64
	PowerW    []float64 // per GPU
	TempC     []float64
	TempMaxC  []float64
	Split     []StepSplit
	Busy      []float64
	PrefixHit []float64 // share of prompt tokens found in the prefix cache
	Serving   []float64 // replicas that serve
	Paid      []float64 // replicas that are paid for: starting, draining, broken and warm ones too
}

// Finding is a sentence with its evidence.
type Finding struct {
	Title    string
	Evidence string
	Share    float64 // of the bad events it explains; 0 = not attributed

	// Coincides says that Share compares windows of time: what went with it, which need
	// not be its effect.
	Coincides bool
}
