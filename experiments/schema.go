package experiments

import (
	"slices"

	"slosim/internal/config"
)

// schema is every key that an experiment file may have, by kind of table, in the
// order of messages and of docs/guide.md. Some count only beside others.
var schema = withTraffic(config.Schema{
	"":     {"title", "question", "postmortem", "start", "duration", "warmup", "warmup_rule", "seed", "replications", "metrics", "precision", "max_replications", "network", "pool", "traffic", "change", "slo", "sla", "fault", "rollout", "rule", "review"},
	"pool": {"name", "classes", "role", "link", "model", "gpu", "tensor_parallel", "pipeline_parallel", "expert_parallel", "expert_imbalance", "replicas", "router", "stale", "min_prompt", "max_prompt", "uncached", "standby", "overflow", "gate", "autoscale", "wear", "zones", "gpu_hour_usd", "weight_dtype", "static_scales", "kv_dtype", "overhead", "calibration", "engine", "host", "thermal"},
	"slo":  {"name", "class", "tier", "only", "exclude", "metric", "threshold", "all", "objective", "percentile", "min_prompt", "max_prompt", "window", "window_kind", "spent", "policy", "alerts", "min_events", "adaptive", "count"},

	"fault":   {"name", "pool", "at", "for", "replicas", "zone", "slow", "cut"},
	"rollout": {"name", "pool", "at", "batch", "drain", "down"},
	"rule":    {"name", "signal", "slo", "pool", "above", "below", "window", "action", "classes", "cap", "to", "min_prompt"},

	"review": {"gate", "material", "chance", "time_limit", "levers"},

	"pool.overflow":           {"to", "at"},
	"pool.gate":               {"in_flight", "queue", "timeout", "order"},
	"pool.wear":               {"mtbf", "mttr", "together"},
	"pool.autoscale":          {"metric", "target", "min", "max", "interval", "stabilise_up", "stabilise_down", "start_up", "provision", "image", "weights_bandwidth", "compile", "warm", "warm_up", "lead", "schedule"},
	"pool.autoscale.schedule": {"at", "replicas"},
	"pool.link":               {"bandwidth", "latency", "overlap", "min_tokens"},
	"pool.engine":             engineKeys(),
	"pool.host":               {"front_fixed", "front_per_token", "step_fixed", "step_per_seq", "step_tp", "eager_layer", "sync_fixed", "sync_per_seq", "publish_per_seq", "stream_per_token"},
	"pool.thermal":            {"enabled", "ambient", "swing", "hottest", "hot_aisle", "rack"},
	"pool.thermal.hot_aisle":  {"replicas", "warmer"},
	"pool.thermal.rack":       {"power", "replicas"},

	"pool.engine.offload":     {"memory", "bandwidth"},
	"pool.engine.speculative": {"drafts", "acceptance", "draft_time"},

	"slo.count":       outcomes,
	"slo.all":         {"ttft", "tpot", "e2e"},
	"slo.policy":      {"warn", "freeze", "stop"},
	"slo.adaptive":    {"by", "min", "max", "every", "notice", "step", "low", "high", "bearable", "voices"},
	"sla":             {"name", "slo", "promise", "period", "fee_usd", "usd_per_mtok_in", "usd_per_mtok_out", "credits", "exempt", "maintenance"},
	"sla.credits":     {"below", "credit"},
	"sla.maintenance": {"at", "length", "every"},
	"slo.alerts":      {"long", "short", "factor", "severity"},
})

// synonyms are names that engines and benchmarks have for keys of ours.
var synonyms = map[string]string{
	"pool.tp": "tensor_parallel", "pool.tensor_parallel_size": "tensor_parallel", "pool.pp": "pipeline_parallel", "pool.pipeline_parallel_size": "pipeline_parallel", "pool.ep": "expert_parallel", "pool.expert_parallel_size": "expert_parallel", "pool.quantization": "weight_dtype", "pool.kv_cache_dtype": "kv_dtype",
	"pool.engine.scheduling_policy": "policy", "pool.engine.async_scheduling": "async", "pool.engine.enable_prefix_caching": "prefix_caching",
	"pool.engine.scheduler_reserve_full_isl": "reserve_full_prompt", "pool.engine.num_gpu_blocks_override": "kv_blocks",
	"pool.engine.max_cudagraph_capture_size": "cudagraph_max_tokens", "pool.engine.page_size": "block_size", "pool.engine.tokens_per_block": "block_size",
	"pool.engine.mem_fraction_static": "gpu_memory_utilization", "pool.engine.free_gpu_memory_fraction": "gpu_memory_utilization",
	"pool.engine.context_length": "max_model_len", "pool.engine.max_seq_len": "max_model_len", "pool.engine.max_total_tokens": "max_model_len",
	"pool.kv_role": "role", "pool.engine.speculative_config": "speculative",
	"pool.engine.speculative.num_speculative_tokens": "drafts", "pool.engine.speculative.acceptance_rate": "acceptance",
	"traffic.name": "class", "traffic.rps": "rate", "traffic.qps": "rate", "traffic.request_rate": "rate", "traffic.concurrency": "users", "traffic.max_concurrency": "max_in_flight",
	"slo.target": "objective", "slo.max": "threshold",
}

// Engine kinds.
const (
	vllm   = "vllm"
	sglang = "sglang"
	trtllm = "trtllm"
	tgi    = "tgi"
	static = "static"
)

var engineKinds = []string{vllm, sglang, trtllm, tgi, static}

// engineKey is a key of the engine table and the kinds that have it; none means
// all.
type engineKey struct {
	name  string
	kinds []string
}

var engineTable = []engineKey{
	{"kind", nil},
	{"version", []string{vllm}},

	{"max_num_seqs", nil},
	{"max_running_requests", []string{sglang}},
	{"max_batch_size", []string{trtllm, tgi, static}},
	{"max_num_batched_tokens", []string{vllm, trtllm, static}},
	{"max_num_tokens", []string{trtllm}},
	{"max_model_len", nil},
	{"max_waiting", nil},
	{"sampling", []string{vllm}},
	{"expert_kernel", []string{vllm, sglang, trtllm}},
	{"max_new_tokens", []string{sglang, trtllm, tgi}},

	{"block_size", nil},
	{"kv_blocks", nil},
	{"gpu_memory_utilization", nil},

	{"async", []string{vllm, sglang, trtllm}},
	{"policy", []string{vllm}},
	{"long_prefill_token_threshold", []string{vllm}},
	{"reserve_full_prompt", []string{vllm}},
	{"watermark", []string{vllm}},
	{"prefix_caching", []string{vllm}},
	{"offload", []string{vllm}},
	{"enforce_eager", []string{vllm}},
	{"cudagraph_max_tokens", []string{vllm}},
	{"stop", []string{vllm}},
	{"skip_ahead", []string{vllm}},
	{"speculative", []string{vllm}},
	{"stepping", []string{vllm}},

	{"chunked_prefill_size", []string{sglang}},
	{"schedule_conservativeness", []string{sglang}},
	{"enable_mixed_chunk", []string{sglang}},

	{"frontend", []string{trtllm}},
	{"capacity_policy", []string{trtllm}},

	{"waiting_served_ratio", []string{tgi}},
	{"max_waiting_tokens", []string{tgi}},
	{"max_batch_prefill_tokens", []string{tgi}},
	{"max_batch_total_tokens", []string{tgi}},
}

func engineKeys() []string {
	names := make([]string, len(engineTable))
	for i, k := range engineTable {
		names[i] = k.name
	}
	return names
}

// has tells whether a kind of engine has the key.
func (k engineKey) has(kind string) bool { return len(k.kinds) == 0 || slices.Contains(k.kinds, kind) }
