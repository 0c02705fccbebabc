package experiments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slosim/engine"
	"slosim/internal/config"
	"slosim/models"
	"slosim/sim"
)

// Bounds of an engine's limits, far from any use.
const (
	maxStepTokens = 1 << 17
	maxSeqs       = 1<<16 - 1 // a replica counts its rows in 16 bits
	maxQueue      = 1 << 20
)

// engineReader reads the engine table of one pool.
type engineReader struct {
	l      *loader
	pool   *config.Table
	t      *config.Table
	p      *sim.Pool
	e      *sim.EngineSpec
	known  bool // model, GPU and TP are
	before int  // failures when it began
}

// ok tells that everything read so far is valid.
func (r *engineReader) ok() bool { return r.known && r.l.doc.Failures() == r.before }

// engine reads how a replica schedules; known says that model, GPU and TP are.
func (l *loader) engine(pool *config.Table, p *sim.Pool, known bool) {
	r := &engineReader{l: l, pool: pool, t: pool.Sub("engine", "engine = { max_num_seqs = 256 }"), p: p, e: &p.Engine, known: known, before: l.doc.Failures()}
	r.e.Kind = config.Read(r.t, "kind", config.OneOf(engineKinds...), config.Default(vllm, "its V1 scheduler"))
	if l.doc.Failures() > r.before {
		r.t.Skip() // which keys it may have is open
		pool.Know("overhead")
		return
	}
	r.foreign()
	switch r.e.Kind {
	case vllm:
		r.vllm()
	case sglang:
		r.sglang()
	case trtllm:
		r.trtllm()
	case tgi:
		r.tgi()
	case static:
		r.static()
	}
	if r.e.Kind == vllm {
		r.sampling()
	}
	if slices.Contains([]string{vllm, sglang, trtllm}, r.e.Kind) {
		r.expertKernel()
	}
	r.e.MaxWaiting = int32(config.Read(r.t, "max_waiting", config.Int, config.Default(0, "no limit: an overloaded replica queues without end"),
		config.Example[int]("200"), config.Between(0, maxQueue)))
	p.Deployment.MaxBatchedTokens = r.e.MaxBatchedTokens
	p.Deployment.OverheadGiB = l.overhead(pool, p, known)
	r.checkSteps()
	l.kvPool(pool, r.t, p, r.e, r.ok())
	r.checkTotal()
	if r.e.Kind != vllm {
		l.assume.add("Pool %s: step times and host times are those of vLLM; until calibrated they can be off by 10 to 30 %% for %s.", p.Name, r.e.Kind)
	}
}

// foreign reports keys that belong to other kinds.
func (r *engineReader) foreign() {
	var own []string
	for _, k := range engineTable {
		if k.has(r.e.Kind) {
			own = append(own, k.name)
		}
	}
	for _, k := range engineTable {
		if k.has(r.e.Kind) || !r.t.Has(k.name) {
			continue
		}
		r.t.Know(k.name)
		r.t.Errorf(k.name, "with kind = "+fmt.Sprintf("%q", r.e.Kind)+": "+strings.Join(own, ", "), "remove it, or set kind = "+orList(k.kinds),
			"%s is no setting of kind = %q; it belongs to %s", k.name, r.e.Kind, orList(k.kinds))
	}
}

// orList writes `"a", "b" or "c"`.
func orList(names []string) string {
	text := ""
	for i, n := range names {
		switch {
		case i > 0 && i == len(names)-1:
			text += " or "
		case i > 0:
			text += ", "
		}
		text += fmt.Sprintf("%q", n)
	}
	return text
}

// aliased reads a limit that may have one of several names.
func (r *engineReader) aliased(names []string, def int, why string, hi int) int32 {
	name := names[0]
	for _, n := range names[1:] {
		switch {
		case !r.t.Has(n):
		case r.t.Has(name):
			r.t.Know(n)
			r.t.Errorf(n, "", "remove one of the two", "%s and %s are two names of the same limit", name, n)
		default:
			name = n
		}
	}
	return int32(config.Read(r.t, name, config.WholeTokens, config.Default(def, why), config.Example[int](fmt.Sprint(def)), config.Between(1, hi)))
}

// seqs reads how many requests run at once.
func (r *engineReader) seqs(def int, why string) {
	names := []string{"max_num_seqs"}
	for _, k := range engineTable {
		if (k.name == "max_running_requests" || k.name == "max_batch_size") && k.has(r.e.Kind) {
			names = append(names, k.name)
		}
	}
	r.e.MaxSeqs = r.aliased(names, def, why, maxSeqs)
}

// tokens reads the token budget of a step.
func (r *engineReader) tokens(def int, why string) {
	names := []string{"max_num_batched_tokens"}
	if r.e.Kind == trtllm {
		names = append(names, "max_num_tokens")
	}
	r.e.MaxBatchedTokens = r.aliased(names, def, why, maxStepTokens)
}

// memory reads what the KV pool is cut from and into.
func (r *engineReader) memory(utilisation float64, utilisationWhy string, block int, blockWhy string) {
	r.p.Deployment.MemoryUtilization = config.Read(r.t, "gpu_memory_utilization", config.Share, config.Default(utilisation, utilisationWhy),
		config.Example[float64](`"92%"`), config.Between(0.01, 1))
	r.e.BlockSize = int32(config.Read(r.t, "block_size", config.WholeTokens, config.Default(block, blockWhy), config.Example[int](fmt.Sprint(block)),
		config.Where(func(n int) bool { return n >= 1 && n <= 256 && n&(n-1) == 0 }, "is no KV block size", "1, 2, 4, ..., 256", "")))
}

// async reads whether a step is fixed while the one before it runs.
func (r *engineReader) async(def bool, why string) {
	r.p.Deployment.Host.Async = config.Read(r.t, "async", config.Bool, config.Default(def, why))
}

// asked reads how many output tokens clients ask for, for schedulers that
// reserve room for them.
func (r *engineReader) asked() {
	r.e.MaxNewTokens = int32(config.Read(r.t, "max_new_tokens", config.WholeTokens, config.Default(0, "each request asks for just what it makes"),
		config.Example[int]("1024"), config.Between(0, 1<<24)))
	if r.e.MaxNewTokens == 0 {
		r.l.assume.add("Pool %s: max_new_tokens is not given, so clients ask for exactly the output that they get; real clients ask for more, and %s reserves it.", r.p.Name, r.e.Kind)
	}
}

// share of the GPU's memory for engines whose own rule is not modelled.
const otherUtilisation = "as vLLM's: the engine's own rule is not modelled"

func (r *engineReader) vllm() {
	e, t := r.e, r.t
	v := config.Read(t, "version", version, config.Default(vllmVersion{mainVersion, bigGPUSwitch.since}, "of 2026-08-17"))
	r.l.minor = v.minor
	def := vllmDefaults(r.p.Deployment.GPU, v)
	r.tokens(def.tokens, def.why)
	r.seqs(min(def.seqs, int(e.MaxBatchedTokens)), def.why)
	utilisation := 0.90
	if v.has(memorySwitch) {
		utilisation = 0.92
	}
	r.memory(utilisation, "vLLM: "+memorySwitch.what, 16, "vLLM's")
	if t.Has("speculative") {
		r.speculative()
	} else {
		t.Know("speculative")
		r.async(v.has(asyncSwitch), "vLLM: "+asyncSwitch.what)
	}
	e.Priority = config.Read(t, "policy", config.OneOf("fcfs", "priority"), config.Default("fcfs", "first come first served; --scheduling-policy")) == "priority"
	e.LongPrefillTokens = int32(config.Read(t, "long_prefill_token_threshold", config.WholeTokens, config.Default(0, "off"), config.Example[int]("2048"), config.Between(0, maxStepTokens)))
	e.ReserveFullPrompt = config.Read(t, "reserve_full_prompt", config.Bool, config.Default(v.has(gateSwitch), gateSwitch.what))
	e.Watermark = config.Read(t, "watermark", config.Share, config.Default(0.0, "vLLM's; it has one since 2026-06-11"), config.Example[float64](`"1%"`), config.Between(0.0, 0.5))
	e.PrefixCache = config.Read(t, "prefix_caching", config.Bool, config.Default(true, "vLLM's; --enable-prefix-caching"))
	r.offload()
	r.graphs()
	e.StopEOS = config.Read(t, "stop", config.OneOf("max_tokens", "eos"), config.Default("max_tokens", "the end is known ahead")) == "eos"
	e.SkipAhead = int32(config.Read(t, "skip_ahead", config.Int, config.Default(0, "strict order; more is a what-if that vLLM does not have"), config.Example[int]("8"), config.Between(0, maxSeqs)))
	e.Stepping = config.Read(t, "stepping", config.Bool, config.Default(false, "stretches of equal steps in closed form, same results"))
}

func (r *engineReader) sglang() {
	e, t := r.e, r.t
	// SGLang takes min(max(512·pool/context, 2048), 4096) by default.
	r.seqs(2048, "SGLang takes 2048 to 4096, by the KV pool")
	r.memory(0.92, otherUtilisation+" (mem_fraction_static)", 1, "SGLang's page size")
	chunk := int(engine.SGLangChunk(float64(r.p.Deployment.GPU.MemoryMiB) / 1024))
	e.ChunkTokens = int32(config.Read(t, "chunked_prefill_size", config.WholeTokens, config.Default(chunk, "SGLang's for this GPU's memory"), config.Example[int](fmt.Sprint(chunk)), config.Between(1, maxStepTokens)))
	e.MaxBatchedTokens = max(e.ChunkTokens, e.MaxSeqs)
	e.Conservativeness = config.Read(t, "schedule_conservativeness", config.Float, config.Default(1.0, "SGLang's"), config.Example[float64]("1.0"), config.Above(0.0, 100))
	e.MixedChunk = config.Read(t, "enable_mixed_chunk", config.Bool, config.Default(false, "SGLang's: decoding stalls while prompts are prefilled"))
	r.async(true, "SGLang's overlap scheduler, on by default")
	r.asked()
	if e.ChunkTokens < e.BlockSize {
		t.Errorf("chunked_prefill_size", fmt.Sprintf("at least block_size, %d", e.BlockSize), "", "chunked_prefill_size = %d is less than a KV block of %d tokens", e.ChunkTokens, e.BlockSize)
	}
}

func (r *engineReader) trtllm() {
	r.tokens(8192, "TensorRT-LLM's")
	r.seqs(min(2048, int(r.e.MaxBatchedTokens)), "TensorRT-LLM's")
	r.memory(0.92, otherUtilisation+" (free_gpu_memory_fraction)", 32, "TensorRT-LLM's tokens_per_block")
	r.e.CapacityPolicy = config.Read(r.t, "capacity_policy", config.OneOf("guaranteed_no_evict", "max_utilization", "static_batch"), config.Default("guaranteed_no_evict", "TensorRT-LLM's"))
	r.async(true, "TensorRT-LLM's overlap scheduler, on by default")
	r.e.Frontend = config.Read(r.t, "frontend", config.OneOf(frontServe, frontNIM), config.Default(frontServe, "TensorRT-LLM's own server with PyTorch"))
	r.asked()
}

func (r *engineReader) tgi() {
	e, t := r.e, r.t
	r.seqs(1024, "TGI sets no limit; this one is far from it")
	r.memory(0.92, otherUtilisation, 16, "assumption: it depends on TGI's attention backend")
	e.WaitingServedRatio = config.Read(t, "waiting_served_ratio", config.Float, config.Default(0.3, "TGI's"), config.Example[float64]("0.3"), config.Above(0.0, 1000))
	e.MaxWaitingTokens = int32(config.Read(t, "max_waiting_tokens", config.Int, config.Default(20, "TGI's"), config.Example[int]("20"), config.Between(1, maxQueue)))
	e.MaxBatchPrefillTokens = int32(config.Read(t, "max_batch_prefill_tokens", config.WholeTokens, config.Default(4096, "assumption: TGI derives it from model and memory"), config.Example[int]("4096"), config.Between(1, maxStepTokens)))
	e.MaxBatchedTokens = max(e.MaxBatchPrefillTokens, e.MaxSeqs, e.BlockSize)
	if t.Has("max_batch_total_tokens") {
		e.MaxBatchTotalTokens = int32(config.Read(t, "max_batch_total_tokens", config.WholeTokens, config.Example[int]("200000"), config.Between(1, 1<<30)))
	}
	r.p.Deployment.Host.Async = false // router and server take turns
	r.asked()
}

func (r *engineReader) static() {
	def := vllmDefaults(r.p.Deployment.GPU, vllmVersion{mainVersion, bigGPUSwitch.since})
	r.tokens(def.tokens, "as "+def.why)
	r.seqs(min(32, int(r.e.MaxBatchedTokens)), "the batch size; an assumption")
	r.memory(0.92, otherUtilisation, 16, "as vLLM's")
	r.p.Deployment.Host.Async = false
}

// checkSteps reports limits of a step that contradict each other.
func (r *engineReader) checkSteps() {
	e := r.e
	if r.l.doc.Failures() > r.before {
		return
	}
	tokens := cmp.Or(r.given("max_num_batched_tokens", "max_num_tokens"), "max_num_batched_tokens")
	if seqs := cmp.Or(r.given("max_num_seqs", "max_batch_size"), "max_num_seqs"); e.MaxSeqs > e.MaxBatchedTokens {
		r.t.Errorf(seqs, fmt.Sprintf("at most %s, %d", tokens, e.MaxBatchedTokens), fmt.Sprintf("raise %s or lower %s", tokens, seqs),
			"%s = %d is more than the %d tokens of a step: not every running request could decode", seqs, e.MaxSeqs, e.MaxBatchedTokens)
	}
	if e.Kind != vllm && e.BlockSize > e.MaxBatchedTokens {
		r.t.Errorf(tokens, fmt.Sprintf("at least block_size, %d", e.BlockSize), "", "%s = %d is less than a KV block of %d tokens", tokens, e.MaxBatchedTokens, e.BlockSize)
	}
}

// given returns the first of the keys that the table has, or "".
func (r *engineReader) given(keys ...string) string {
	if i := slices.IndexFunc(keys, r.t.Has); i >= 0 {
		return keys[i]
	}
	return ""
}

// checkTotal settles TGI's bound on all tokens, which the pool decides unless it
// is given.
func (r *engineReader) checkTotal() {
	e := r.e
	if e.Kind != tgi {
		return
	}
	const key = "max_batch_total_tokens"
	pool := int(e.KVBlocks-1) * int(e.BlockSize)
	switch total := int(e.MaxBatchTotalTokens); {
	case !r.ok():
		r.t.Know(key)
	case total == 0:
		r.t.Derived(key, config.WholeTokens.Format(pool), "the KV pool, as TGI's warm-up finds it")
	case total > pool:
		r.t.Errorf(key, fmt.Sprintf("at most %d", pool), "lower it, or leave it out to take the pool", "%s = %d is more than the KV pool of %d tokens", key, total, pool)
	case total < int(e.MaxModelLen):
		r.t.Errorf(key, fmt.Sprintf("at least max_model_len, %d", e.MaxModelLen), "raise it, or lower max_model_len", "%s = %d leaves no room for one request of max_model_len = %d tokens", key, total, e.MaxModelLen)
	}
}

// vllmDefault holds vLLM's defaults for a class of GPUs.
type vllmDefault struct {
	tokens, seqs int
	why          string
}

// vllmDefaults returns the defaults of vLLM's API server by GPU memory
// (engine/arg_utils.py get_batch_defaults).
func vllmDefaults(g models.GPU, v vllmVersion) vllmDefault {
	memoryGiB := float64(g.MemoryMiB) / 1024
	switch {
	case memoryGiB >= 160 && v.has(bigGPUSwitch):
		return vllmDefault{16384, 1024, bigGPUSwitch.what}
	case memoryGiB >= 70 && !strings.HasPrefix(g.Name, "a100"):
		return vllmDefault{8192, 1024, "vLLM's API server on GPUs of 70 GiB and more"}
	}
	return vllmDefault{2048, 256, "vLLM's API server on A100 and on GPUs under 70 GiB"}
}
