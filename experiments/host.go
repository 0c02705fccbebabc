package experiments

import (
	"strings"

	"slosim/internal/config"
	"slosim/models"
	"slosim/sim"
)

const (
	defaultAmbientC = 30.0
	maxHostPs       = 10_000_000_000_000 // 10 s
)

// host reads the constants of the serving engine outside the GPU's kernels.
func (l *loader) host(pool *config.Table, p *sim.Pool, known bool, fitted []calibration) {
	t := pool.Sub("host", `host = { front_fixed = "4.5ms", step_fixed = "0.25ms" }`)
	h := models.DefaultHost(p.Deployment.TP)
	h.Async = p.Deployment.Host.Async

	sources := map[string]string{}
	if known {
		p.Deployment.Host = h
		sources = hostSources(p.Deployment)
	}
	applyHost(fitted, p.Deployment.TP, &h, sources)
	var assumed []string
	read := func(key string, at *int64, what string) {
		if !t.Has(key) && *at > 0 && !strings.HasPrefix(sources[key], "calibration") {
			assumed = append(assumed, what+" "+strings.Trim(config.FineSpan.Format(*at), `"`))
		}
		*at = config.Read(t, key, config.FineSpan, config.Default(*at, sources[key]), config.Between(0, int64(maxHostPs)))
	}
	read("front_fixed", &h.FrontFixedPs, "front end")
	read("front_per_token", &h.FrontPerTokenPs, "per prompt token")
	read("step_fixed", &h.StepFixedPs, "per step")
	read("step_per_seq", &h.StepPerSeqPs, "per request in a step")
	read("step_tp", &h.StepTPPs, "per step for tensor parallelism")
	read("eager_layer", &h.EagerLayerPs, "least per layer of a step with prefill")
	if !h.Async {
		read("sync_fixed", &h.SyncFixedPs, "per synchronous step")
		read("sync_per_seq", &h.SyncPerSeqPs, "per request in a synchronous step")
	} else {
		forbid(t, "", "sync_fixed and sync_per_seq count only with engine = { async = false }, and always with tgi and static", "sync_fixed", "sync_per_seq")
	}
	read("publish_per_seq", &h.PublishPerSeqPs, "to publish a token, per request in its step")
	if p.Engine.Kind != vllm {
		read("stream_per_token", &h.StreamPerTokenPs, "of a serial front end per token")
	} else {
		forbid(t, "", "stream_per_token is for the other engine kinds: no cap was seen on vLLM", "stream_per_token")
	}
	if len(assumed) > 0 {
		l.assume.add("Pool %s: host times are the middle of what was fitted to measured vLLM runs, not measured on yours: %s.", p.Name, strings.Join(assumed, ", "))
	}
	p.Deployment.Host = h
}

// thermal reads thermal = true, false or { enabled, ambient }. It is on unless
// figures of the GPU that it needs are unknown: they are not guessed.
func (l *loader) thermal(pool *config.Table, gpu models.GPU) sim.ThermalSpec {
	unknown := gpu.CheckThermal()
	refuse := func(t *config.Table, key string, on bool) {
		if on && unknown != nil {
			t.Errorf(key, "false", "leave it out, or take a GPU whose figures are known: sim list gpus", "%s", unknown)
		}
	}
	if pool.Has("thermal") && !pool.IsTable("thermal") {
		on := config.Read(pool, "thermal", config.Bool, config.Required)
		refuse(pool, "thermal", on)
		spec := sim.ThermalSpec{Enabled: on, AmbientC: defaultAmbientC}
		l.assumeThermal(pool.Name("name"), spec, true)
		return spec
	}
	t := pool.Sub("thermal", `thermal = { ambient = 30 }`)
	why := "power cap, heat and SM clock in the loop"
	if unknown != nil {
		why = unknown.Error()
	}
	spec := sim.ThermalSpec{Enabled: config.Read(t, "enabled", config.Bool, config.Default(unknown == nil, why))}
	refuse(t, "enabled", spec.Enabled)
	spec.AmbientC = config.Read(t, "ambient", config.Celsius, config.Default(defaultAmbientC, "assumption: inlet air, degrees Celsius"), config.Between(-20.0, 60))
	l.assumeThermal(pool.Name("name"), spec, !t.Has("ambient"))
	site(t, &spec)
	return spec
}

// assumeThermal lists what the thermal model takes for granted.
func (l *loader) assumeThermal(pool string, spec sim.ThermalSpec, ambientAssumed bool) {
	switch {
	case !spec.Enabled:
		l.assume.add("Pool %s: no thermal model; compute runs at a fixed share of its speed at maximum clock.", pool)
	case ambientAssumed:
		l.assume.add("Pool %s: the inlet air has %g °C.", pool, spec.AmbientC)
	}
}
