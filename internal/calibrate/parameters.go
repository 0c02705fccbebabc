// Package calibrate fits the constants of a serving engine to measured runs: host
// times, and how fast the GPU computes and reads memory compared with the kernel
// tables. It simulates each run for every trial, so what is fitted is what a user
// measures: TTFT, TPOT and end-to-end latency.
package calibrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slosim/experiments"
	"slosim/models"
	"slosim/sim"
)

// Parameter is a constant that may be fitted, in the unit that people write.
type Parameter struct {
	Name   string
	Unit   string  // "ms", "us", or "" for a factor
	Lo, Hi float64 // bounds
	// Width is how far the constant may well lie from where it starts: data that
	// say less than this leave it there.
	Width float64
	host  func(*models.Host) *int64
}

// psPerUnit of the host times.
var psPerUnit = map[string]float64{"ms": 1e9, "us": 1e6}

// all parameters, in the order of a calibration file.
var all = []Parameter{
	{"front_fixed", "ms", 0, 50, 5, func(h *models.Host) *int64 { return &h.FrontFixedPs }},
	{"front_per_token", "us", 0, 20, 1, func(h *models.Host) *int64 { return &h.FrontPerTokenPs }},
	{"step_fixed", "ms", 0, 5, 0.5, func(h *models.Host) *int64 { return &h.StepFixedPs }},
	{"step_per_seq", "us", 0, 200, 10, func(h *models.Host) *int64 { return &h.StepPerSeqPs }},
	{"step_tp", "ms", 0, 5, 0.5, func(h *models.Host) *int64 { return &h.StepTPPs }},
	{"eager_layer", "us", 0, 2000, 500, func(h *models.Host) *int64 { return &h.EagerLayerPs }},
	{"sync_fixed", "ms", 0, 20, 1, func(h *models.Host) *int64 { return &h.SyncFixedPs }},
	{"sync_per_seq", "us", 0, 200, 20, func(h *models.Host) *int64 { return &h.SyncPerSeqPs }},
	{"publish_per_seq", "us", 0, 500, 30, func(h *models.Host) *int64 { return &h.PublishPerSeqPs }},
	{"stream_per_token", "us", 0, 500, 50, func(h *models.Host) *int64 { return &h.StreamPerTokenPs }},
	{"speed", "", 0.5, 1.6, 0.2, nil},   // compute and memory together: one factor of an engine on a GPU
	{"kernels", "", 0.5, 1.6, 0.2, nil}, // every kernel, launches and collectives included
	{"compute", "", 0.5, 1.6, 0.05, nil},
	{"memory", "", 0.5, 1.6, 0.05, nil},
}

// Names returns the names of all parameters.
func Names() []string {
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}

// Find returns the parameters of these names, in the order of Names.
func Find(names []string) ([]Parameter, error) {
	var out []Parameter
	for _, p := range all {
		if slices.Contains(names, p.Name) {
			out = append(out, p)
		}
	}
	for _, n := range names {
		if !slices.Contains(Names(), n) {
			return nil, fmt.Errorf("%q is no constant that can be fitted\n  allowed: %s", n, strings.Join(Names(), ", "))
		}
	}
	return out, nil
}

// Held is a constant that is set and not fitted.
type Held struct {
	Parameter
	Value float64
}

// Hold reads "name=value" for constants that are not among the fitted ones.
func Hold(texts []string, fitted []Parameter) ([]Held, error) {
	var out []Held
	for _, text := range texts {
		name, number, ok := strings.Cut(text, "=")
		v, err := strconv.ParseFloat(strings.TrimRight(number, "mus"), 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("--hold %q is not name=value", text)
		}
		list, err := Find([]string{name})
		if err != nil {
			return nil, err
		}
		if p := list[0]; v < p.Lo || v > p.Hi {
			return nil, fmt.Errorf("--hold %s: allowed is %g to %g %s", text, p.Lo, p.Hi, p.Unit)
		}
		if slices.ContainsFunc(fitted, func(p Parameter) bool { return p.Name == name }) {
			return nil, fmt.Errorf("%s cannot be both held and fitted", name)
		}
		out = append(out, Held{list[0], v})
	}
	return out, nil
}

// Default are the parameters that are fitted unless others are named.
func Default(async bool) []string {
	names := []string{"front_fixed", "step_fixed", "step_per_seq", "compute", "memory"}
	if !async {
		names = append(names, "sync_fixed", "sync_per_seq")
	}
	return names
}

// start returns where a parameter starts: at the experiment's own value, or at the
// catalogue's.
func (p *Parameter) start(e *sim.Experiment, fromCatalogue bool) float64 {
	d := &e.Pools[0].Deployment
	if p.host != nil {
		h := d.Host
		if fromCatalogue {
			h = models.DefaultHost(d.TP)
		}
		return float64(*p.host(&h)) / psPerUnit[p.Unit]
	}
	raw, err := models.FindGPU(d.GPU.Name)
	if fromCatalogue || err != nil || p.Name == "kernels" && d.KernelSpeed == 0 {
		return 1
	}
	if p.Name == "kernels" {
		return d.KernelSpeed
	}
	if p.Name != "memory" {
		return d.GPU.Common.KappaFixed / raw.Common.KappaFixed
	}
	return d.GPU.BandwidthGBs / raw.BandwidthGBs
}

// apply returns the experiment with the parameters set. What is not fitted stays.
func apply(e sim.Experiment, params []Parameter, values []float64) sim.Experiment {
	e.Pools = slices.Clone(e.Pools)
	d := &e.Pools[0].Deployment
	compute, memory := 0.0, 0.0
	for i, p := range params {
		switch {
		case p.host != nil:
			*p.host(&d.Host) = int64(values[i] * psPerUnit[p.Unit])
		case p.Name == "speed":
			compute, memory = values[i], values[i]
		case p.Name == "kernels":
			d.KernelSpeed = values[i]
		case p.Name == "compute":
			compute = values[i]
		case p.Name == "memory":
			memory = values[i]
		}
	}
	raw, err := models.FindGPU(d.GPU.Name)
	if err != nil || compute == 0 && memory == 0 {
		return e
	}
	if compute == 0 {
		compute = d.GPU.Common.KappaFixed / raw.Common.KappaFixed
	}
	if memory == 0 {
		memory = d.GPU.BandwidthGBs / raw.BandwidthGBs
	}
	experiments.ScaleGPU(&raw, compute, memory)
	d.GPU = raw
	return e
}
