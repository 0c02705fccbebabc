package accuracy

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"slosim/experiments"
	"slosim/internal/config"
	"slosim/internal/measured"
	"slosim/models"
	"slosim/sim"
	"slosim/sim/clock"
	"slosim/workloads"
)

// className is the only traffic class of a replayed run.
const className = "load"

// span is long enough for every measured run; one that needs more is cut.
const span = 12 * clock.Hour

// Experiment turns a measured run into an experiment that replays it. It goes
// through an experiment file's text, so defaults and catalogue figures are those
// that a user gets. calibration names a file, or is empty. The error says why the
// run cannot be simulated.
func Experiment(run *measured.Run, calibration string) (sim.Experiment, error) {
	if run.Reject != "" {
		return sim.Experiment{}, errors.New(run.Reject)
	}
	if len(run.Load.Requests) == 0 {
		return sim.Experiment{}, errors.New("it has no requests")
	}
	text, err := textOf(run, calibration)
	if err != nil {
		return sim.Experiment{}, err
	}
	e, _, err := experiments.Parse("measured.toml", ".", text)
	if err != nil {
		return sim.Experiment{}, short(err)
	}
	e.Name = run.Name
	return onPool(run, e)
}

// OnExperiment replays a run on the deployment of an experiment's pool, whatever
// the run says about its own.
func OnExperiment(run *measured.Run, e sim.Experiment, pool int) (sim.Experiment, error) {
	p := e.Pools[pool]
	if p.Role != "" {
		return sim.Experiment{}, fmt.Errorf("pool %q has role = %q: only whole replicas can be compared with a measured run", p.Name, p.Role)
	}
	p.Classes = nil
	e.Pools = []sim.Pool{p}
	e.Changes, e.SLOs = nil, nil
	e.Duration, e.Warmup, e.Replications = span, 0, 1
	return onPool(run, e)
}

// onPool sends a run's requests to the experiment's only pool.
func onPool(run *measured.Run, e sim.Experiment) (sim.Experiment, error) {
	class := workloads.Class{Name: className, Stream: className, Client: workloads.Client{MaxInFlight: run.Load.InFlight}}
	class.Recorded = requestsOf(run, e.Pools[0].Engine)
	e.Traffic = []workloads.Class{class}
	for _, r := range class.Recorded {
		if limit := e.Pools[0].Engine.MaxModelLen; r.Prompt >= limit {
			return sim.Experiment{}, fmt.Errorf("a prompt of %d tokens does not fit max_model_len = %d", r.Prompt, limit)
		}
	}
	if why := impossible(run, e); why != "" {
		return sim.Experiment{}, errors.New(why)
	}
	return e, nil
}

// textOf writes the experiment file of a run.
func textOf(run *measured.Run, calibration string) (string, error) {
	s := &run.Setup
	model, errM := modelOf(s.Model)
	gpu, errG := gpuOf(s.GPU)
	if err := errors.Join(errM, errG); err != nil {
		return "", errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("duration = %q\nwarmup = \"0s\"\nreplications = 1", config.SpanText(span))
	line("[[pool]]\nname = \"main\"\nmodel = %q\ngpu = %q\ntensor_parallel = %d", model, gpu, s.TP)
	line("replicas = %d\nrouter = \"round-robin\"", max(1, s.Replicas, s.DP))
	if s.PP > 1 {
		line("pipeline_parallel = %d", s.PP)
	}
	if s.EP > 1 {
		line("expert_parallel = %d", s.EP)
	}
	if native := nativeDtype(model); s.Weights != "" && native != models.MXFP4 {
		line("weight_dtype = %q", s.Weights)
		if s.StaticScales && s.Weights == "fp8" {
			line("static_scales = true")
		}
	}
	if s.KV != "" && s.KV != "bf16" {
		line("kv_dtype = %q", s.KV)
	}
	if calibration != "" {
		line("calibration = %q", calibration)
	}
	keys, err := engineKeys(s, model)
	if err != nil {
		return "", err
	}
	line("engine = { %s }", strings.Join(keys, ", "))
	line("[[traffic]]\nclass = %q\nrate = \"1/s\"\nprompt = 1\noutput = 1", className)
	return b.String(), nil
}

// nativeDtype returns the format of a catalogue model's checkpoint. Models in mxfp4
// are served in it, whatever a table calls their precision.
func nativeDtype(model string) string {
	m, err := models.FindLLM(model)
	if err != nil {
		return models.BF16
	}
	return m.NativeDtype()
}

// vllmRelease is a release as the experiment file takes it.
var vllmRelease = regexp.MustCompile(`^v?0\.(\d+)(\.\d+)?$`)

// engineKeys writes the settings of the engine that the source states.
func engineKeys(s *measured.Setup, model string) ([]string, error) {
	var keys []string
	add := func(format string, args ...any) { keys = append(keys, fmt.Sprintf(format, args...)) }
	engine := strings.ToLower(s.Engine)
	switch engine {
	case "vllm":
		if vllmRelease.MatchString(s.Version) {
			add("version = %q", s.Version)
		}
		if !s.PrefixCache {
			add("prefix_caching = false")
		}
		if s.Sampled {
			add("sampling = %q", samplingOf(model))
		}
	case "sglang", "trtllm":
		add("kind = %q", engine)
	default:
		return nil, fmt.Errorf("engine %q is not simulated", s.Engine)
	}
	if s.Frontend != "" {
		add("frontend = %q", s.Frontend)
	}
	if s.ExpertKernel != "" {
		add("expert_kernel = %q", s.ExpertKernel)
	}
	if s.MaxBatchedTokens > 0 && engine != "sglang" {
		add("max_num_batched_tokens = %d", s.MaxBatchedTokens)
	}
	if s.MaxSeqs > 0 && engine == "vllm" {
		add("max_num_seqs = %d", s.MaxSeqs)
	}
	if s.MaxModelLen > 0 {
		add("max_model_len = %d", s.MaxModelLen)
	}
	if s.BlockSize > 0 {
		add("block_size = %d", s.BlockSize)
	}
	if s.KVBlocks > 0 {
		add("kv_blocks = %d", s.KVBlocks)
	}
	if s.Utilization > 0 {
		add("gpu_memory_utilization = %g", s.Utilization)
	}
	return keys, nil
}

// requestsOf returns the requests as the simulator replays them.
func requestsOf(run *measured.Run, e sim.EngineSpec) []workloads.Request {
	list := make([]workloads.Request, len(run.Load.Requests))
	for i, q := range run.Load.Requests {
		list[i] = workloads.Request{
			Index: int64(i), Prompt: int32(q.Prompt), Output: int32(q.Output),
			Send:  clock.Time(math.Round(q.At * 1e9)),
			Chain: workloads.Private(uint64(i)),
		}
		if unit := list[i].Prompt - list[i].Prompt%e.BlockSize; q.Content > 0 && unit > 0 {
			list[i].Chain = workloads.Chain{Group: q.Content, GroupUnits: 1, Session: uint64(i), UnitSize: unit}
		}
	}
	return list
}

// poolBlocks predicts the KV pool of a run, whatever was measured.
func poolBlocks(e sim.Experiment) (float64, error) {
	m, err := e.Pools[0].Deployment.Memory(e.Pools[0].Engine.BlockSize)
	if err != nil {
		var fit *models.FitError
		if errors.As(err, &fit) {
			return 0, fmt.Errorf("predicted not to fit: %.1f GiB short", fit.ShortGiB)
		}
		return 0, err
	}
	return float64(m.Blocks), nil
}

// short writes input errors on one line.
func short(err error) error {
	var list config.Errors
	if !errors.As(err, &list) {
		return err
	}
	var parts []string
	for _, e := range list {
		parts = append(parts, e.Msg)
	}
	return errors.New(strings.Join(parts, "; "))
}
