package engine

import (
	"fmt"

	"slosim/sim/clock"
)

// TGIOptions are the settings of Text Generation Inference that have no
// counterpart in Config. Config gives max_batch_size (MaxSeqs) and the block size.
type TGIOptions struct {
	MaxBatchPrefillTokens int32   // prompt tokens of one prefill batch, at most Config.MaxBatchedTokens; 0 = that
	MaxBatchTotalTokens   int64   // prompts and max_new_tokens of all that runs; 0 = the KV pool
	WaitingServedRatio    float64 // waiting ÷ running from which decoding is paused for a prefill; 0 = 0.3
	MaxWaitingTokens      int     // decode steps after which any waiting request is reason enough; 0 = 20
	MaxNewTokens          int32   // max_new_tokens that every client asks for; 0 = just what the request makes
}

// TGI is the router of Text Generation Inference: it reserves the blocks of prompt
// and max_new_tokens − 1 at admission, so that nothing is ever preempted, and
// pauses decoding for a prefill batch when enough requests wait or have waited for
// long enough. Router and server take turns, so a step is never fixed ahead. A
// prompt beyond max_batch_prefill_tokens runs alone in several prefill steps; a
// server without chunking does not start with a bound below the longest prompt.
// Source: backends/v3/src/queue.rs (next_batch), backend.rs (batching_task),
// 2026-01.
type TGI struct {
	rowwise
	o      TGIOptions
	passed int   // waiting_tokens: 1 + decode steps since the last prefill
	turn   bool  // a prefill batch has just been added: the next step decodes
	long   int32 // the job whose prompt takes several steps; none otherwise
}

// NewTGI returns an idle replica. It panics on contradictory limits.
func NewTGI(cfg Config, o TGIOptions) *TGI {
	cfg.Host.Async = false
	g := &TGI{o: o, long: none}
	g.init(cfg, g, o.MaxNewTokens)
	pool := int64(cfg.KVBlocks-1) * int64(cfg.BlockSize)
	if g.o.MaxBatchPrefillTokens == 0 {
		g.o.MaxBatchPrefillTokens = cfg.MaxBatchedTokens
	}
	if g.o.MaxBatchTotalTokens == 0 {
		g.o.MaxBatchTotalTokens = pool
	}
	if g.o.WaitingServedRatio == 0 {
		g.o.WaitingServedRatio = 0.3
	}
	if g.o.MaxWaitingTokens == 0 {
		g.o.MaxWaitingTokens = 20
	}
	if g.o.MaxBatchTotalTokens < int64(cfg.MaxModelLen) || g.o.MaxBatchPrefillTokens > cfg.MaxBatchedTokens {
		panic(fmt.Sprintf("engine: impossible limits: %d tokens in all for requests of up to %d, %d in a prefill batch for %d per step",
			g.o.MaxBatchTotalTokens, cfg.MaxModelLen, g.o.MaxBatchPrefillTokens, cfg.MaxBatchedTokens))
	}
	return g
}

// schedule implements scheduler.
func (g *TGI) schedule(clock.Time) {
	if g.long != none {
		g.start(g.long)
		return
	}
	if len(g.running) == 0 {
		g.turn = false
		g.prefillBatch(0)
		return
	}
	if !g.turn {
		least := int(float64(len(g.running)) * g.o.WaitingServedRatio)
		if g.passed >= g.o.MaxWaitingTokens {
			least = 0
		}
		if g.prefillBatch(least) {
			g.turn = true
			return
		}
	}
	g.turn = false
	g.passed++
	g.decode()
}

// prefillBatch schedules the prompts at the head of the queue that fit, if they
// are at least as many as asked for.
func (g *TGI) prefillBatch(least int) bool {
	n := g.fitting()
	if n == 0 || int(n) < least {
		return false
	}
	g.passed = 1
	for range n {
		i := g.admit()
		j := &g.jobs[i]
		g.grow(j, j.prompt+j.asked-1)
		g.start(i)
	}
	return true
}

// start prefills a request, or as much of it as one step may hold.
func (g *TGI) start(i int32) {
	j := &g.jobs[i]
	g.long = none
	switch done := g.prefill(i, min(j.target-j.computed, g.o.MaxBatchPrefillTokens)); {
	case !done:
		g.long = i
	case j.made < j.output:
		g.running = append(g.running, i)
	}
}

// fitting returns how many requests from the head of the queue fit into one
// prefill batch: by prompt tokens, by total tokens, by blocks and by
// max_batch_size.
func (g *TGI) fitting() int32 {
	prompts := g.o.MaxBatchPrefillTokens
	total := g.o.MaxBatchTotalTokens - int64(g.cfg.KVBlocks-1-g.freeBlks)<<g.shift
	blocks := g.freeBlks
	most := min(g.waiting.n, g.cfg.MaxSeqs-g.live)
	for k := range most {
		j := &g.jobs[g.waiting.at(k)]
		prompts -= j.prompt
		total -= int64(j.prompt + j.asked)
		blocks -= g.blocksFor(j.prompt + j.asked - 1)
		if prompts < 0 && k > 0 || total < 0 || blocks < 0 {
			return k
		}
	}
	return most
}
