package engine

import (
	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// Kind says what happened to a request.
type Kind uint8

// The kinds of events. A Finished request with one output token has no separate
// FirstToken event.
const (
	FirstToken Kind = iota + 1 // its first token became visible
	Finished                   // its last token became visible
	Preempted                  // lost its KV blocks; queued again
	Rejected                   // turned away, for a Reason
	KVReady                    // PrefillHalf: the prompt's KV is complete and kept until Release
	Reserved                   // DecodeHalf: the prompt's blocks are reserved, its KV may come
)

// Event is one externally visible change of a request's state.
type Event struct {
	Kind Kind
	ID   int32      // Request.ID
	At   clock.Time // when it is visible to the client; may lie after the step's end by the publish delay

	// FirstToken and Finished with one token: stage borders. Ready is when the
	// front end handed the request to the scheduler, Started the start of the
	// step with the first chunk (of the last attempt, after a preemption),
	// Prefilled the end of the step with the last chunk.
	Ready, Started, Prefilled clock.Time

	Lost   int32  // Preempted: tokens whose KV must be computed again
	Reason Reason // Rejected: why
	Row    int32  // KVReady, Reserved: what Release and Arrived ask for
}

// Reason says why a request was rejected.
type Reason uint8

// The reasons of a rejection.
const (
	TooLong   Reason = iota + 1 // prompt ≥ max_model_len: HTTP 400
	QueueFull                   // the queue limit is reached: HTTP 429
)

// Handing is a replica that can serve one half of a request (VLLM). A prefill
// replica keeps the KV of a finished prompt until Release; a decode replica
// reserves the blocks of the whole prompt before its KV may come, and computes the
// last token again once it has Arrived (vLLM's NIXL connector, pull).
type Handing interface {
	Replica
	Release(now clock.Time, row int32)
	Arrived(now clock.Time, row int32)
}

// Load is a replica's state at an instant.
type Load struct {
	Running, Waiting int32 // requests in the batch; in the queue or the front end
	Tokens           int64 // KV tokens held
	Blocks, Total    int32 // KV blocks in use; usable blocks
	Peak             int32 // most KV blocks in use at once, since the start
}

// Spent is a replica's work so far, exact at step boundaries.
type Spent struct {
	models.Cost                // of all finished steps
	Steps       int64          // finished steps
	Busy        clock.Duration // time with a step running, up to Until
	Prompted    int64          // tokens that admitted requests had to compute or find
	Hit         int64          // of them: found in the prefix cache
	Loaded      int64          // of those: loaded from the second tier
	Until       clock.Time     // the last boundary while a step runs, else the time asked for
}

// Replica is one serving engine. Times given to it never decrease; at equal
// times the owner calls Advance before Submit.
type Replica interface {
	// Submit hands over a request that the client's network delivered at now. What
	// it returns stands for the request in Cancel until its last event.
	Submit(now clock.Time, r *workloads.Request) int32
	// Cancel takes a request back whose client has gone. It returns the number of
	// output tokens that were visible by now and whether the request is gone: if
	// not, it comes to its end all the same, by an event.
	Cancel(now clock.Time, handle, id int32) (sent int32, gone bool)
	// Next returns the next instant at which Advance can yield an event.
	Next() (clock.Time, bool)
	// Advance carries the replica to now and appends what became visible.
	Advance(now clock.Time, out []Event) []Event
	// SetClock changes the SM clock from the next step on.
	SetClock(now clock.Time, bin int)
	// Load returns the state at now.
	Load(now clock.Time) Load
	// HintAt says where the replica may note what Advance will need next.
	HintAt(h *Hint)
	// Spent returns the work done up to now; the result holds until the next call of
	// any method.
	Spent(now clock.Time) *Spent
}
