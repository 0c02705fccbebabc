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
		Assumption: strings.HasPrefix(source, "assumption"),
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
	figures = append(figures, tomlFigures("common", reflect.ValueOf(d.GPU.Common), "", d.GPU.Common.Sources)...)
	return append(figures, d.hostFigures()...)
}

// shape writes the model's shape on one line.
func (m LLM) shape() string {
	return fmt.Sprintf("%d layers, hidden %d, heads %d/%d × %d, intermediate %d, vocabulary %d",
		m.Layers, m.Hidden, m.Heads, m.KVHeads, m.HeadDim, m.Intermediate, m.Vocab)
}

// uses says whether the deployment depends on a figure of its GPU.
func (d Deployment) uses(key string) bool {
	switch key {
	case "gemm.fp8", "peak_fp8_tflops":
		return d.WeightDtype == FP8
	case "attention.bf16", "attention.fp8":
		return key == "attention."+d.KVDtype
	case "all_reduce.tp2", "all_reduce.tp4", "all_reduce.tp8":
		return key == fmt.Sprintf("all_reduce.tp%d", d.TP)
	case "nvlink_gbs":
		return false // the all-reduce coefficients hold what it does to a step
	}
	return true
}

// tomlFigures lists the fields of v that carry a TOML key with a source, in
// field order. A struct whose own key has a source is one figure; without one,
// its fields are looked at.
func tomlFigures(prefix string, v reflect.Value, parent string, sources map[string]string) []Figure {
	var figures []Figure
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("toml")
		if tag == "" || tag == "-" || tag == "source" || tag == "name" {
			continue
		}
		field, key := v.Field(i), parent+tag
		if source, ok := sources[key]; ok {
			figures = append(figures, newFigure(prefix+"."+key, figureValue(field), source))
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
