package models

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const common = `"vocab_size": 32000, "max_position_embeddings": 32768, "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, `

// hfCases are configurations as the checkpoints publish them, cut to the fields
// that matter, and what must come out.
var hfCases = []struct {
	name, config string
	want         LLM
}{
	{"llama", `{"architectures": ["LlamaForCausalLM"], ` + common + `"intermediate_size": 14336, "num_key_value_heads": 8}`,
		LLM{KVHeads: 8, HeadDim: 128, Intermediate: 14336}},
	{"llama without GQA", `{"architectures": ["LlamaForCausalLM"], ` + common + `"intermediate_size": 11008}`,
		LLM{KVHeads: 32, HeadDim: 128, Intermediate: 11008}},
	{"mistral with a window", `{"architectures": ["MistralForCausalLM"], ` + common + `"intermediate_size": 14336, "num_key_value_heads": 8, "sliding_window": 4096}`,
		LLM{KVHeads: 8, HeadDim: 128, Intermediate: 14336, Window: 4096, WindowLayers: 32}},
	{"mistral without one", `{"architectures": ["MistralForCausalLM"], ` + common + `"intermediate_size": 14336, "num_key_value_heads": 8, "sliding_window": null}`,
		LLM{KVHeads: 8, HeadDim: 128, Intermediate: 14336}},
	{"qwen2", `{"architectures": ["Qwen2ForCausalLM"], ` + common + `"intermediate_size": 18944, "num_key_value_heads": 4, "use_sliding_window": false, "sliding_window": 131072}`,
		LLM{KVHeads: 4, HeadDim: 128, Intermediate: 18944, AttnBias: true}},
	{"qwen3", `{"architectures": ["Qwen3ForCausalLM"], ` + common + `"intermediate_size": 17408, "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": true}`,
		LLM{KVHeads: 8, HeadDim: 128, Intermediate: 17408, QKNorm: true, TiedEmbed: true}},
	{"mixtral", `{"architectures": ["MixtralForCausalLM"], ` + common + `"intermediate_size": 14336, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": null}`,
		LLM{KVHeads: 8, HeadDim: 128, MoE: MoE{Experts: 8, TopK: 2, Intermediate: 14336}}},
	{"qwen3 moe", `{"architectures": ["Qwen3MoeForCausalLM"], ` + common + `"intermediate_size": 6144, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1, "mlp_only_layers": []}`,
		LLM{KVHeads: 4, HeadDim: 128, QKNorm: true, MoE: MoE{Experts: 128, TopK: 8, Intermediate: 768}}},
	{"deepseek", `{"architectures": ["DeepseekV3ForCausalLM"], ` + common + `"intermediate_size": 18432, "num_key_value_heads": 32, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "quantization_config": {"quant_method": "fp8", "fmt": "e4m3"}}`,
		LLM{KVHeads: 32, Intermediate: 18432, Dtype: FP8, MoE: MoE{Experts: 256, TopK: 8, Intermediate: 2048, Shared: 2048, DenseLayers: 3},
			MLA: MLA{QRank: 1536, KVRank: 512, NopeDim: 128, RopeDim: 64, VDim: 128}}},
	{"gpt-oss", `{"architectures": ["GptOssForCausalLM"], ` + common + `"intermediate_size": 2880, "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "quantization_config": {"quant_method": "mxfp4"}}`,
		LLM{KVHeads: 8, HeadDim: 64, AttnBias: true, Dtype: MXFP4, Window: 128, WindowLayers: 2, MoE: MoE{Experts: 32, TopK: 4, Intermediate: 2880, Bias: true}}},
	{"gemma 2", `{"architectures": ["Gemma2ForCausalLM"], ` + common + `"intermediate_size": 14336, "num_key_value_heads": 8, "head_dim": 256, "sliding_window": 4096}`,
		LLM{KVHeads: 8, HeadDim: 256, Intermediate: 14336, TiedEmbed: true, ExtraNorms: true, Window: 4096, WindowLayers: 16}},
	{"gemma 3 inside a vision model", `{"architectures": ["Gemma3ForConditionalGeneration"], "text_config": {` + common + `"intermediate_size": 21504, "num_key_value_heads": 16, "head_dim": 128, "sliding_window": 1024, "sliding_window_pattern": 6}}`,
		LLM{KVHeads: 16, HeadDim: 128, Intermediate: 21504, TiedEmbed: true, ExtraNorms: true, QKNorm: true, Window: 1024, WindowLayers: 27}},
	{"awq", `{"architectures": ["LlamaForCausalLM"], ` + common + `"intermediate_size": 11008, "quantization_config": {"quant_method": "awq", "bits": 4}}`,
		LLM{KVHeads: 32, HeadDim: 128, Intermediate: 11008, Dtype: INT4}},
	{"w8a8", `{"architectures": ["LlamaForCausalLM"], ` + common + `"intermediate_size": 11008, "quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized"}}`,
		LLM{KVHeads: 32, HeadDim: 128, Intermediate: 11008, Dtype: INT8}},
}

func TestHuggingFaceConfigurationsOfEveryFamilyAreRead(t *testing.T) {
	for _, c := range hfCases {
		got, err := parseLLM(c.name, "config.json", []byte(c.config))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		want := c.want
		want.Name, want.Source = got.Name, got.Source
		want.Vocab, want.MaxModelLen, want.Layers, want.Hidden, want.Heads = 32000, 32768, 32, 4096, 32
		if got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, want)
		}
	}
}

func TestBadConfigurationsSayWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32}`: "missing fields of a LlamaForCausalLM: hidden_size, num_attention_heads, intermediate_size, vocab_size, max_position_embeddings",
		`{"num_hidden_layers": 32}`:                                        "missing fields: architectures",
		`{"architectures": ["FalconForCausalLM"]}`:                         `architecture "FalconForCausalLM" is not modelled; modelled are DeepseekV2ForCausalLM, `,
		"{\n\"architectures\": [\n}":                                       "line 3 is no JSON",
		`{"architectures": ["LlamaForCausalLM"], ` + common + `"intermediate_size": 14336, "num_key_value_heads": 7}`:                           "num_attention_heads = 32 is no multiple of num_key_value_heads = 7",
		`{"architectures": ["LlamaForCausalLM"], ` + common + `"intermediate_size": "big"}`:                                                     "intermediate_size is big, want a whole number",
		`{"architectures": ["LlamaForCausalLM"], ` + common + `"intermediate_size": 14336, "quantization_config": {"quant_method": "aqlm"}}`:    "quant_method aqlm is not modelled",
		`{"architectures": ["MixtralForCausalLM"], ` + common + `"intermediate_size": 14336, "num_local_experts": 2, "num_experts_per_tok": 4}`: "a token uses 4 experts of 2",
	} {
		_, err := parseLLM("x", "x/config.json", []byte(text))
		var bad *ConfigError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "x/config.json: "+want) && !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v, want %s", text, err, want)
		}
	}
}

func TestAConfigurationIsNamedAfterItsFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "My-Model")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(hfCases[0].config), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "config.json")} {
		if m, err := ReadLLM(path); err != nil || m.Name != "my-model" {
			t.Errorf("%s: %q, %v", path, m.Name, err)
		}
	}
	if _, err := ReadLLM(filepath.Join(dir, "none.json")); err == nil || !strings.Contains(err.Error(), "none.json: ") {
		t.Errorf("missing file: %v", err)
	}
	if !IsConfigPath("./x/config.json") || !IsConfigPath("models/x") || IsConfigPath("llama-3.1-8b") {
		t.Error("names and paths are confused")
	}
}
