package experiments

import (
	"errors"
	"fmt"
	"strings"

	"slosim/internal/config"
	"slosim/models"
	"slosim/sim"
)

const gib = 1 << 30

// pool reads one [[pool]] table.
func (l *loader) pool(t *config.Table) sim.Pool {
	before := l.doc.Failures()
	p := sim.Pool{Name: name(t, "name", `"main"`)}
	p.Classes = config.Read(t, "classes", config.Texts, config.Default([]string(nil), "every class that no other pool names"))
	p.Deployment.LLM = catalogued(t, "model", `"llama-3.3-70b"`, models.FindLLM)
	p.Deployment.GPU = catalogued(t, "gpu", `"h100-sxm-80gb"`, models.FindGPU)
	p.Deployment.TP = config.Read(t, "tensor_parallel", config.Int, config.Default(1, "GPUs per replica"), config.Example[int]("8"), config.Between(1, 1024))
	p.Replicas = config.Read(t, "replicas", config.Int, config.Default(1, ""), config.Between(1, maxReplicas))
	p.Router = config.Read(t, "router", config.OneOf("least-outstanding", "round-robin"),
		config.Default("least-outstanding", "the replica with the fewest requests in flight"))
	p.GPUHourUSD = config.Read(t, "gpu_hour_usd", config.Float, config.Default(0.0, "no price given: costs read 0"), config.Between(0.0, 10_000))
	p.Deployment.WeightDtype = config.Read(t, "weight_dtype", config.OneOf(models.BF16, models.FP8), config.Default(models.BF16, ""))
	p.Deployment.KVDtype = config.Read(t, "kv_dtype", config.OneOf(models.BF16, models.FP8), config.Default(models.BF16, ""))

	if p.Deployment.WeightDtype == models.FP8 {
		p.Deployment.StaticScales = config.Read(t, "static_scales", config.Bool, config.Default(false, "activation scales are computed at run time"))
	} else {
		forbid(t, "", `static_scales belongs to weight_dtype = "fp8"`, "static_scales")
	}

	// Without model and GPU there is nothing to take defaults from, and without
	// a valid TP no memory to compute; what can be read is still checked.
	known := l.doc.Failures() == before
	l.engine(t, &p, known)
	l.host(t, &p, known)
	p.Thermal = l.thermal(t)
	if known {
		l.figures(t, &p)
	}
	return p
}

// catalogued reads a name and looks it up.
func catalogued[T any](t *config.Table, key, example string, find func(string) (T, error)) T {
	var zero T
	before := t.Doc().Failures()
	name := config.Read(t, key, config.Text, config.Required, config.Example[string](example))
	if t.Doc().Failures() > before {
		return zero
	}
	item, err := find(name)
	var unknown *models.UnknownNameError
	if errors.As(err, &unknown) {
		try := "see them with: sim list " + key + "s"
		switch {
		case unknown.Ambiguous:
			try = "name one of them in full"
		case len(unknown.Near) > 0:
			try = fmt.Sprintf("did you mean %s = %q?", key, unknown.Near[0])
		}
		t.Errorf(key, strings.Join(unknown.All, ", "), try, "%s", err)
	} else if err != nil {
		t.Errorf(key, "", "", "%s", err)
	}
	return item
}

// engine reads the engine's settings; known says that model, GPU and TP are.
func (l *loader) engine(pool *config.Table, p *sim.Pool, known bool) {
	t := pool.Sub("engine", "engine = { max_num_seqs = 256 }")
	before := l.doc.Failures()
	d := &p.Deployment
	def := engineDefaults(d.GPU)
	e := sim.EngineSpec{Kind: config.Read(t, "kind", config.OneOf("vllm"), config.Default("vllm", "V1 scheduler, main of 2026-08-17"))}
	e.MaxBatchedTokens = int32(config.Read(t, "max_num_batched_tokens", config.WholeTokens, config.Default(def.tokens, def.why), config.Between(1, 1<<17)))
	e.MaxSeqs = int32(config.Read(t, "max_num_seqs", config.WholeTokens, config.Default(min(def.seqs, int(e.MaxBatchedTokens)), def.why), config.Example[int]("256"), config.Between(1, 1<<16)))
	e.BlockSize = int32(config.Read(t, "block_size", config.WholeTokens, config.Default(16, "vLLM's default"), config.Example[int]("16"),
		config.Where(func(n int) bool { return n >= 1 && n <= 256 && n&(n-1) == 0 }, "is no KV block size", "1, 2, 4, ..., 256", "")))
	d.MaxBatchedTokens = e.MaxBatchedTokens
	d.MemoryUtilization = config.Read(t, "gpu_memory_utilization", config.Share, config.Default(0.92, "vLLM's default since 2026-04"), config.Example[float64](`0.92`), config.Between(0.01, 1))
	d.OverheadGiB = l.overhead(pool, p, known)
	e.ReserveFullPrompt = config.Read(t, "reserve_full_prompt", config.Bool, config.Default(true, "vLLM's scheduler_reserve_full_isl, on since 2026-03"))
	e.Watermark = config.Read(t, "watermark", config.Share, config.Default(0.0, "vLLM's default"), config.Example[float64](`"1%"`), config.Between(0.0, 0.5))
	e.Stepping = config.Read(t, "stepping", config.Bool, config.Default(false, "stretches of equal steps in closed form, same results"))
	if e.MaxSeqs > e.MaxBatchedTokens && l.doc.Failures() == before {
		t.Errorf("max_num_seqs", fmt.Sprintf("at most max_num_batched_tokens, %d", e.MaxBatchedTokens), "raise max_num_batched_tokens or lower max_num_seqs",
			"max_num_seqs = %d is more than the %d tokens of a step: not every running request could decode", e.MaxSeqs, e.MaxBatchedTokens)
	}
	l.kvPool(pool, t, p, &e, known && l.doc.Failures() == before)
	p.Engine = e
}

// engineDefault holds vLLM's defaults for a class of GPUs.
type engineDefault struct {
	tokens, seqs int
	why          string
}

// engineDefaults returns vLLM's defaults of its API server by GPU memory
// (engine/arg_utils.py get_batch_defaults).
func engineDefaults(g models.GPU) engineDefault {
	memoryGiB := float64(g.MemoryMiB) / 1024
	switch {
	case memoryGiB >= 160:
		return engineDefault{16384, 1024, "vLLM's API server on GPUs of 160 GiB and more"}
	case memoryGiB >= 70 && !strings.HasPrefix(g.Name, "a100"):
		return engineDefault{8192, 1024, "vLLM's API server on GPUs of 70 GiB and more"}
	}
	return engineDefault{2048, 256, "vLLM's API server on A100 and on GPUs under 70 GiB"}
}

// overhead reads the memory that is neither weights nor KV cache, in GiB.
func (l *loader) overhead(t *config.Table, p *sim.Pool, known bool) float64 {
	if t.Has("overhead") || !known {
		return config.Read(t, "overhead", config.Bytes, config.Between(0.0, 1<<40)) / gib
	}
	d := p.Deployment
	def := models.DefaultOverheadGiB(d.LLM, d.TP, d.MaxBatchedTokens)
	t.Derived("overhead", fmt.Sprintf(`"%.2fGiB"`, def), "assumption: per GPU, context, NCCL buffers and the activations of the largest step")
	l.assume.add("Pool %s: %.2f GiB of each GPU are neither weights nor KV cache (context, NCCL buffers, activations); an estimate, engines measure it at start-up.", p.Name, def)
	return def
}

// kvPool settles the number of KV blocks and the longest request.
func (l *loader) kvPool(pool, t *config.Table, p *sim.Pool, e *sim.EngineSpec, known bool) {
	if !known {
		t.Know("kv_blocks")
		t.Know("max_model_len")
		return
	}
	blocks := 0
	if t.Has("kv_blocks") {
		blocks = config.Read(t, "kv_blocks", config.WholeTokens, config.Example[int]("86000"), config.Between(2, 1<<30))
		if err := p.Deployment.Validate(); err != nil {
			l.cannotDeploy(pool, err)
		}
	} else {
		m, err := p.Deployment.Memory(e.BlockSize)
		if err != nil {
			t.Know("max_model_len")
			l.cannotDeploy(pool, err)
			return
		}
		blocks = int(m.Blocks)
		t.Derived("kv_blocks", config.WholeTokens.Format(blocks), fmt.Sprintf("%.1f GiB per GPU after %.1f GiB weights and %.1f GiB overhead", m.KVGiB, m.WeightsGiB, m.OverheadGiB))
	}
	e.KVBlocks = int32(blocks)
	poolTokens := (blocks - 1) * int(e.BlockSize)
	limit := p.Deployment.LLM.MaxModelLen
	def, why := limit, "the checkpoint's limit"
	if limit > poolTokens {
		def, why = poolTokens, fmt.Sprintf("the KV pool; one request of the checkpoint's limit, %d, does not fit it", limit)
	}
	e.MaxModelLen = int32(config.Read(t, "max_model_len", config.WholeTokens, config.Default(def, why), config.Example[int](fmt.Sprint(def)), config.Between(1, 1<<30)))
	switch n := int(e.MaxModelLen); {
	case n > poolTokens:
		t.Errorf("max_model_len", fmt.Sprintf("at most %d", poolTokens), "lower max_model_len, raise tensor_parallel or gpu_memory_utilization, or leave it out to take what fits",
			"max_model_len = %d is larger than the KV pool of %d tokens (%d blocks of %d): the engine would refuse to start", n, poolTokens, blocks, e.BlockSize)
	case n > limit:
		t.Errorf("max_model_len", fmt.Sprintf("at most %d", limit), "lower it, or leave it out",
			"max_model_len = %d is more than %s was trained for (%d)", n, p.Deployment.LLM.Name, limit)
	}
}
