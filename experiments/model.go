package experiments

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"slosim/internal/config"
	"slosim/models"
	"slosim/sim"
)

// model reads which model a pool serves: a name of the catalogue, or the path of
// a Hugging Face config.json, relative to the experiment file (on the command
// line to where the person is).
func (l *loader) model(t *config.Table) models.LLM {
	return catalogued(t, "model", `"llama-3.3-70b"`, func(name string) (models.LLM, error) {
		if !models.IsConfigPath(name) {
			return models.FindLLM(name)
		}
		if !filepath.IsAbs(name) && !t.FromSet("model") {
			name = filepath.Join(l.dir, name)
		}
		m, err := models.ReadLLM(name)
		var bad *models.ConfigError
		if errors.As(err, &bad) {
			bad.Path = filepath.ToSlash(bad.Path)
		}
		return m, err
	})
}

// configHint says what to try with a config.json that cannot be used.
func configHint(err error) string {
	var bad *models.ConfigError
	switch {
	case !errors.As(err, &bad):
		return ""
	case len(bad.Missing) > 0:
		return "take the config.json of the checkpoint as it is, or add the fields"
	case len(bad.Allowed) > 0:
		return "take a model of the catalogue with a like shape: sim list models"
	}
	return "paths are relative to the experiment file, on the command line to where you are; names of the catalogue: sim list models"
}

// parallelism reads over how many GPUs a replica's layers and experts go.
func parallelism(t *config.Table, p *sim.Pool) {
	d := &p.Deployment
	d.PP = config.Read(t, "pipeline_parallel", config.Int, config.Default(1, "no pipeline"), config.Example[int]("2"), config.Between(1, 64))
	d.EP = config.Read(t, "expert_parallel", config.Int, config.Default(1, "each expert is split over the GPUs of a replica"), config.Example[int]("8"), config.Between(1, 1024))
	if d.EP == 1 {
		forbid(t, "", "expert_imbalance belongs to expert_parallel", "expert_imbalance")
		return
	}
	def := models.DefaultExpertImbalance(d.EP)
	d.ExpertImbalance = config.Read(t, "expert_imbalance", config.Float,
		config.Default(def, "assumption: power-law routing without a load balancer"), config.Example[float64]("1.2"), config.Between(1.0, 100))
}

// checkParallelism reports what cannot be spread that way. What is wrong with
// tensor_parallel is reported with the memory.
func checkParallelism(t *config.Table, p *sim.Pool) {
	d := p.Deployment
	var tp *models.TPError
	if err := d.Validate(); errors.As(err, &tp) {
		return
	}
	before := t.Doc().Failures()
	switch m := d.LLM; {
	case d.PP > m.Layers:
		t.Errorf("pipeline_parallel", fmt.Sprintf("1 to %d", m.Layers), "", "pipeline_parallel = %d: %s has %d layers", d.PP, m.Name, m.Layers)
	case d.EP == 1:
	case m.MoE.Experts == 0:
		t.Errorf("expert_parallel", "1", "leave it out, or take a mixture of experts: sim list models", "expert_parallel = %d: %s has no experts", d.EP, m.Name)
	case d.EP%d.TP != 0:
		t.Errorf("expert_parallel", fmt.Sprintf("a multiple of tensor_parallel, %d", d.TP), "", "expert_parallel = %d is no multiple of tensor_parallel = %d", d.EP, d.TP)
	case m.MoE.Experts%d.EP != 0:
		t.Errorf("expert_parallel", fmt.Sprintf("a divisor of %d", m.MoE.Experts), "", "expert_parallel = %d does not divide the %d experts of %s", d.EP, m.MoE.Experts, m.Name)
	case p.Replicas*d.TP%d.EP != 0:
		t.Errorf("expert_parallel", fmt.Sprintf("a divisor of replicas x tensor_parallel, %d", p.Replicas*d.TP), "more replicas share the experts of a larger group",
			"expert_parallel = %d: the GPUs of %d replicas form no whole groups", d.EP, p.Replicas)
	}
	if t.Doc().Failures() > before {
		p.Deployment.PP, p.Deployment.EP, p.Deployment.ExpertImbalance = 1, 1, 0 // said once
	}
}

// dtypes reads the number formats of weights and KV cache. A GPU without
// arithmetic for a format unpacks it, as engines do.
func dtypes(t *config.Table, p *sim.Pool) {
	d := &p.Deployment
	native, why := d.LLM.NativeDtype(), ""
	if native != models.BF16 {
		why = "the checkpoint's"
	}
	d.WeightDtype = config.Read(t, "weight_dtype", config.OneOf(models.Dtypes()...), config.Default(native, why))
	d.KVDtype = config.Read(t, "kv_dtype", config.OneOf(models.Dtypes()...), config.Default(models.BF16, ""))
	if d.WeightDtype == models.FP8 {
		d.StaticScales = config.Read(t, "static_scales", config.Bool, config.Default(false, "activation scales are computed at run time"))
	} else {
		forbid(t, "", `static_scales belongs to weight_dtype = "fp8"`, "static_scales")
	}
}

// unfitted lists what of the step time nobody measured.
func (l *loader) unfitted(p *sim.Pool) {
	if notes := p.Deployment.Notes(); len(notes) > 0 {
		l.assume.add("Pool %s: %s.", p.Name, strings.Join(notes, "; "))
	}
}
