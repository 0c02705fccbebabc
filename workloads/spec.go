package workloads

import "slosim/sim/clock"

// Class is one stream of traffic: its arrivals, lengths and clients.
type Class struct {
	Name   string
	Stream string // key of the class's random draws; the name unless given
	Rate   Rate
	Prompt Dist // tokens
	Output Dist // tokens, the first token included
	// Correlation is Spearman's rank correlation of prompt and output, in (−1, 1).
	Correlation float64 `json:",omitempty"`
	Client      Client
	Session     Session
	Trace       *Trace // when set, arrivals and lengths come from a file instead
	// Recorded requests are replayed as they are: send time, lengths, content. In
	// order of Send; nothing else of the class but Client counts then.
	Recorded []Request `json:",omitempty"`

	Priority int32  // smaller goes first, where the scheduler looks at it
	System   System // shared system prompts
	Hit      Hit    // statistical model of prefix-cache hits
}

// System is a set of system prompts that a class's requests begin with: equal
// content that a prefix cache can share. The prompt length includes it.
type System struct {
	Tokens   int32   // of each; 0 = none
	Variants int32   // how many there are
	Skew     float64 `json:",omitempty"` // Zipf: the k-th is drawn in proportion to k^−Skew; 0 = equally popular
}

// Hit draws how much of a prompt a prefix cache holds, without modelling the
// cache's content: with probability Ratio its first Tokens are found.
type Hit struct {
	Ratio  float64 // 0 = no hit model
	Tokens Dist    // cut to the prompt
}

// Dist is a length distribution. Which fields count depends on Kind:
// "fixed" (Mean), "normal" (Mean, SD), "lognormal" (Sigma and Mu, or else Mean and
// P99), "exponential" (Mean), "pareto" (Min, Alpha), "uniform" (Min, Max),
// "empirical" (Points), "mixture" (Parts; Points once it is Prepared). Samples are rounded to whole tokens, at
// least 1, and cut to [Min, Max] where these are > 0.
type Dist struct {
	Kind      string
	Mean      float64
	P99       float64
	SD        float64 `json:",omitempty"`
	Mu, Sigma float64 `json:",omitempty"` // of the logarithm
	Alpha     float64 `json:",omitempty"` // tail index: P(X > x) = (Min/x)^Alpha
	Min, Max  float64
	Points    []Point // cumulative distribution, in order of P, linear in between
	Parts     []Part  `json:",omitempty"`
	Tail      Tail    `json:",omitzero"`
}

// Part is one component of a mixture. Shares add up to 1.
type Part struct {
	Share float64
	Dist  Dist
}

// Tail replaces what lies above a quantile by a Pareto tail: for u > From the
// quantile is Q(From)·((1 − From)/(1 − u))^(1/Alpha).
type Tail struct {
	From  float64 // share of requests below the tail
	Alpha float64 // > 1; 0 = no tail
}

// Point is one knot of a cumulative distribution: P(length ≤ Tokens) = P.
type Point struct{ Tokens, P float64 }

// Client is how the callers of a class behave.
type Client struct {
	// MaxInFlight > 0: an open loop behind a client-side cap; an arrival that
	// finds the cap reached is sent when a request in flight ends.
	MaxInFlight int
	// Users > 0: a closed loop. Each user sends, waits for the last token,
	// thinks, and sends again; Rate is not used.
	Users int
	Think Dist // seconds, with Users

	Timeout  clock.Duration // from send to the last token; then the client cancels; 0 = it waits for ever
	Patience Dist           // seconds to the first token, likewise; Kind "" = for ever
	Retry    Retry
}

// Retry is what a client does after a time-out, or after a 429.
type Retry struct {
	Times   int            // further attempts; 0 = none
	Backoff clock.Duration // before the second attempt
	Factor  float64        // by which it grows with every attempt, ≥ 1
	Limit   clock.Duration // of the back-off; 0 = none
	Jitter  float64        // share of the back-off that is drawn uniformly, 0..1 (1 = "full jitter")
}

// Trace names a file of requests to replay.
type Trace struct {
	File    string         // path; experiments resolve it relative to their own file
	Format  string         // one of TraceFormats
	Arrival string         // csv, jsonl, parquet: columns; jsonl takes paths such as "usage.prompt_tokens"
	Prompt  string         //
	Output  string         //
	Unit    clock.Duration // csv, jsonl, parquet, mooncake: unit of the time stamps
	Block   int32          // mooncake: prompt tokens that an id stands for
	SkipBad int64          // broken rows that are passed over; one more is an error
	SHA256  string         // of the file's bytes, so that an experiment's hash covers them

	Where Where   `json:",omitzero"`  // only rows whose column has a value
	Speed float64 `json:",omitempty"` // time runs so much faster than in the file; 0 = as there
	Rate  float64 `json:",omitempty"` // requests for each of the file's, with its rate curve and burstiness; 0 = 1
	Loop  bool    `json:",omitempty"` // start again at the end
}

// Where keeps the rows whose column holds exactly Is.
type Where struct{ Column, Is string }

// Change alters a class from a time on.
type Change struct {
	Name  string // the cohort that the moved share forms
	Class string
	At    clock.Duration
	Ramp  clock.Duration
	Share float64 // of the class's requests that join the cohort, 0..1
	Steps []Step  `json:",omitempty"` // a canary: progress in steps over Ramp instead of linear
	// Until > 0: rolled back then; nothing of the change is in force any more.
	Until clock.Duration `json:",omitempty"`

	RateFactor float64 // of the whole class's rate, reached at the end of the ramp; 1 or 0 = unchanged
	Prompt     *Dist   // of the cohort; nil = unchanged
	Output     *Dist
	OutputCap  int32   `json:",omitempty"` // of the cohort's outputs; 0 = none
	System     *System `json:",omitempty"` // of the cohort: system prompts with content of their own
	Hit        *Hit    `json:",omitempty"` // of the cohort: the model of prefix-cache hits
}

// Step is one stage of a canary: from After on, Progress of the change is in
// force. Steps are in order; the last has progress 1.
type Step struct {
	After    clock.Duration // since the change's At
	Progress float64
}

// Request is one request on its way through the cluster.
type Request struct {
	Send     clock.Time // when the client sends it
	Index    int64      // number within its class, pre-roll included
	Prompt   int32      // tokens, ≥ 1
	Output   int32      // tokens, ≥ 1, the first token included
	Class    int32      // index into the experiment's traffic
	Cohort   int32      // 0 = the class itself, else 1 + index into the experiment's changes
	ID       int32      // slot in the table of requests in flight
	Priority int32      // smaller goes first, where the scheduler looks at it
	Cached   int32      // leading prompt tokens that a prefix cache holds, where a hit model draws them
	Known    int32      // leading prompt tokens that were sent before: a shared system prompt, a conversation
	Handover Handover   // which half of a disaggregated request a replica gets
	Chain    Chain      // content, for a prefix cache that looks for it
}

// Plain tells whether a request has no more than any has: neither priority nor content
// nor tokens that are known, and one replica serves it whole.
func (r *Request) Plain() bool {
	return r.Priority|r.Cached|r.Known|r.Chain.UnitSize|int32(r.Handover) == 0
}

// Handover says which half of a request a replica serves when prefill and decode
// are disaggregated.
type Handover uint8

// The halves of a request.
const (
	Whole       Handover = iota // both
	PrefillHalf                 // compute the prompt's KV, keep it until it is released
	DecodeHalf                  // the prompt's KV comes from elsewhere; compute its last token again, then decode
)
