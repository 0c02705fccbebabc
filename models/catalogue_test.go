package models

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// keysWithoutSource returns the keys of a table that have no source of their
// own, nor belong to a table that has one, and the sources without a key.
func keysWithoutSource(table map[string]any) (unsourced, orphaned []string) {
	sources := map[string]bool{}
	for k := range table["source"].(map[string]any) {
		sources[k] = false
	}
	var walk func(prefix string, t map[string]any)
	walk = func(prefix string, t map[string]any) {
		for k, v := range t {
			key := prefix + k
			if key == "source" || key == "name" {
				continue
			}
			if _, ok := sources[key]; ok {
				sources[key] = true
			} else if sub, ok := v.(map[string]any); ok {
				walk(key+".", sub)
			} else {
				unsourced = append(unsourced, key)
			}
		}
	}
	walk("", table)
	for k, used := range sources {
		if !used {
			orphaned = append(orphaned, k)
		}
	}
	return unsourced, orphaned
}

func TestEveryCatalogueFigureHasASource(t *testing.T) {
	var files struct {
		GPU    []map[string]any
		Common map[string]any
		VLLM   map[string]any
	}
	tables := map[string]map[string]any{}
	for _, text := range []string{gpusTOML, unfittedTOML, hostsTOML} {
		files.GPU = nil
		if _, err := toml.Decode(text, &files); err != nil {
			t.Fatal(err)
		}
		for _, g := range files.GPU {
			tables[g["name"].(string)] = g
		}
	}
	tables["common"], tables["vllm"] = files.Common, files.VLLM
	for name, table := range tables {
		unsourced, orphaned := keysWithoutSource(table)
		if len(unsourced)+len(orphaned) > 0 {
			t.Errorf("%s: no source for %v; source without a figure %v", name, unsourced, orphaned)
		}
	}
	for _, m := range LLMs() {
		if m.Source == "" {
			t.Errorf("%s: no source", m.Name)
		}
	}
}

func TestCatalogueIsSortedAndComplete(t *testing.T) {
	var llms, gpus []string
	for _, m := range LLMs() {
		llms = append(llms, m.Name)
	}
	for _, g := range GPUs() {
		gpus = append(gpus, g.Name)
	}
	want := "codellama-34b deepseek-r1 deepseek-v3 gpt-oss-120b gpt-oss-20b llama-2-13b llama-2-70b llama-2-7b llama-3.1-405b llama-3.1-70b llama-3.1-8b " +
		"llama-3.3-70b mistral-7b mistral-nemo mixtral-8x22b mixtral-8x7b qwen2.5-7b qwen3-14b qwen3-235b-a22b qwen3-30b-a3b qwen3-32b qwen3-8b yi-34b"
	if got := strings.Join(llms, " "); got != want {
		t.Errorf("models %s, want %s", got, want)
	}
	if got := strings.Join(gpus, " "); got != "a100-pcie-80gb a100-sxm-40gb a100-sxm-80gb a10g-24gb b200-sxm-180gb gb200-186gb h100-nvl-94gb h100-pcie-80gb h100-sxm-80gb h200-sxm-141gb l4-24gb l40s-48gb mi300x-192gb mi325x-256gb rtx-4090-24gb" {
		t.Errorf("GPUs %s", got)
	}
}

func TestEveryModelRunsOnEveryGPUAndValidTP(t *testing.T) {
	for _, g := range GPUs() {
		if g.MaxClockMHz%ClockStepMHz != 0 || g.MinClockMHz%ClockStepMHz != 0 {
			t.Errorf("%s: clocks %d and %d MHz are no multiples of %d", g.Name, g.MinClockMHz, g.MaxClockMHz, ClockStepMHz)
		}
		for _, m := range LLMs() {
			for _, tp := range tpDegrees {
				if m.whyNotTP(tp) != "" {
					continue
				}
				d := deployment(t, m.Name, g.Name, tp)
				s := stepper(t, d)
				if c := s.Step(decodeBatch(8, 1000), g.maxBin()); c.Gemm <= 0 || c.Attn <= 0 || c.Head <= 0 || (c.Comm > 0) != (tp > 1) {
					t.Errorf("%s on %d × %s: implausible step %+v", m.Name, tp, g.Name, c)
				}
			}
		}
	}
}

func TestNamesAreFoundExactlyOrByUniquePrefix(t *testing.T) {
	for name, want := range map[string]string{"h100": "h100-sxm-80gb", "H100-SXM-80GB": "h100-sxm-80gb", "b2": "b200-sxm-180gb", "l4": "l4-24gb", "a100": "a100-sxm-80gb", "h100-p": "h100-pcie-80gb"} {
		if g, err := FindGPU(name); err != nil || g.Name != want {
			t.Errorf("FindGPU(%q) = %q, %v; want %s", name, g.Name, err, want)
		}
	}
	if m, err := FindLLM("llama-2-7b"); err != nil || m.Name != "llama-2-7b" {
		t.Errorf("exact name: %q, %v", m.Name, err)
	}
}

func TestUnknownNamesAreAnsweredWithTheNearest(t *testing.T) {
	for name, want := range map[string]string{
		"llama-3.3-70": "",
		"llama-3.1":    `model "llama-3.1" is ambiguous: llama-3.1-405b, llama-3.1-70b, llama-3.1-8b`,
		"llama-33":     `unknown model "llama-33": did you mean `,
		"lama-3.3-70b": `unknown model "lama-3.3-70b": did you mean llama-3.3-70b?`,
		"claude-4":     `unknown model "claude-4": the catalogue has codellama-34b, `,
		"":             `model "": the catalogue has codellama-34b, `,
	} {
		_, err := FindLLM(name)
		if want == "" {
			if err != nil {
				t.Errorf("FindLLM(%q): %v", name, err)
			}
			continue
		}
		var unknown *UnknownNameError
		if !errors.As(err, &unknown) || !strings.Contains(err.Error(), want) {
			t.Errorf("FindLLM(%q): %v, want %s", name, err, want)
		}
	}
}

func TestFiguresListWhatADeploymentUsesInStableOrder(t *testing.T) {
	d := deployment(t, "llama-3.3-70b", "h100-sxm-80gb", 8)
	figures := d.Figures()
	if !slices.Equal(figures, d.Figures()) {
		t.Error("the order changes from call to call")
	}
	names := map[string]Figure{}
	for _, f := range figures {
		if f.Source == "" || f.Value == "" {
			t.Errorf("%s: value %q, source %q", f.Name, f.Value, f.Source)
		}
		names[f.Name] = f
	}
	for _, has := range []string{"llm.llama-3.3-70b", "gpu.h100-sxm-80gb.all_reduce.tp8", "gpu.h100-sxm-80gb.gemm.bf16", "common.power.idle_w", "host.step_per_seq_us"} {
		if _, ok := names[has]; !ok {
			t.Errorf("%s is missing", has)
		}
	}
	for _, hasNot := range []string{"gpu.h100-sxm-80gb.all_reduce.tp4", "gpu.h100-sxm-80gb.gemm.fp8", "gpu.h100-sxm-80gb.attention.fp8", "host.sync_fixed_ms"} {
		if _, ok := names[hasNot]; ok {
			t.Errorf("%s is listed, but not used", hasNot)
		}
	}
	if f := names["host.step_per_seq_us"]; !f.Assumption || f.Value != "5" {
		t.Errorf("default host constant: %+v, want an assumption of 5", f)
	}
	d.Host.StepPerSeqPs *= 2
	for _, f := range d.Figures() {
		if f.Name == "host.step_per_seq_us" && (f.Assumption || f.Value != "10" || f.Source != overridden) {
			t.Errorf("host constant set by the user: %+v", f)
		}
	}
}
