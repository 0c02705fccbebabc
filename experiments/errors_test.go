package experiments

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slosim/internal/config"
)

// base is a small valid experiment that the cases below break.
const base = `duration = "2h"

[[pool]]
name = "main"
model = "llama-3.1-8b"
gpu = "h100-sxm-80gb"

[[traffic]]
class = "chat"
rate = "2/s"
prompt = 500
output = { dist = "exponential", mean = 100 }

[[change]]
name = "feature"
class = "chat"
at = "1h"
ramp = "10m"
share = "30%"
prompt = 5000

[[slo]]
name = "chat TTFT"
class = "chat"
metric = "ttft"
threshold = "2s"
objective = "99%"
`

// breaks are the ways to break it: text to replace, or overrides.
var breaks = []struct {
	what     string
	old, new string
	sets     []string
}{
	{what: "an unknown key", old: `gpu = `, new: "replica = 2\ngpu = "},
	{what: "a wrong unit", old: `"2/s"`, new: `"2s"`},
	{what: "a rate without a unit", old: `"2/s"`, new: `2`},
	{what: "a negative rate", old: `"2/s"`, new: `"-2/s"`},
	{what: "several errors at once", old: `duration = "2h"`, new: "duration = 2\nwarmup = \"x\"\nseeds = 3"},
	{what: "no pool", sets: []string{"pool=[]"}},
	{what: "an unknown model", old: `llama-3.1-8b`, new: `llama-3.1-9b`},
	{what: "an ambiguous model", old: `llama-3.1-8b`, new: `llama-3`},
	{what: "an unknown GPU", old: `h100-sxm-80gb`, new: `h100-cxl`},
	{what: "a GPU like no other", old: `h100-sxm-80gb`, new: `tpu-v5`},
	{what: "a model that does not fit", old: `llama-3.1-8b`, new: `llama-3.3-70b`},
	{what: "a model that fits nowhere", sets: []string{"pool.main.model=llama-3.1-405b", "pool.main.gpu=a100"}},
	{what: "a tensor parallelism that does not divide the model", sets: []string{"pool.main.tensor_parallel=3"}},
	{what: "a weight format that does not exist", sets: []string{"pool.main.gpu=a100", "pool.main.weight_dtype=fp6"}},
	{what: "max_model_len larger than the KV pool", old: `gpu = `, new: "engine = { max_model_len = 64000, kv_blocks = 2000 }\ngpu = "},
	{what: "max_model_len beyond the checkpoint", sets: []string{"pool.main.engine.max_model_len=200K"}},
	{what: "more sequences than tokens", sets: []string{"pool.main.engine.max_num_batched_tokens=128", "pool.main.engine.max_num_seqs=256"}},
	{what: "a limit with two names", sets: []string{"pool.main.engine.kind=trtllm", "pool.main.engine.max_batch_size=64", "pool.main.engine.max_num_seqs=32"}},
	{what: "more sequences than tokens under other names", sets: []string{"pool.main.engine.kind=trtllm", "pool.main.engine.max_batch_size=64", "pool.main.engine.max_num_tokens=32"}},
	{what: "fewer tokens than a block", sets: []string{"pool.main.engine.kind=trtllm", "pool.main.engine.max_batch_size=8", "pool.main.engine.max_num_tokens=16"}},
	{what: "an unknown kind of engine", old: `gpu = `, new: "engine = { kind = \"sglan\", chunked_prefill_size = 4096 }\ngpu = "},
	{what: "keys of other kinds of engine", old: `gpu = `, new: "engine = { chunked_prefill_size = 4096, max_batch_size = 8 }\ngpu = "},
	{what: "a misspelt key of another kind of engine", old: `gpu = `, new: "engine = { kind = \"tgi\", max_batch_prefil_tokens = 4096 }\ngpu = "},
	{what: "an engine's own name of a key", old: `gpu = `, new: "engine = { kind = \"sglang\", page_size = 64 }\ngpu = ", sets: []string{"traffic.chat.qps=5"}},
	{what: "an engine that is never fixed ahead", old: `gpu = `, new: "engine = { kind = \"static\", async = true }\ngpu = "},
	{what: "an unknown release of vLLM", sets: []string{"pool.main.engine.version=0.6.3"}},
	{what: "a block size that is no power of two", sets: []string{"pool.main.engine.block_size=48"}},
	{what: "a chunk smaller than a block", sets: []string{"pool.main.engine.kind=sglang", "pool.main.engine.block_size=64", "pool.main.engine.chunked_prefill_size=32"}},
	{what: "TGI with too few tokens in all", sets: []string{"pool.main.engine.kind=tgi", "pool.main.engine.max_batch_total_tokens=8000", "pool.main.engine.max_model_len=16000"}},
	{what: "TGI with more tokens than the pool", sets: []string{"pool.main.engine.kind=tgi", "pool.main.engine.max_batch_total_tokens=500K"}},
	{what: "heat on a GPU whose thermal figures are unknown", sets: []string{"pool.main.gpu=mi300x", "pool.main.thermal=true"}},
	{what: "experts of a dense model", sets: []string{"pool.main.expert_parallel=8"}},
	{what: "experts over GPUs that are not there", sets: []string{"pool.main.model=qwen3-30b-a3b", "pool.main.expert_parallel=8"}},
	{what: "more stages than layers", sets: []string{"pool.main.pipeline_parallel=33"}},
	{what: "a config.json that is not there", sets: []string{"pool.main.model=nowhere/config.json"}},
	{what: "a config.json of an unknown architecture", sets: []string{"pool.main.model=testdata/mamba.json"}},
	{what: "a config.json without needed fields", sets: []string{"pool.main.model=testdata/short.json"}},
	{what: "host constants of the other scheduler", sets: []string{"pool.main.host.sync_fixed=1ms"}},
	{what: "a pool for an unknown class", old: `gpu = `, new: "classes = [\"chta\"]\ngpu = "},
	{what: "two pools for one class", old: "[[traffic]]", new: "classes = \"chat\"\n[[pool]]\nname = \"more\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\nclasses = \"chat\"\n[[traffic]]"},
	{what: "two pools for everything", old: "[[traffic]]", new: "[[pool]]\nname = \"more\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\n[[traffic]]"},
	{what: "a pool with nothing to serve", old: "[[traffic]]", new: "[[pool]]\nname = \"more\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\nclasses = [\"chat\"]\n[[traffic]]"},
	{what: "a decode pool without a prefill pool", old: `gpu = `, new: "role = \"decode\"\ngpu = "},
	{what: "a prefill pool without a decode pool", old: "[[traffic]]", new: "[[pool]]\nname = \"more\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\nrole = \"prefill\"\n[[traffic]]"},
	{what: "two prefill pools for one class", old: "[[traffic]]", new: "[[pool]]\nname = \"more\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\nrole = \"prefill\"\nclasses = \"chat\"\n[[pool]]\nname = \"third\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\nrole = \"prefill\"\nclasses = \"chat\"\n[[traffic]]", sets: []string{"pool.main.role=decode"}},
	{what: "another KV format where prompts are computed", old: "[[traffic]]", new: "[[pool]]\nname = \"more\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\nrole = \"prefill\"\nkv_dtype = \"fp8\"\n[[traffic]]", sets: []string{"pool.main.role=decode"}},
	{what: "another model where prompts are computed", old: "[[traffic]]", new: "[[pool]]\nname = \"more\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\nrole = \"prefill\"\n[[traffic]]", sets: []string{"pool.main.role=decode", "pool.more.model=llama-3.3-70b", "pool.more.tensor_parallel=8"}},
	{what: "a role that is misspelt", old: `gpu = `, new: "role = \"prefil\"\ngpu = "},
	{what: "a role with sglang", old: "[[traffic]]", new: "[[pool]]\nname = \"more\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\nrole = \"prefill\"\n[[traffic]]", sets: []string{"pool.main.role=decode", "pool.main.engine.kind=sglang"}},
	{what: "a link without a role", old: `gpu = `, new: "link = { bandwidth = \"50GB/s\" }\ngpu = "},
	{what: "a link that is misspelt", old: "[[traffic]]", new: "[[pool]]\nname = \"more\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\nrole = \"prefill\"\nlink = { bandwith = \"50GB/s\" }\n[[traffic]]", sets: []string{"pool.main.role=decode"}},
	{what: "a link without bandwidth", old: "[[traffic]]", new: "[[pool]]\nname = \"more\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\nrole = \"prefill\"\n[[traffic]]", sets: []string{"pool.main.role=decode", "pool.main.link.bandwidth=0GB/s", "pool.more.link.bandwidth=400"}},
	{what: "min_tokens on a prefill pool", old: "[[traffic]]", new: "[[pool]]\nname = \"more\"\nmodel = \"llama-3.1-8b\"\ngpu = \"h100\"\nrole = \"prefill\"\n[[traffic]]", sets: []string{"pool.main.role=decode", "pool.more.link.min_tokens=2000"}},
	{what: "no drafts", old: `gpu = `, new: "engine = { speculative = { drafts = 0, acceptance = \"70%\", draft_time = \"0.8ms\" } }\ngpu = "},
	{what: "drafts that are always accepted", old: `gpu = `, new: "engine = { speculative = { drafts = 3, acceptance = \"100%\", draft_time = \"0.8ms\" } }\ngpu = "},
	{what: "speculation with async scheduling", old: `gpu = `, new: "engine = { async = true, speculative = { drafts = 3, acceptance = 0.7, draft_time = \"0.8ms\" } }\ngpu = "},
	{what: "speculation on another kind of engine", sets: []string{"pool.main.engine.kind=tgi", "pool.main.engine.speculative={ drafts = 3, acceptance = \"70%\", draft_time = \"0.8ms\" }"}},
	{what: "a class that no pool serves", old: "[[change]]", new: "[[traffic]]\nclass = \"code\"\nrate = \"1/s\"\nprompt = 1\noutput = 1\n[[change]]", sets: []string{"pool.main.classes=chat"}},
	{what: "duplicate names", old: "[[change]]", new: "[[traffic]]\nclass = \"chat\"\nrate = \"1/s\"\nprompt = 1\noutput = 1\n[[change]]"},
	{what: "a p99 that no lognormal has", old: `prompt = 500`, new: `prompt = { dist = "lognormal", mean = 500, p99 = 400 }`},
	{what: "a p99 out of range", old: `prompt = 500`, new: `prompt = { dist = "lognormal", mean = 500, p99 = 1e9 }`},
	{what: "a distribution that is misspelt", old: `"exponential"`, new: `"exponental"`},
	{what: "an empirical distribution that falls", old: `prompt = 500`, new: `prompt = { dist = "empirical", points = [[100, 0.5], [50, 1]] }`},
	{what: "a range upside down", old: `prompt = 500`, new: `prompt = { dist = "uniform", min = 500, max = 100 }`},
	{what: "bursts that overlap", old: `rate = "2/s"`, new: `rate = { mean = "2/s", bursts = [{ at = "10m", length = "10m", factor = 2 }, { at = "15m", length = "10m", factor = 2 }] }`},
	{what: "bursts without end", old: `rate = "2/s"`, new: `rate = { mean = "2/s", bursts = [{ at = "10m", length = "1ms", every = "2ms", factor = 2 }] }`},
	{what: "peak without diurnal", old: `rate = "2/s"`, new: `rate = { mean = "2/s", peak = "14:00" }`},
	{what: "users and a rate", old: `rate = "2/s"`, new: "rate = \"2/s\"\nusers = 5"},
	{what: "a think time that is misspelt, without users", old: `rate = "2/s"`, new: "rate = \"2/s\"\nthnk = \"5s\""},
	{what: "a think time without users", old: `rate = "2/s"`, new: "rate = \"2/s\"\nthink = \"5s\""},
	{what: "two models of the prefix cache", old: `rate = "2/s"`, new: "rate = \"2/s\"\nsystem_prompt = { tokens = \"1500\", variants = 3 }\nprefix_hit = { ratio = \"60%\", tokens = 100 }"},
	{what: "a system prompt without a length", old: `rate = "2/s"`, new: "rate = \"2/s\"\nsystem_prompt = { variants = 0 }\npriority = 0.5"},
	{what: "a change to no rate", sets: []string{"change.feature.rate=0x"}},
	{what: "a change to a rate of 0", sets: []string{"change.feature.rate=0/s"}},
	{what: "a change of rate without a unit", sets: []string{"change.feature.rate=2"}},
	{what: "a change to a factor that is none", sets: []string{"change.feature.rate=twox"}},
	{what: "a change for an unknown class", sets: []string{"change.feature.class=code"}},
	{what: "a change after the end", sets: []string{"change.feature.at=3h"}},
	{what: "a ramp beyond the end", sets: []string{"change.feature.ramp=2h"}},
	{what: "a share of more than all", sets: []string{"change.feature.share=130%"}},
	{what: "a share without percent sign", sets: []string{"change.feature.share=30"}},
	{what: "a change that changes nothing", old: "share = \"30%\"\nprompt = 5000", new: ""},
	{what: "changes that overlap", old: "[[slo]]", new: "[[change]]\nname = \"more\"\nclass = \"chat\"\nat = \"65m\"\nshare = \"80%\"\noutput = 10\n[[slo]]"},
	{what: "an SLO on an unknown class", sets: []string{"slo.chat TTFT.class=code"}},
	{what: "an SLO on an unknown cohort", sets: []string{"slo.chat TTFT.only=featrue"}},
	{what: "an SLO of 100 %", sets: []string{"slo.chat TTFT.objective=100%"}},
	{what: "an SLO as a number of percent", sets: []string{"slo.chat TTFT.objective=99"}},
	{what: "a threshold for availability", sets: []string{"slo.chat TTFT.metric=availability"}},
	{what: "a missing trace", old: "rate = \"2/s\"\nprompt = 500\noutput = { dist = \"exponential\", mean = 100 }", new: `trace = { file = "nowhere.csv", format = "azure" }`},
	{what: "a trace with a broken line", old: "rate = \"2/s\"\nprompt = 500\noutput = { dist = \"exponential\", mean = 100 }", new: `trace = { file = "broken.csv", format = "csv", arrival = "ts", prompt = "in", output = "out", unit = "1ms" }`},
	{what: "a trace without the columns", old: "rate = \"2/s\"\nprompt = 500\noutput = { dist = \"exponential\", mean = 100 }", new: `trace = { file = "trace.csv", format = "csv" }`},
	{what: "a trace that is too short", old: "rate = \"2/s\"\nprompt = 500\noutput = { dist = \"exponential\", mean = 100 }", new: `trace = { file = "trace.csv", format = "csv", arrival = "ts", prompt = "in", output = "out", unit = "1ms" }`},
	{what: "a trace that is cut short", old: "rate = \"2/s\"\nprompt = 500\noutput = { dist = \"exponential\", mean = 100 }", new: `trace = { file = "cut.csv.gz", format = "csv", arrival = "ts", prompt = "in", output = "out", unit = "1ms" }`},
	{what: "a trace and a rate", old: "prompt = 500\noutput = { dist = \"exponential\", mean = 100 }", new: `trace = { file = "azure.csv", format = "azure" }`},
	{what: "not TOML", old: `duration = "2h"`, new: `duration = 2h`},
	{what: "a --set for nothing", sets: []string{"pool.mian.replicas=8", "pool.main.replica=8", "duration"}},
}

// TestBadInput shows every error as a person sees it.
func TestBadInput(t *testing.T) {
	if err := os.WriteFile("testdata/case.toml", []byte(base), 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove("testdata/case.toml")
	if _, _, err := Load("testdata/case.toml"); err != nil {
		t.Fatalf("the base is not valid: %v", err)
	}
	var b strings.Builder
	for _, c := range breaks {
		if !strings.Contains(base, c.old) {
			t.Errorf("%s: nothing to replace", c.what)
		}
		text := strings.Replace(base, c.old, c.new, 1)
		if err := os.WriteFile("testdata/case.toml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := Load("testdata/case.toml", c.sets...)
		switch {
		case err == nil:
			t.Errorf("%s: no error", c.what)
			continue
		case !config.IsInput(err):
			t.Errorf("%s: %v is no error of the input", c.what, err)
		}
		fmt.Fprintf(&b, "### %s\n%s\n\n", c.what, err)
	}
	for _, path := range []string{"testdata/nowhere.toml", "prompt-grwth", "testdata"} {
		_, _, err := Load(path)
		fmt.Fprintf(&b, "### load %s\n%v\n\n", path, err)
	}
	golden(t, filepath.Join("testdata", "errors.txt"), b.String())
}

// A sweep is no experiment, and is told the verb that takes it.
func TestASweepIsToldItsVerb(t *testing.T) {
	text, err := Shipped(Sweep)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Parse("s.toml", ".", text)
	if err == nil || !strings.Contains(err.Error(), "sim sweep s.toml") || !config.IsInput(err) {
		t.Error(err)
	}
}
