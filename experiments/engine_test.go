package experiments

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"slosim/sim"
)

// write puts an experiment into a folder of the test and returns its path.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "case.toml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEngineKindsHaveTheirOwnDefaults shows what each kind of engine resolves to
// on a small and on a large GPU.
func TestEngineKindsHaveTheirOwnDefaults(t *testing.T) {
	path := write(t, base)
	var b strings.Builder
	for _, gpu := range []string{"h100", "b200"} {
		for _, kind := range engineKinds {
			e, p := load(t, path, "pool.main.engine.kind="+kind, "pool.main.gpu="+gpu)
			fmt.Fprintf(&b, "### %s on %s, async %v\n", kind, gpu, e.Pools[0].Deployment.Host.Async)
			if err := p.Explain(&b, "pool.main.engine"); err != nil {
				t.Fatal(err)
			}
		}
	}
	golden(t, "testdata/engines.txt", b.String())
}

// TestVersionsOfVLLMSwitchDefaults is the table of what changed with which
// release.
func TestVersionsOfVLLMSwitchDefaults(t *testing.T) {
	path := write(t, base)
	var b strings.Builder
	b.WriteString("version   tokens on h100, b200   async  whole prompt  utilisation\n")
	for _, v := range []string{"0.11", "0.13.0", "v0.14.1", "0.18", "0.19", "0.20", `"0.20"`, "0.21", "0.27.1", "main"} {
		e, _ := load(t, path, "pool.main.engine.version="+v)
		big, _ := load(t, path, "pool.main.engine.version="+v, "pool.main.gpu=b200")
		d, s := e.Pools[0].Deployment, e.Pools[0].Engine
		fmt.Fprintf(&b, "%-9s %5d %5d            %-5v  %-5v         %.2f\n", v, s.MaxBatchedTokens, big.Pools[0].Engine.MaxBatchedTokens, d.Host.Async, s.ReserveFullPrompt, d.MemoryUtilization)
	}
	golden(t, "testdata/versions.txt", b.String())
	e, _ := load(t, path, "pool.main.engine.version=0.11", "pool.main.engine.async=true", "pool.main.engine.reserve_full_prompt=true")
	if !e.Pools[0].Deployment.Host.Async || !e.Pools[0].Engine.ReserveFullPrompt {
		t.Error("a version only moves defaults: what is given counts")
	}
}

func TestEnginesOwnNamesAreTheSameLimits(t *testing.T) {
	path := write(t, base)
	for _, c := range []struct{ kind, own, ours string }{
		{sglang, "max_running_requests=64", "max_num_seqs=64"},
		{trtllm, "max_batch_size=64", "max_num_seqs=64"},
		{trtllm, "max_num_tokens=4096", "max_num_batched_tokens=4096"},
		{tgi, "max_batch_size=64", "max_num_seqs=64"},
		{static, "max_batch_size=64", "max_num_seqs=64"},
	} {
		kind := "pool.main.engine.kind=" + c.kind
		a, _ := load(t, path, kind, "pool.main.engine."+c.own)
		b, _ := load(t, path, kind, "pool.main.engine."+c.ours)
		if Hash(a) != Hash(b) || a.Pools[0].Engine.MaxSeqs != 64 && a.Pools[0].Engine.MaxBatchedTokens != 4096 {
			t.Errorf("%s: %s and %s differ", c.kind, c.own, c.ours)
		}
	}
}

func TestThinkTimesAndPrefixes(t *testing.T) {
	path := write(t, strings.Replace(base, `rate = "2/s"`, "users = 20\npriority = -3\nsystem_prompt = { tokens = \"1500\", variants = 3 }", 1))
	for _, think := range []string{"", "0s", "0"} {
		var sets []string
		if think != "" {
			sets = []string{"traffic.chat.think=" + think}
		}
		e, p := load(t, path, sets...)
		if c := e.Traffic[0]; c.Client.Think.Kind != "" || c.Priority != -3 || c.System.Tokens != 1500 || c.System.Variants != 3 {
			t.Errorf("think %q: %+v", think, c)
		}
		var b strings.Builder
		if err := p.Explain(&b, "traffic.chat.think"); err != nil || !strings.Contains(b.String(), `"0s"`) && !strings.Contains(b.String(), "= 0") {
			t.Errorf("think %q is explained as %q, %v", think, b.String(), err)
		}
	}
	e, _ := load(t, path, "traffic.chat.think={ dist = \"exponential\", mean = \"5s\" }")
	if d := e.Traffic[0].Client.Think; d.Kind != "exponential" || d.Mean != 5 {
		t.Errorf("%+v", d)
	}
	e, _ = load(t, write(t, base), `traffic.chat.prefix_hit={ ratio = "60%", tokens = { dist = "uniform", min = 100, max = 400 } }`)
	if h := e.Traffic[0].Hit; h.Ratio != 0.6 || h.Tokens.Kind != "uniform" || h.Tokens.Max != 400 {
		t.Errorf("%+v", h)
	}
}

// engineChoices are settings that contradict each other now and then.
var engineChoices = [][]string{
	{"kv_blocks", "2", "40", "400"}, {"max_model_len", "2", "100", "3000"}, {"block_size", "1", "16", "64", "256"}, {"max_num_seqs", "1", "3", "64"},
	{"max_num_batched_tokens", "1", "64", "512"}, {"max_waiting", "1", "5"}, {"max_new_tokens", "1", "200", "9999"}, {"chunked_prefill_size", "1", "64", "300"},
	{"enable_mixed_chunk", "true"}, {"async", "false"}, {"capacity_policy", "max_utilization", "static_batch"}, {"max_waiting_tokens", "1"}, {"waiting_served_ratio", "5"},
	{"max_batch_prefill_tokens", "1", "100"}, {"max_batch_total_tokens", "100", "3000"}, {"watermark", "50%"}, {"skip_ahead", "5"}, {"policy", "priority"},
	{"stop", "eos"}, {"prefix_caching", "false"}, {"long_prefill_token_threshold", "1", "70"}, {"reserve_full_prompt", "false"},
}

// TestWhatLoadsRuns draws engine settings: those that Load accepts start and
// serve, those that it refuses are errors of the input.
func TestWhatLoadsRuns(t *testing.T) {
	path := write(t, strings.Replace(base, `duration = "2h"`, "duration = \"1m\"\nwarmup = \"0s\"\nreplications = 1", 1))
	free := []string{"change=[]", "traffic.chat.rate=3/s", "slo.chat TTFT.window=1h"}
	ran := 0
	rapid.Check(t, func(t *rapid.T) {
		sets := append([]string{"pool.main.engine.kind=" + rapid.SampledFrom(engineKinds).Draw(t, "kind")}, free...)
		for _, choice := range engineChoices {
			if v := rapid.SampledFrom(append([]string{"", "", ""}, choice[1:]...)).Draw(t, choice[0]); v != "" {
				sets = append(sets, "pool.main.engine."+choice[0]+"="+v)
			}
		}
		sets = dropForeign(sets)
		e, _, err := Load(path, sets...)
		if err != nil {
			return
		}
		ran++
		if _, err := sim.Run(context.Background(), e, sim.Options{Workers: 1}); err != nil {
			t.Fatalf("%v: %v", sets, err)
		}
	})
	if ran < 20 {
		t.Errorf("only %d settings were valid", ran)
	}
}

// dropForeign removes the settings that the chosen kind does not have.
func dropForeign(sets []string) []string {
	_, kind, _ := strings.Cut(sets[0], "=")
	var out []string
	for _, s := range sets {
		key, ours := strings.CutPrefix(s[:strings.Index(s, "=")], "pool.main.engine.")
		keep := !ours
		for _, k := range engineTable {
			keep = keep || k.name == key && k.has(kind)
		}
		if keep {
			out = append(out, s)
		}
	}
	return out
}
