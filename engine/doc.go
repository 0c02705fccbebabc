// Package engine is what one replica does with its queue, step by step:
// continuous batching with chunked prefill, KV blocks and preemption, as vLLM V1
// does it (docs/model.md lists the rules with their source).
//
// It leaves out what a step costs (models) and where requests come from
// (workloads). A replica is a state machine driven from outside: it never looks
// at a clock of its own.
package engine
