package engine

import (
	"slosim/models"
	"slosim/sim/clock"
)

// Config is how one replica schedules. All limits are per replica.
type Config struct {
	MaxBatchedTokens  int32 // token budget of a step, ≥ MaxSeqs
	MaxSeqs           int32 // requests running at once, ≥ 1
	MaxModelLen       int32 // prompt + output tokens of one request
	BlockSize         int32 // tokens per KV block
	KVBlocks          int32 // null block included; usable are KVBlocks − 1
	WatermarkBlocks   int32 // kept free at admission while anything runs
	LongPrefillTokens int32 // most tokens of one prompt in a step (long_prefill_token_threshold); 0 = no limit
	SkipAhead         int32 // requests of the queue that admission looks past when one does not fit; 0 = strict
	MaxWaiting        int32 // requests that may wait; further ones are rejected; 0 = no limit
	ReserveFullPrompt bool  // admit only when the whole prompt fits in free blocks
	Priority          bool  // order by (priority, arrival) instead of arrival alone
	StopEOS           bool  // ends are not known ahead: with async scheduling a request takes part in one more step
	PrefixCache       bool  // keep finished requests' blocks and find equal prefixes
	Stepping          bool  // visit every step boundary: the reference for closed-form stretches
	Spec              Spec  // speculative decoding
	Gaps              Gaps  // takes the gaps between output tokens; nil = nobody
	Host              models.Host
	Model             models.StepModel
	Clock             int // clock bin at the start; 0 = no thermal model
	Offload           Offload
}

// Gaps takes inter-token latencies. A replica may keep the gaps of a run of equal
// steps back until the run ends or Spent is called.
type Gaps interface {
	// Gap says that so many output tokens were made at end, each of them a length
	// after the one before it. Runs of steps of nearly equal length come as one.
	Gap(end clock.Time, length clock.Duration, tokens int64)
}

// depth is the number of steps whose composition is fixed ahead: the running one
// and, with async scheduling, the next.
func (c *Config) depth() int {
	if c.Host.Async && c.Spec.Drafts == 0 {
		return 2
	}
	return 1
}
