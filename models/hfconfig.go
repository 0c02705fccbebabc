package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ConfigError says what is wrong with a Hugging Face config.json.
type ConfigError struct {
	Path    string
	Msg     string
	Missing []string // fields that this architecture needs
	Allowed []string // architectures, if this one is not known
}

func (e *ConfigError) Error() string {
	text := e.Path + ": " + e.Msg
	if len(e.Missing) > 0 {
		text += ": " + strings.Join(e.Missing, ", ")
	}
	return text
}

// IsConfigPath says whether a model name is the path of a config.json, or of the
// folder that holds one.
func IsConfigPath(name string) bool {
	return strings.HasSuffix(name, ".json") || strings.ContainsAny(name, `/\`)
}

// ReadLLM reads a model's shape from its Hugging Face config.json. The name is
// the folder's. The error is a *ConfigError, or the file system's.
func ReadLLM(path string) (LLM, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		return LLM{}, &ConfigError{Path: path, Msg: err.Error()}
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		absolute = path
	}
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	if dir := filepath.Base(filepath.Dir(absolute)); name == "config" && dir != string(filepath.Separator) {
		name = dir
	}
	return parseLLM(strings.ToLower(name), path, text)
}

// hfConfig reads fields of a configuration and collects those that are missing.
type hfConfig struct {
	fields  map[string]any
	missing []string
	bad     []string
}

// has returns a field that is there and not null.
func (c *hfConfig) has(key string) (any, bool) {
	v, ok := c.fields[key]
	return v, ok && v != nil
}

// whole returns the first of the fields that is there as a whole number.
func (c *hfConfig) whole(keys ...string) (int, bool) {
	for _, key := range keys {
		v, ok := c.has(key)
		if !ok {
			continue
		}
		f, isNumber := v.(float64)
		if !isNumber || f < 0 || f > 1<<40 || f != math.Trunc(f) {
			c.bad = append(c.bad, fmt.Sprintf("%s is %v, want a whole number", key, v))
			return 0, true
		}
		return int(f), true
	}
	return 0, false
}

// need returns a positive whole number that must be there.
func (c *hfConfig) need(keys ...string) int {
	n, ok := c.whole(keys...)
	if !ok {
		c.missing = append(c.missing, strings.Join(keys, " or "))
	} else if n == 0 && len(c.bad) == 0 {
		c.bad = append(c.bad, keys[0]+" is 0, must be positive")
	}
	return n
}

// or returns a whole number, or what stands for it.
func (c *hfConfig) or(standIn int, keys ...string) int {
	if n, ok := c.whole(keys...); ok {
		return n
	}
	return standIn
}

func (c *hfConfig) yes(key string, standIn bool) bool {
	if v, ok := c.has(key); ok {
		b, _ := v.(bool)
		return b
	}
	return standIn
}

// hfFamilies tells, by architecture, what a configuration says beyond the common
// fields.
var hfFamilies = map[string]func(*hfConfig, *LLM){
	"LlamaForCausalLM":      func(c *hfConfig, m *LLM) { m.AttnBias = c.yes("attention_bias", false) },
	"MistralForCausalLM":    func(c *hfConfig, m *LLM) { c.window(m, true) },
	"Qwen2ForCausalLM":      func(c *hfConfig, m *LLM) { m.AttnBias = true; c.window(m, c.yes("use_sliding_window", false)) },
	"Qwen3ForCausalLM":      func(c *hfConfig, m *LLM) { m.QKNorm = true; c.window(m, c.yes("use_sliding_window", false)) },
	"MixtralForCausalLM":    func(c *hfConfig, m *LLM) { c.mixtral(m); c.window(m, true) },
	"Qwen3MoeForCausalLM":   (*hfConfig).qwen3MoE,
	"DeepseekV2ForCausalLM": (*hfConfig).deepseek,
	"DeepseekV3ForCausalLM": (*hfConfig).deepseek,
	"GptOssForCausalLM":     (*hfConfig).gptOSS,
	"GemmaForCausalLM":      func(c *hfConfig, m *LLM) { m.TiedEmbed = c.yes("tie_word_embeddings", true) },
	"Gemma2ForCausalLM":     func(c *hfConfig, m *LLM) { c.gemma(m, 2); m.QKNorm = false },
	"Gemma3ForCausalLM":     func(c *hfConfig, m *LLM) { c.gemma(m, 6) },
	"Gemma3ForConditionalGeneration": func(c *hfConfig, m *LLM) {
		c.gemma(m, 6) // the language model; the vision tower is left out
	},
}

func (c *hfConfig) mixtral(m *LLM) {
	m.MoE = MoE{Experts: c.need("num_local_experts"), TopK: c.need("num_experts_per_tok"), Intermediate: m.Intermediate}
	m.Intermediate = 0
}

func (c *hfConfig) qwen3MoE(m *LLM) {
	m.QKNorm = true
	m.MoE = MoE{Experts: c.need("num_experts"), TopK: c.need("num_experts_per_tok"), Intermediate: c.need("moe_intermediate_size")}
	if step := c.or(1, "decoder_sparse_step"); step > 1 {
		m.MoE.DenseLayers = m.Layers - m.Layers/step
	}
	if only, ok := c.fields["mlp_only_layers"].([]any); ok && len(only) > 0 {
		m.MoE.DenseLayers = len(only)
	}
	if m.MoE.DenseLayers == 0 {
		m.Intermediate = 0
	}
	c.window(m, c.yes("use_sliding_window", false))
}

func (c *hfConfig) deepseek(m *LLM) {
	m.MLA = MLA{
		QRank: c.or(0, "q_lora_rank"), KVRank: c.need("kv_lora_rank"), NopeDim: c.need("qk_nope_head_dim"),
		RopeDim: c.need("qk_rope_head_dim"), VDim: c.need("v_head_dim"),
	}
	m.HeadDim = 0
	if _, ok := c.whole("n_routed_experts"); !ok {
		return // dense
	}
	m.MoE = MoE{
		Experts: c.need("n_routed_experts"), TopK: c.need("num_experts_per_tok"), Intermediate: c.need("moe_intermediate_size"),
		DenseLayers: c.or(0, "first_k_dense_replace"),
	}
	m.MoE.Shared = c.or(0, "n_shared_experts") * m.MoE.Intermediate
}

func (c *hfConfig) gptOSS(m *LLM) {
	m.AttnBias = c.yes("attention_bias", true)
	m.MoE = MoE{
		Experts: c.need("num_local_experts"), TopK: c.need("num_experts_per_tok", "experts_per_token"), Intermediate: m.Intermediate, Bias: true,
	}
	m.Intermediate = 0
	m.Window = c.need("sliding_window")
	m.WindowLayers = c.windowLayers(m.Layers, 2)
}

func (c *hfConfig) gemma(m *LLM, every int) {
	m.TiedEmbed, m.ExtraNorms, m.QKNorm = c.yes("tie_word_embeddings", true), true, true
	m.Window = c.need("sliding_window")
	m.WindowLayers = c.windowLayers(m.Layers, every)
}

// window reads a sliding window of all layers, or of those that layer_types or
// max_window_layers name.
func (c *hfConfig) window(m *LLM, used bool) {
	w, ok := c.whole("sliding_window")
	if !used || !ok || w == 0 || w >= m.MaxModelLen {
		return
	}
	m.Window, m.WindowLayers = w, m.Layers
	if _, ok := c.fields["layer_types"].([]any); ok {
		m.WindowLayers = c.windowLayers(m.Layers, 1)
	} else if n, ok := c.whole("max_window_layers"); ok {
		m.WindowLayers = max(0, m.Layers-n) // the first n attend to everything
	}
	if m.WindowLayers == 0 {
		m.Window = 0
	}
}

// windowLayers counts the layers with a sliding window: those that layer_types
// says, else all but each nth.
func (c *hfConfig) windowLayers(layers, every int) int {
	if types, ok := c.fields["layer_types"].([]any); ok {
		n := 0
		for _, t := range types {
			if t == "sliding_attention" {
				n++
			}
		}
		return n
	}
	return layers - layers/c.or(every, "sliding_window_pattern")
}

// parseLLM reads a configuration's text.
func parseLLM(name, path string, text []byte) (LLM, error) {
	fail := func(format string, args ...any) (LLM, error) {
		return LLM{}, &ConfigError{Path: path, Msg: fmt.Sprintf(format, args...)}
	}
	c := hfConfig{}
	if err := json.Unmarshal(text, &c.fields); err != nil {
		var at *json.SyntaxError
		if errors.As(err, &at) {
			return fail("line %d is no JSON: %s", 1+bytes.Count(text[:min(int(at.Offset), len(text))], []byte("\n")), err)
		}
		return fail("is no configuration: %s", err)
	}
	architecture := ""
	if list, ok := c.fields["architectures"].([]any); ok && len(list) > 0 {
		architecture, _ = list[0].(string)
	}
	if architecture == "" {
		return LLM{}, &ConfigError{Path: path, Msg: "missing fields", Missing: []string{"architectures"}}
	}
	family, ok := hfFamilies[architecture]
	if !ok {
		known := slices.Sorted(maps.Keys(hfFamilies))
		return LLM{}, &ConfigError{Path: path, Allowed: known,
			Msg: fmt.Sprintf("architecture %q is not modelled; modelled are %s", architecture, strings.Join(known, ", "))}
	}
	if inner, ok := c.fields["text_config"].(map[string]any); ok {
		for k, v := range inner {
			c.fields[k] = v
		}
	}
	m := LLM{
		Name: name, Source: path + " (" + architecture + ")",
		Layers: c.need("num_hidden_layers"), Hidden: c.need("hidden_size"), Heads: c.need("num_attention_heads"),
		Intermediate: c.need("intermediate_size"), Vocab: c.need("vocab_size"), MaxModelLen: c.need("max_position_embeddings"),
		TiedEmbed: c.yes("tie_word_embeddings", false), Dtype: c.dtype(),
	}
	m.KVHeads = c.or(m.Heads, "num_key_value_heads")
	m.HeadDim = c.or(m.Hidden/max(1, m.Heads), "head_dim")
	family(&c, &m)
	switch {
	case len(c.missing) > 0:
		return LLM{}, &ConfigError{Path: path, Msg: "missing fields of a " + architecture, Missing: c.missing}
	case len(c.bad) > 0:
		return fail("%s", strings.Join(c.bad, "; "))
	case m.KVHeads < 1 || m.Heads%m.KVHeads != 0:
		return fail("num_attention_heads = %d is no multiple of num_key_value_heads = %d", m.Heads, m.KVHeads)
	case m.MoE.TopK > m.MoE.Experts:
		return fail("a token uses %d experts of %d", m.MoE.TopK, m.MoE.Experts)
	case m.MoE.DenseLayers > m.Layers || m.WindowLayers > m.Layers:
		return fail("it names more layers than num_hidden_layers = %d", m.Layers)
	}
	return m, nil
}

// dtype returns the weight format that quantization_config tells.
func (c *hfConfig) dtype() string {
	q, ok := c.fields["quantization_config"].(map[string]any)
	if !ok {
		return ""
	}
	bits, _ := q["bits"].(float64)
	text := strings.ToLower(fmt.Sprint(q["quant_method"], " ", q["quant_algo"], " ", q["fmt"], " ", q["format"]))
	for _, rule := range []struct{ part, dtype string }{
		{"mxfp4", MXFP4}, {"nvfp4", NVFP4}, {"fp8", FP8}, {"float-quantized", FP8}, {"int-quantized", INT8}, {"pack-quantized", INT4}, {"awq", INT4}, {"gptq", INT4},
	} {
		if strings.Contains(text, rule.part) {
			if rule.dtype == INT4 && bits == 8 {
				return INT8
			}
			return rule.dtype
		}
	}
	c.bad = append(c.bad, fmt.Sprintf("quantization_config with quant_method %v is not modelled; allowed are fp8, mxfp4, nvfp4, awq, gptq and compressed-tensors", q["quant_method"]))
	return ""
}
