package experiments

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/workloads"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file, or writes it with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (- want, + got; -update rewrites it):\n%s", file, diff)
	}
}

// azureSet points the shipped replay at a trace.
var azureSet = "traffic.conv.trace.file=testdata/azure.csv"

// load loads an experiment that must be valid.
func load(t *testing.T, path string, sets ...string) (sim.Experiment, config.Provenance) {
	t.Helper()
	if strings.Contains(path, "azure-replay") {
		sets = append([]string{azureSet}, sets...)
	}
	e, p, err := Load(path, sets...)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return e, p
}

// TestShippedExperimentsAreValid: all of them load, from the binary as from the
// disk, and describe themselves.
func TestShippedExperimentsAreValid(t *testing.T) {
	list, err := List()
	if err != nil || len(list) < 4 {
		t.Fatalf("%d shipped experiments, %v", len(list), err)
	}
	var b strings.Builder
	for _, x := range list {
		e, p := load(t, "experiments/"+x.Name+".toml")
		Describe(&b, e, p)
		if e.Name != x.Name || x.Title == "" || x.Question == "" {
			t.Errorf("%+v is named %q", x, e.Name)
		}
		_, fromDisk := load(t, x.Name+".toml")
		if fromDisk.SHA256 != p.SHA256 {
			t.Errorf("%s differs between disk and binary", x.Name)
		}
	}
	text := b.String()
	for _, line := range strings.SplitAfter(text, "\n") {
		if strings.Contains(line, "  hash ") {
			text = strings.Replace(text, line, "", 1) // it changes with every catalogue figure
		}
	}
	golden(t, "testdata/describe.txt", text)
}

func TestPromptGrowthIsResolved(t *testing.T) {
	e, _ := load(t, "prompt-growth")
	lognormal := func(mean, p99 float64) workloads.Dist {
		return workloads.Dist{Kind: "lognormal", Mean: mean, P99: p99}
	}
	long := lognormal(20000, 60000)
	want := sim.Experiment{
		Duration: 72 * clock.Hour, Warmup: 30 * clock.Minute, Seed: 1, Replications: 5,
		Traffic: []workloads.Class{{
			Name: "chat", Stream: "chat",
			Rate:   workloads.Rate{Mean: 5.5, Shape: "diurnal", Peak: 14 * clock.Hour, PeakToTrough: 3, Burstiness: 1},
			Prompt: lognormal(2000, 8000), Output: lognormal(256, 1024),
		}},
		Changes: []workloads.Change{{Name: "feature", Class: "chat", At: 32 * clock.Hour, Ramp: clock.Hour, Share: 0.3, RateFactor: 1, Prompt: &long}},
	}
	got := sim.Experiment{Duration: e.Duration, Warmup: e.Warmup, Seed: e.Seed, Replications: e.Replications, Traffic: e.Traffic, Changes: e.Changes}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	pool := e.Pools[0]
	engine := sim.EngineSpec{Kind: "vllm", MaxBatchedTokens: 8192, MaxSeqs: 1024, MaxModelLen: 131072, BlockSize: 16,
		KVBlocks: pool.Engine.KVBlocks, ReserveFullPrompt: true, PrefixCache: true}
	if diff := cmp.Diff(engine, pool.Engine); diff != "" || pool.Engine.KVBlocks < 80_000 {
		t.Errorf("%d KV blocks\n%s", pool.Engine.KVBlocks, diff)
	}
	if d := pool.Deployment; d.TP != 8 || d.MemoryUtilization != 0.92 || !d.Host.Async || d.MaxBatchedTokens != 8192 || pool.GPUs() != 32 {
		t.Errorf("%+v", d)
	}
	if !pool.Thermal.Enabled || pool.Thermal.AmbientC != 30 || len(e.Assumptions) == 0 {
		t.Errorf("%+v %q", pool.Thermal, e.Assumptions)
	}
	if o := e.SLOs[1]; o.Target != 0.99 || o.Threshold != 2*clock.Second || o.Window != 30*clock.Day || o.Exclude[0] != "feature" {
		t.Errorf("%+v", o)
	}
}

// TestExplainedSettingsGiveTheSameExperiment: what explain prints can be pasted
// behind --set, setting by setting, and changes nothing.
func TestExplainedSettingsGiveTheSameExperiment(t *testing.T) {
	for _, name := range Names() {
		_, p := load(t, name)
		var sets []string
		for _, e := range p.Entries {
			if e.Origin != "derived" && !strings.HasPrefix(e.Origin, "catalogue") && !strings.HasSuffix(e.Path, "trace.file") {
				sets = append(sets, e.Path+"="+e.Value)
			}
		}
		_, again := load(t, name, sets...)
		if again.SHA256 != p.SHA256 {
			t.Errorf("%s: another experiment after --set of its own settings", name)
		}
		if len(sets) < 40 {
			t.Errorf("%s: only %d settings explained", name, len(sets))
		}
	}
}

func TestHashIsTheIdentityOfWhatIsSimulated(t *testing.T) {
	_, base := load(t, "prompt-growth")
	_, same := load(t, "prompt-growth", "pool.main.replicas=4", "change.feature.share=0.3", "duration=3d")
	_, other := load(t, "prompt-growth", "pool.main.replicas=5")
	if base.SHA256 != same.SHA256 || base.SHA256 == other.SHA256 {
		t.Errorf("base %s, same %s, other %s", base.SHA256, same.SHA256, other.SHA256)
	}
	dir := t.TempDir()
	text, err := os.ReadFile("testdata/azure.csv")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "azure.csv"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	_, here := load(t, "azure-replay")
	_, there := load(t, "azure-replay", "traffic.conv.trace.file="+filepath.Join(dir, "azure.csv"))
	if here.SHA256 != there.SHA256 {
		t.Error("a trace counts by its content, not by its folder")
	}
	if err := os.WriteFile(filepath.Join(dir, "azure.csv"), append(text, "2023-11-16 19:25:52.0000000,1,1\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, changed := load(t, "azure-replay", "traffic.conv.trace.file="+filepath.Join(dir, "azure.csv")); changed.SHA256 == here.SHA256 {
		t.Error("another trace, the same hash")
	}
}

// TestEngineDefaultsFollowTheGPU shows vLLM's defaults by GPU memory.
func TestEngineDefaultsFollowTheGPU(t *testing.T) {
	for gpu, want := range map[string][2]int32{"h100": {8192, 1024}, "h200": {8192, 1024}, "a100": {2048, 256}, "b200": {16384, 1024}} {
		e, _ := load(t, "prompt-growth", "pool.main.gpu="+gpu)
		if got := [2]int32{e.Pools[0].Engine.MaxBatchedTokens, e.Pools[0].Engine.MaxSeqs}; got != want {
			t.Errorf("%s: %v, want %v", gpu, got, want)
		}
	}
	e, _ := load(t, "prompt-growth", "pool.main.engine.max_num_batched_tokens=512")
	if e.Pools[0].Engine.MaxSeqs != 512 {
		t.Errorf("max_num_seqs %d is not capped to the tokens of a step", e.Pools[0].Engine.MaxSeqs)
	}
}

// TestMaxModelLenIsWhatFits: a small KV pool lowers the default, as vLLM's auto.
func TestMaxModelLenIsWhatFits(t *testing.T) {
	e, p := load(t, "prompt-growth", "pool.main.engine.kv_blocks=1001")
	if got := e.Pools[0].Engine; got.MaxModelLen != 16000 || got.KVBlocks != 1001 {
		t.Errorf("%+v", got)
	}
	for _, entry := range p.Entries {
		if entry.Path == "pool.main.engine.max_model_len" && !strings.Contains(entry.Note, "131072") {
			t.Errorf("the note %q does not name the checkpoint's limit", entry.Note)
		}
	}
}

// FuzzLoad proves that no text makes Load panic.
func FuzzLoad(f *testing.F) {
	for _, name := range Names() {
		text, _ := Shipped(name)
		f.Add(text, "pool.main.replicas=8")
	}
	for _, set := range []string{
		"traffic.chat.rate=2/s", "traffic.chat.users=5", "traffic.chat.think=5s", "traffic.chat.priority=-1", "change.feature.rate=0x", "change=[]",
		"traffic.chat.system_prompt={ tokens = \"1500\", variants = 3 }", "traffic.chat.prefix_hit={ ratio = \"60%\", tokens = { dist = \"uniform\", min = 1, max = 9 } }",
		"pool.main.engine.kind=sglang", "pool.main.engine={ kind = \"trtllm\", max_batch_size = 8, max_num_tokens = 64, max_new_tokens = 9 }",
		"pool.main.engine={ kind = \"tgi\", kv_blocks = 100, max_batch_total_tokens = 1500, waiting_served_ratio = 1.2 }", "pool.main.engine={ kind = \"static\", max_num_seqs = 8 }",
		"pool.main.engine={ version = \"0.11\", policy = \"priority\", watermark = \"1%\", stop = \"eos\", skip_ahead = 4 }", "pool.main.engine.version=0.2",
		"pool.main.role=decode", "pool.main.role=prefill", "pool.main.link={ bandwidth = \"50GB/s\", latency = \"5ms\" }",
		"pool.main.engine.speculative={ drafts = 3, acceptance = \"70%\", draft_time = \"0.8ms\" }",
	} {
		f.Add(base, set)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text, set string) {
		if strings.Contains(text+set, "file") {
			return // no files of the machine
		}
		path := filepath.Join(dir, "fuzz.toml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := Load(path, set)
		if err != nil && !config.IsInput(err) {
			t.Errorf("%v is no error of the input", err)
		}
	})
}
