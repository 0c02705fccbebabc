package experiments

import (
	"errors"
	"fmt"
	"strings"

	"slosim/internal/config"
	"slosim/models"
	"slosim/sim"
)

const (
	gib         = 1 << 30
	minModelLen = 2 // a token of prompt and one of output
)

// pool reads one [[pool]] table.
func (l *loader) pool(t *config.Table) sim.Pool {
	before := l.doc.Failures()
	p := sim.Pool{Name: name(t, "name", `"main"`)}
	p.Classes = config.Read(t, "classes", config.Texts, config.Default([]string(nil), "every class that no other pool names"))
	p.Role = config.Read(t, "role", roles, config.Default("", "prefills and decodes"))
	p.Link = l.link(t, p.Name, p.Role)
	p.Deployment.LLM = l.model(t)
	p.Deployment.GPU = catalogued(t, "gpu", `"h100-sxm-80gb"`, models.FindGPU)
	p.Deployment.TP = config.Read(t, "tensor_parallel", config.Int, config.Default(1, "GPUs per replica"), config.Example[int]("8"), config.Between(1, 1024))
	p.Replicas = config.Read(t, "replicas", config.Int, config.Default(1, ""), config.Between(1, maxReplicas))
	p.GPUHourUSD = config.Read(t, "gpu_hour_usd", config.Float, config.Default(0.0, "no price given: costs read 0"), config.Between(0.0, 10_000))
	parallelism(t, &p)
	dtypes(t, &p)

	// Without model and GPU there is nothing to take defaults from, and without
	// a valid TP no memory to compute; what can be read is still checked.
	known := l.doc.Failures() == before
	if known {
		checkParallelism(t, &p)
	}
	l.engine(t, &p, known)
	checkRole(t, &p)
	fitted := l.calibration(t, &p)
	l.host(t, &p, known, fitted)
	l.fleet(t, &p, known)
	p.Thermal = l.thermal(t, p.Deployment.GPU)
	if known {
		l.checkSite(t, &p)
		l.unfitted(&p)
		l.figures(t, &p)
		l.applySpeed(t, fitted, &p)
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
		text, try := err.Error(), "see them with: sim list "+key+"s"
		switch {
		case unknown.Ambiguous:
			try = "name one of them in full"
		case len(unknown.Near) > 0:
			try = fmt.Sprintf("did you mean %s = %q?", key, unknown.Near[0])
		default: // the names are listed as allowed
			text = fmt.Sprintf("unknown %s %q", unknown.Kind, unknown.Name)
		}
		t.Errorf(key, strings.Join(unknown.All, ", "), try, "%s", text)
	} else if err != nil {
		t.Errorf(key, "", configHint(err), "%s", err)
	}
	return item
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
		t.Know("kv_blocks", "max_model_len")
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
	if poolTokens < minModelLen {
		t.Know("max_model_len")
		t.Errorf("kv_blocks", "", "give more of them, or larger ones", "%d KV blocks of %d, one of them the engine's own, hold no request", blocks, e.BlockSize)
		return
	}
	limit := p.Deployment.LLM.MaxModelLen
	def, why := limit, "the checkpoint's limit"
	if limit > poolTokens {
		def, why = poolTokens, fmt.Sprintf("the KV pool; one request of the checkpoint's limit, %d, does not fit it", limit)
	}
	if total := int(e.MaxBatchTotalTokens); total > 0 && total < def {
		def, why = total, "max_batch_total_tokens"
	}
	e.MaxModelLen = int32(config.Read(t, "max_model_len", config.WholeTokens, config.Default(def, why), config.Example[int](fmt.Sprint(def)), config.Between(minModelLen, 1<<30)))
	switch n := int(e.MaxModelLen); {
	case n > poolTokens:
		t.Errorf("max_model_len", fmt.Sprintf("at most %d", poolTokens), "lower max_model_len, raise tensor_parallel or gpu_memory_utilization, or leave it out to take what fits",
			"max_model_len = %d is larger than the KV pool of %d tokens (%d blocks of %d): the engine would refuse to start", n, poolTokens, blocks, e.BlockSize)
	case n > limit:
		t.Errorf("max_model_len", fmt.Sprintf("at most %d", limit), "lower it, or leave it out",
			"max_model_len = %d is more than %s was trained for (%d)", n, p.Deployment.LLM.Name, limit)
	}
}
