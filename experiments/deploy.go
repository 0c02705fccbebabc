package experiments

import (
	"errors"
	"fmt"
	"strings"

	"slosim/internal/config"
	"slosim/models"
	"slosim/sim"
)

// cannotDeploy words the ways in which a model does not run on its GPUs.
func (l *loader) cannotDeploy(t *config.Table, err error) {
	var tp *models.TPError
	var fit *models.FitError
	switch {
	case errors.As(err, &tp):
		t.Errorf("tensor_parallel", ints(tp.Valid), "", "tensor_parallel = %d is not possible for %s: %s", tp.TP, tp.LLM, tp.Why)
	case errors.As(err, &fit):
		try := "no tensor_parallel within a node fits: take a GPU with more memory, a smaller model or weight_dtype = \"fp8\""
		if len(fit.Fits) > 0 {
			try = fmt.Sprintf("it fits with tensor_parallel = %s. Or take a GPU with more memory, or weight_dtype = \"fp8\"", ints(fit.Fits))
		}
		t.Errorf("model", "", try, "%s does not fit on %d x %s: each GPU is %.1f GiB short for weights, overhead and a first KV block", fit.LLM, fit.TP, fit.GPU, fit.ShortGiB)
	default:
		key := "model"
		if t.Has("weight_dtype") {
			key = "weight_dtype"
		}
		t.Errorf(key, "", "", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// ints writes "2, 4 or 8".
func ints(list []int) string {
	text := ""
	for i, n := range list {
		switch {
		case i > 0 && i == len(list)-1:
			text += " or "
		case i > 0:
			text += ", "
		}
		text += fmt.Sprint(n)
	}
	return text
}

// figures records every catalogue figure behind the pool, and lists those that
// have no citable source.
func (l *loader) figures(t *config.Table, p *sim.Pool) {
	var step, heat []string
	gpu := "gpu." + p.Deployment.GPU.Name + "."
	for _, f := range p.Deployment.Figures() {
		path, origin := "", "catalogue: "
		switch name := f.Name; {
		case strings.HasPrefix(name, "llm."):
			path, origin = "model.shape", origin+p.Deployment.LLM.Name
		case strings.HasPrefix(name, gpu):
			path, origin = "gpu."+strings.TrimPrefix(name, gpu), origin+p.Deployment.GPU.Name
		case strings.HasPrefix(name, "common."):
			path, origin = "gpu."+strings.TrimPrefix(name, "common."), origin+"all GPUs"
		default:
			continue // host constants are settings of their own
		}
		l.doc.Note(t.Path(path[:strings.Index(path, ".")])+path[strings.Index(path, "."):], f.Value, origin, f.Source)
		if !f.Assumption {
			continue
		}
		key := path[strings.Index(path, ".")+1:]
		power, isPower := strings.CutPrefix(key, "power.")
		switch {
		case isPower || key == "min_clock_mhz" || key == "max_temp_c":
			heat = append(heat, power+" "+f.Value)
		case key == "kappa_fixed" && p.Thermal.Enabled || key == "kappa_max_clock" && !p.Thermal.Enabled:
			// the other one counts
		default:
			step = append(step, key+" "+f.Value)
		}
	}
	if len(step) > 0 {
		l.assume.add("Step time rests on figures without a citable source: %s.", strings.Join(step, ", "))
	}
	if len(heat) > 0 && p.Thermal.Enabled {
		l.assume.add("Power and heat of the GPUs are estimates, not measured on yours: %s.", strings.Join(heat, ", "))
	}
}

// hostSources returns the source of each host constant, by its key in the host
// table.
func hostSources(d models.Deployment) map[string]string {
	sources := map[string]string{}
	for _, f := range d.Figures() {
		if key, ok := strings.CutPrefix(f.Name, "host."); ok {
			key = strings.TrimSuffix(strings.TrimSuffix(key, "_ms"), "_us")
			sources[key] = f.Source
		}
	}
	return sources
}
