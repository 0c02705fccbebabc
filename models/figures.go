package models

import (
	"fmt"
	"reflect"
	"strings"
)

// Figure is one catalogue figure that a deployment uses.
type Figure struct {
	Name       string // "gpu.h100-sxm-80gb.tdp_w"
	Value      string // with the unit that its name ends in
	Source     string
	Assumption bool // nothing citable behind it
}

const overridden = "set in the experiment or calibrated"

func newFigure(name string, value any, source string) Figure {
	return Figure{
		Name:       name,
		Value:      fmt.Sprint(value),
		Source:     source,
		Assumption: strings.HasPrefix(source, "assumption") || strings.HasPrefix(source, "unknown"),
	}
}

// Figures returns every catalogue figure that d's memory, step time and heat
// depend on, always in the same order: model, GPU, what all GPUs share, host.
func (d Deployment) Figures() []Figure {
	gpu := "gpu." + d.GPU.Name
	figures := []Figure{newFigure("llm."+d.LLM.Name, d.LLM.shape(), d.LLM.Source)}
	for _, f := range tomlFigures(gpu, reflect.ValueOf(d.GPU), "", d.GPU.Sources) {
		if d.uses(strings.TrimPrefix(f.Name, gpu+".")) {
			figures = append(figures, f)
		}
	}
	for _, f := range tomlFigures("common", reflect.ValueOf(d.GPU.Common), "", d.GPU.Common.Sources) {
		if d.usesCommon(strings.TrimPrefix(f.Name, "common.")) {
			figures = append(figures, f)
		}
	}
	return append(figures, d.hostFigures()...)
}

// shape writes the model's shape on one line.
func (m LLM) shape() string {
	text := fmt.Sprintf("%d layers, hidden %d, ", m.Layers, m.Hidden)
	if a := m.MLA; m.isMLA() {
		text += fmt.Sprintf("%d heads of latent attention (%d + %d per token)", m.Heads, a.KVRank, a.RopeDim)
	} else {
		text += fmt.Sprintf("heads %d/%d × %d", m.Heads, m.KVHeads, m.HeadDim)
	}
	if m.Window > 0 {
		text += fmt.Sprintf(" (window %d in %d layers)", m.Window, m.WindowLayers)
	}
	if m.denseLayers() > 0 {
		text += fmt.Sprintf(", intermediate %d", m.Intermediate)
	}
	if e := m.MoE; m.isMoE() {
		text += fmt.Sprintf(", %d of %d experts × %d", e.TopK, e.Experts, e.Intermediate)
		if e.Shared > 0 {
			text += fmt.Sprintf(" + %d shared", e.Shared)
		}
	}
	return text + fmt.Sprintf(", vocabulary %d", m.Vocab)
}

// AttentionKind names the model's attention in a word or two.
func (m LLM) AttentionKind() string {
	kind := "GQA"
	switch {
	case m.isMLA():
		return "MLA"
	case m.KVHeads == m.Heads:
		kind = "MHA"
	case m.KVHeads == 1:
		kind = "MQA"
	}
	if m.Window > 0 {
		kind += fmt.Sprintf(", window %d", m.Window)
	}
	return kind
}

// ExpertKind writes how many of the experts a token uses, or "-" for a dense
// model.
func (m LLM) ExpertKind() string {
	if !m.isMoE() {
		return "-"
	}
	return fmt.Sprintf("%d of %d", m.MoE.TopK, m.MoE.Experts)
}

// uses says whether the deployment depends on a figure of its GPU.
func (d Deployment) uses(key string) bool {
	m := d.LLM
	part, dtype, _ := strings.Cut(key, ".")
	switch part {
	case "gemm":
		_, a, _ := d.GPU.gemm(d.WeightDtype)
		return dtype == BF16 || dtype == a.dtype
	case "attention":
		return !m.isMLA() && dtype == d.KVDtype
	case "mla":
		return m.isMLA() && (dtype == BF16 || dtype == d.WeightDtype)
	case "moe":
		return m.isMoE() && (dtype == BF16 || dtype == d.WeightDtype || d.ExpertKernel != "" && dtype == d.WeightDtype+"_"+d.ExpertKernel)
	case "all_reduce":
		return key == fmt.Sprintf("all_reduce.tp%d", min(d.TP, 8))
	case "all_to_all":
		return d.EP > d.TP
	case "peak_fp8_tflops":
		return d.WeightDtype == FP8
	case "peak_int8_tops":
		return d.WeightDtype == INT8
	case "peak_fp4_tflops":
		return d.WeightDtype == NVFP4 || d.WeightDtype == MXFP4
	case "nvlink_gbs", "pcie_gbs":
		return d.PP > 1 // the all-reduce coefficients hold what it does else
	case "topology", "node_gpus":
		return d.GPUs() > 1 || d.EP > 1
	}
	return true
}

// usesCommon says whether the deployment depends on a figure of all GPUs.
func (d Deployment) usesCommon(key string) bool {
	switch key {
	case "network_gbs", "network_us":
		return d.GPUs() > d.GPU.NodeGPUs || d.EP > d.GPU.NodeGPUs
	case "node_link_us":
		return d.PP > 1
	case "top_p_sort_ns":
		return d.Sampling == SamplingTopP
	case "top_k_sort_ns":
		return d.Sampling == SamplingTopK
	case "router_skew_factor", "router_skew_power":
		return d.EP > 1 && d.ExpertImbalance == 0
	}
	return true
}

// tomlFigures lists the fields of v that carry a TOML key with a source, in
// field order. A struct whose own key has a source is one figure; without one,
// its fields are looked at.
func tomlFigures(prefix string, v reflect.Value, parent string, sources map[string]string) []Figure {
	var figures []Figure
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			figures = append(figures, tomlFigures(prefix, v.Field(i), parent, sources)...)
			continue
		}
		tag := v.Type().Field(i).Tag.Get("toml")
		if tag == "" || tag == "-" || tag == "source" || tag == "name" {
			continue
		}
		field, key := v.Field(i), parent+tag
		if source, ok := sources[key]; ok {
			value := figureValue(field)
			if strings.HasPrefix(source, "unknown") {
				value = "unknown"
			}
			figures = append(figures, newFigure(prefix+"."+key, value, source))
		} else if field.Kind() == reflect.Struct {
			figures = append(figures, tomlFigures(prefix, field, key+".", sources)...)
		}
	}
	return figures
}

// figureValue writes a struct as "key value" pairs, without those that are zero.
func figureValue(v reflect.Value) string {
	if v.Kind() != reflect.Struct {
		return fmt.Sprint(v.Interface())
	}
	var parts []string
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			parts = append(parts, fmt.Sprintf("%s %v", v.Type().Field(i).Tag.Get("toml"), v.Field(i).Interface()))
		}
	}
	return strings.Join(parts, ", ")
}

// hostFigures lists the host constants and the memory overhead; those that
// differ from the default were set by somebody.
func (d Deployment) hostFigures() []Figure {
	h, def, src := d.Host, DefaultHost(d.TP), catalogue().host.Sources
	var figures []Figure
	add := func(key string, value, standard any) {
		source := src[key]
		if value != standard {
			source = overridden
		}
		figures = append(figures, newFigure("host."+key, value, source))
	}
	ms := func(ps int64) float64 { return float64(ps) / 1e9 }
	us := func(ps int64) float64 { return float64(ps) / 1e6 }
	add("async", h.Async, def.Async)
	add("front_fixed_ms", ms(h.FrontFixedPs), ms(def.FrontFixedPs))
	add("front_per_token_us", us(h.FrontPerTokenPs), us(def.FrontPerTokenPs))
	add("step_fixed_ms", ms(h.StepFixedPs), ms(def.StepFixedPs))
	add("step_per_seq_us", us(h.StepPerSeqPs), us(def.StepPerSeqPs))
	add("step_tp_ms", ms(h.StepTPPs), ms(def.StepTPPs))
	add("stream_per_token_us", us(h.StreamPerTokenPs), us(def.StreamPerTokenPs))
	add("eager_layer_us", us(h.EagerLayerPs), us(def.EagerLayerPs))
	if !h.Async {
		add("sync_fixed_ms", ms(h.SyncFixedPs), ms(def.SyncFixedPs))
		add("sync_per_seq_us", us(h.SyncPerSeqPs), us(def.SyncPerSeqPs))
	}
	add("publish_per_seq_us", us(h.PublishPerSeqPs), us(def.PublishPerSeqPs))

	overhead := newFigure("host.overhead_gib", fmt.Sprintf("%.2f", d.OverheadGiB),
		"assumption: DefaultOverheadGiB, context + NCCL + activations of the largest step")
	if d.OverheadGiB != DefaultOverheadGiB(d.LLM, d.TP, d.MaxBatchedTokens) {
		overhead.Source, overhead.Assumption = overridden, false
	}
	return append(figures, overhead)
}
