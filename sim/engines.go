package sim

import (
	"slosim/engine"
	"slosim/models"
	"slosim/sim/rng"
)

// newReplica returns an idle replica for a place of a pool. All those that draw nothing of their own
// share one configuration: many would take much of a processor's cache.
func (p *plan) newReplica(f *fleet, i int, seed uint64, g engine.Gaps) engine.Replica {
	spec := &p.exp.Pools[f.index]
	e := &spec.Engine
	if f.config == nil || e.SpecDrafts > 0 {
		f.config = p.engineConfig(f.index, seed, g)
	}
	cfg := f.config
	switch e.Kind {
	case "sglang":
		return engine.NewSGLang(*cfg, engine.SGLangOptions{ChunkTokens: e.ChunkTokens, Conservativeness: e.Conservativeness, MixedChunk: e.MixedChunk, MaxNewTokens: e.MaxNewTokens})
	case "trtllm":
		policy := map[string]engine.CapacityPolicy{"max_utilization": engine.MaxUtilization, "static_batch": engine.StaticBatch}[e.CapacityPolicy]
		if policy == 0 {
			policy = engine.GuaranteedNoEvict
		}
		return engine.NewTRTLLM(*cfg, engine.TRTLLMOptions{Policy: policy, MaxNewTokens: e.MaxNewTokens})
	case "tgi":
		return engine.NewTGI(*cfg, engine.TGIOptions{
			MaxBatchPrefillTokens: e.MaxBatchPrefillTokens, MaxBatchTotalTokens: int64(e.MaxBatchTotalTokens),
			WaitingServedRatio: e.WaitingServedRatio, MaxWaitingTokens: int(e.MaxWaitingTokens), MaxNewTokens: e.MaxNewTokens,
		})
	case "static":
		return engine.NewStatic(*cfg)
	}
	if f.room == nil {
		f.room = engine.Places(len(f.views))
	}
	return f.room[i].Begin(cfg)
}

// engineConfig returns how the replicas of a pool schedule.
func (p *plan) engineConfig(pool int, seed uint64, g engine.Gaps) *engine.Config {
	spec := &p.exp.Pools[pool]
	e := &spec.Engine
	return &engine.Config{
		MaxBatchedTokens:  e.MaxBatchedTokens,
		MaxSeqs:           e.MaxSeqs,
		MaxModelLen:       e.MaxModelLen,
		BlockSize:         e.BlockSize,
		KVBlocks:          e.KVBlocks,
		MaxWaiting:        e.MaxWaiting,
		ReserveFullPrompt: e.ReserveFullPrompt,
		WatermarkBlocks:   int32(e.Watermark * float64(e.KVBlocks)),
		LongPrefillTokens: e.LongPrefillTokens,
		Priority:          e.Priority,
		SkipAhead:         e.SkipAhead,
		StopEOS:           e.StopEOS,
		PrefixCache:       e.PrefixCache,
		Offload:           engine.Offload{Blocks: e.OffloadBlocks, BlockPs: e.OffloadBlockPs},
		Spec: engine.Spec{
			Drafts: e.SpecDrafts, Accept: e.SpecAccept, DraftPs: int64(e.SpecDraftTime) * 1000,
			Draws: rng.New(seed, rng.Acceptance, spec.Name),
		},
		Stepping: e.Stepping,
		Model:    p.modelOf(pool),
		Host:     spec.Deployment.Host,
		Clock:    spec.startBin(),
		Gaps:     g,
	}
}

// startBin returns the clock bin at which a pool starts: the maximum, or 0
// without a thermal model.
func (p *Pool) startBin() int {
	if !p.Thermal.Enabled {
		return 0
	}
	return p.Deployment.GPU.MaxClockMHz / models.ClockStepMHz
}
