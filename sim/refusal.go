package sim

import "slosim/engine"

// Refusal says why a request was turned away.
type Refusal uint8

// The reasons, by the place where it happens: class limits, the degradation policy,
// the gate of a pool, a replica's queue.
const (
	RefusedRate     Refusal = iota // more requests per second than the class may send
	RefusedTokens                  // more tokens per second
	RefusedInFlight                // too many of the class at once
	RefusedLength                  // prompt longer than the class may send
	RefusedShed                    // the degradation policy sheds the class
	RefusedDown                    // no replica serves, and the gate's queue is full
	RefusedQueue                   // the gate's queue is full
	RefusedWait                    // waited too long at the gate
	RefusedEngine                  // a replica's own queue is full (max_waiting)
	RefusedTooLong                 // prompt ≥ max_model_len: HTTP 400, all others 429
	Refusals        = iota         // how many reasons there are
)

// RefusalNames are the reasons in words, in their order.
var RefusalNames = [Refusals]string{
	"rate limit", "token limit", "in-flight limit", "prompt limit", "shed by a rule", "no replica up", "gate queue full", "gate time-out", "replica queue full", "too long for the engine",
}

// refusalOf is the reason that an engine gives.
func refusalOf(e *engine.Event) Refusal {
	if e.Reason == engine.TooLong {
		return RefusedTooLong
	}
	return RefusedEngine
}
