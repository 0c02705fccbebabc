package engine

import (
	"fmt"

	"slosim/sim/clock"
)

// Constants of SGLang's admission estimate (environ.py, schedule_policy.py).
const (
	sglangInitRatio    = 0.7  // new_token_ratio at the start, times the conservativeness
	sglangMinRatio     = 0.14 // of the initial ratio: where the decay ends
	sglangDecaySteps   = 600  // decode steps from the initial ratio to the least
	sglangRetractSteps = 20   // decode steps for which a retraction leaves room
	sglangClip         = 4096 // most output tokens that the estimate counts per request
)

// SGLangOptions are the settings of SGLang's scheduler that have no counterpart
// in Config. Config gives page size (BlockSize, SGLang's default is 1) and
// max_running_requests (MaxSeqs).
type SGLangOptions struct {
	ChunkTokens      int32   // chunked_prefill_size: prompt tokens of one prefill batch, at most Config.MaxBatchedTokens; 0 = that
	Conservativeness float64 // schedule_conservativeness; 0 = 1
	MixedChunk       bool    // enable_mixed_chunk: decode rows join prefill batches
	MaxNewTokens     int32   // max_new_tokens that every client asks for; 0 = just what the request makes
}

// SGLangChunk returns SGLang's default chunked_prefill_size by GPU memory (size as
// the driver reports it, in GiB): 2048 below 35, 4096 below 60, 8192 below 160,
// else 16384. Source: server_args.py.
func SGLangChunk(memGiB float64) int32 {
	switch {
	case memGiB < 35:
		return 2048
	case memGiB < 60:
		return 4096
	case memGiB < 160:
		return 8192
	}
	return 16384
}

// SGLang is the scheduler of SGLang: prefill first and alone, so that decoding
// stalls for as long as prompts can be admitted; admission by an estimate of what
// the running requests will still generate; and, when the estimate was too bold,
// retraction of the requests with the fewest output tokens to the end of the
// queue. Source: managers/scheduler.py (get_next_batch_to_run,
// update_running_batch), schedule_policy.py (PrefillAdder), schedule_batch.py
// (retract_decode), 2026-07.
type SGLang struct {
	rowwise
	mixed   bool // decode rows join prefill batches
	chunk   int32
	chunked int32   // the one job whose prompt is prefilled in part; none otherwise
	full    bool    // batch_is_full: no prefill is tried until a running request has left
	counted int64   // value of ended when full was last cleared for it
	joiners []int32 // jobs whose prompt ends in the batch being formed

	ratio, initRatio, minRatio float64 // new_token_ratio
}

// NewSGLang returns an idle replica. It panics on contradictory limits.
func NewSGLang(cfg Config, o SGLangOptions) *SGLang {
	s := &SGLang{mixed: o.MixedChunk, chunked: none}
	s.init(cfg, s, o.MaxNewTokens)
	if o.ChunkTokens == 0 {
		o.ChunkTokens = cfg.MaxBatchedTokens
	}
	if o.ChunkTokens < cfg.BlockSize || o.ChunkTokens > cfg.MaxBatchedTokens {
		panic(fmt.Sprintf("engine: impossible limits: chunk of %d tokens, block size %d, %d tokens per step", o.ChunkTokens, cfg.BlockSize, cfg.MaxBatchedTokens))
	}
	s.chunk = o.ChunkTokens
	if o.Conservativeness == 0 {
		o.Conservativeness = 1
	}
	s.initRatio = min(sglangInitRatio*o.Conservativeness, 1)
	s.minRatio = s.initRatio * sglangMinRatio
	s.ratio = s.initRatio
	return s
}

// schedule implements scheduler.
func (s *SGLang) schedule(now clock.Time) {
	if len(s.running) == 0 {
		s.full = false
	}
	if s.prefillBatch() {
		return
	}
	s.decodeBatch(now)
	if s.build.batch.Tokens == 0 && s.steps == 0 {
		s.ratio = s.initRatio // an idle server forgets what it learned
	}
}

// decodeBatch schedules a token of every running request, after retraction if
// the blocks do not suffice.
func (s *SGLang) decodeBatch(now clock.Time) {
	if s.counted != s.ended {
		s.counted, s.full = s.ended, false
	}
	if len(s.running) == 0 {
		return
	}
	if !s.decodeShort() {
		s.ratio = max(s.ratio-(s.initRatio-s.minRatio)/sglangDecaySteps, s.minRatio)
		s.decode()
		return
	}
	s.retract(now)
	if !s.decodeShort() {
		s.decode()
	}
}

// retract takes back running requests until the next token of the others fits,
// but always keeps one. What SGLang does when that one does not fit, abort it,
// cannot come up: the pool holds any single request. Only in mixed batches can a
// request prefilled in part stand in its way; then that one is retracted.
func (s *SGLang) retract(now clock.Time) {
	for len(s.running) > 1 && s.decodeShort() {
		k := s.fewestOutputs()
		i := s.running[k]
		s.running = append(s.running[:k], s.running[k+1:]...)
		s.preempt(now, i)
		s.waiting.pushBack(i)
	}
	if s.chunked != none && s.decodeShort() {
		s.preempt(now, s.chunked)
		s.waiting.pushBack(s.chunked)
		s.chunked = none
	}
	decoded, asked := 0.0, 0.0
	for _, i := range s.running {
		decoded += float64(s.jobs[i].made)
		asked += float64(s.jobs[i].asked)
	}
	s.ratio = min((decoded+sglangRetractSteps*float64(len(s.running)))/(asked+1), 1)
	s.full = false
}

// fewestOutputs returns the place in running of the request with the fewest
// output tokens; among equals the longest prompt, then the last to join.
func (s *SGLang) fewestOutputs() int {
	best := 0
	for k := range s.running {
		a, b := &s.jobs[s.running[k]], &s.jobs[s.running[best]]
		if a.made < b.made || a.made == b.made && a.prompt >= b.prompt {
			best = k
		}
	}
	return best
}
