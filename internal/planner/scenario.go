package planner

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"slosim/experiments"
	"slosim/internal/config"
	"slosim/models"
	"slosim/sim"
	"slosim/sim/clock"
)

// Scenario is one cell of a grid.
type Scenario struct {
	Grid  *Grid
	Axes  []Axis // what tells it from the others, in order
	Name  string
	model string
	gpu   string
	tp    int

	prompt, output   float64
	rate, load       float64 // one of them given; rate is filled in
	burstiness       float64
	servers          int
	arrival, service float64 // squared coefficients of variation
}

// Axis is the value of a scenario on one axis of its grid.
type Axis struct {
	Name  string
	Text  string
	Value float64 // NaN for names
}

// scenarios is the product of the lists.
func (g *Grid) scenarios() []*Scenario {
	list := []*Scenario{{Grid: g}}
	names := func(axis string, values []string, set func(*Scenario, string)) {
		var out []*Scenario
		for _, s := range list {
			for _, v := range values {
				c := *s
				c.Axes = append(append([]Axis{}, s.Axes...), Axis{axis, v, math.NaN()})
				set(&c, v)
				out = append(out, &c)
			}
		}
		list = out
	}
	along := func(axis string, values []float64, set func(*Scenario, float64)) {
		if len(values) == 0 {
			return
		}
		var out []*Scenario
		for _, s := range list {
			for _, v := range values {
				c := *s
				c.Axes = append(append([]Axis{}, s.Axes...), Axis{axis, axisText(axis, v), v})
				set(&c, v)
				out = append(out, &c)
			}
		}
		list = out
	}
	if g.ClosedForm {
		along("servers", g.Servers, func(s *Scenario, v float64) { s.servers = int(v) })
		along("arrival cv²", g.ArrivalCV2, func(s *Scenario, v float64) { s.arrival = v })
		along("service cv²", g.ServiceCV2, func(s *Scenario, v float64) { s.service = v })
	} else {
		names("model", g.Models, func(s *Scenario, v string) { s.model = v })
		names("gpu", g.GPUs, func(s *Scenario, v string) { s.gpu = v })
		along("tp", g.TP, func(s *Scenario, v float64) { s.tp = int(v) })
		along("prompt", g.Prompt, func(s *Scenario, v float64) { s.prompt = v })
		along("output", g.Output, func(s *Scenario, v float64) { s.output = v })
		along("burstiness", g.Burstiness, func(s *Scenario, v float64) { s.burstiness = v })
	}
	along("rate", g.Rate, func(s *Scenario, v float64) { s.rate = v })
	along("load", g.Load, func(s *Scenario, v float64) { s.load = v })
	for _, s := range list {
		parts := []string{g.Name}
		for i, a := range s.Axes {
			if g.varies(i) {
				parts = append(parts, a.Name+" "+a.Text)
			}
		}
		s.Name = strings.Join(parts, ", ")
	}
	return list
}

func axisText(axis string, v float64) string {
	switch axis {
	case "load":
		return fmt.Sprintf("%g %%", math.Round(1000*v)/10)
	case "rate":
		return fmt.Sprintf("%g/s", v)
	}
	return fmt.Sprintf("%g", v)
}

// varies tells whether axis i of the grid's scenarios has more than one value.
func (g *Grid) varies(i int) bool {
	var sizes []int
	if g.ClosedForm {
		sizes = []int{len(g.Servers), len(g.ArrivalCV2), len(g.ServiceCV2), len(g.Load)}
	} else {
		sizes = []int{len(g.Models), len(g.GPUs), len(g.TP), len(g.Prompt), len(g.Output), len(g.Burstiness), len(g.Rate) + len(g.Load)}
	}
	return sizes[i] > 1
}

// experiment returns the scenario at a rate on some replicas.
func (f *File) experiment(s *Scenario, rate float64, replicas int) (sim.Experiment, error) {
	e, _, err := experiments.Parse("scenario.toml", f.Dir, f.toml(s, rate, replicas))
	e.Name = "scenario"
	return e, err
}

// toml writes the scenario as an experiment that sim run takes.
func (f *File) toml(s *Scenario, rate float64, replicas int) string {
	g := s.Grid
	length := func(m float64) string {
		if g.Tail <= 1 {
			return fmt.Sprintf("%g", m)
		}
		return fmt.Sprintf(`{ dist = "lognormal", mean = %g, p99 = %g }`, m, m*g.Tail)
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("title = %q\nduration = %q\nwarmup = %q\nseed = %d\nreplications = %d\n", s.Name, config.SpanText(f.Duration), config.SpanText(f.Warmup), f.Seed, f.Replications)
	line("[[pool]]\nname = \"main\"\nmodel = %q\ngpu = %q\ntensor_parallel = %d\nreplicas = %d\ngpu_hour_usd = %g", s.model, s.gpu, s.tp, replicas, g.GPUHourUSD)
	if g.Engine != "" {
		line("engine = %s", g.Engine)
	}
	line("\n[[traffic]]\nclass = \"all\"\nrate = { mean = \"%.9g/s\", burstiness = %g }\nprompt = %s\noutput = %s\n", rate, s.burstiness, length(s.prompt), length(s.output))
	for _, o := range []struct {
		name  string
		limit clock.Duration
	}{{"ttft", g.TTFT}, {"tpot", g.TPOT}} {
		line("[[slo]]\nname = %q\nclass = \"all\"\nmetric = %q\nthreshold = %q\nobjective = %q\n", strings.ToUpper(o.name), o.name, config.SpanText(o.limit), strings.Trim(config.Share.Format(g.Objective), `"`))
	}
	return b.String()
}

// setting says which service a scenario is about, whatever its load.
func (s *Scenario) setting() string {
	return fmt.Sprint(s.Grid.Name, s.model, s.gpu, s.tp, s.prompt, s.output)
}

// static are the inputs that follow from the scenario alone.
func (s *Scenario) static(e *sim.Experiment) (Inputs, error) {
	if s.Grid.ClosedForm {
		return Inputs{"servers": float64(s.servers), "load": s.load, "rate": s.rate, "mu": 1, "service": 1,
			"ca2": s.arrival, "cs2": s.service}, nil
	}
	p := &e.Pools[0]
	d := p.Deployment
	g := s.Grid
	perToken := float64(d.LLM.KVBytesPerToken(d.KVDtype))
	in := Inputs{
		"rate": s.rate, "prompt": s.prompt, "output": s.output, "tail": g.Tail, "burstiness": s.burstiness, "ca2": 1 / s.burstiness,
		"tp": float64(s.tp), "params": float64(d.LLM.Params()), "active_params": float64(d.LLM.ActiveParams()),
		"weight_bytes": float64(d.LLM.WeightBytes(d.WeightDtype)), "gpu_mem": float64(d.GPU.MemoryMiB) * (1 << 20),
		"kv_bytes_per_token": perToken, "kv_per_request": perToken * (s.prompt + s.output),
		"kv_tokens": float64(int64(p.Engine.KVBlocks-1) * int64(p.Engine.BlockSize)), "max_num_seqs": float64(p.Engine.MaxSeqs),
		"token_budget": float64(p.Engine.MaxBatchedTokens), "slo_ttft": g.TTFT.Seconds(), "slo_tpot": g.TPOT.Seconds(), "objective": g.Objective,
		"gpu_hour_usd": g.GPUHourUSD,
	}
	in["dtype_bytes"] = in["weight_bytes"] / in["params"]
	base, perSeq, err := stepLine(e, s.prompt+s.output/2)
	in["step_base"], in["step_per_seq"] = base, perSeq
	return in, err
}

// stepLine is a decode step's time at one and at 65 rows, as base + perSeq·rows in
// seconds, each row holding so many tokens.
func stepLine(e *sim.Experiment, context float64) (base, perSeq float64, err error) {
	st, err := models.NewStepper(e.Pools[0].Deployment)
	if err != nil {
		return 0, 0, err
	}
	at := func(n int32) float64 {
		b := models.Batch{Tokens: n, Seqs: n, DecodeSeqs: n, DecodeCtx: int64(float64(n) * context)}
		bin := 0
		if e.Pools[0].Thermal.Enabled {
			bin = e.Pools[0].Deployment.GPU.MaxClockMHz / models.ClockStepMHz
		}
		return float64(st.Step(b, bin).Total()) / 1e12
	}
	perSeq = (at(65) - at(1)) / 64
	return at(1) - perSeq, perSeq, nil
}

// measuredNames are the inputs that come from simulation: what a team would have
// measured. Those with idle_ are of one replica at a twentieth of its saturation.
var measuredNames = []string{"saturation", "load", "replicas", "ttft_mean", "ttft_p50", "ttft_p95", "tpot_mean", "tpot_p50", "e2e_mean", "service_cv2",
	"idle_ttft", "idle_tpot", "idle_e2e", "held", "kv_peak"}

// inputNames are the inputs of one kind of scenario.
func inputNames(queue bool) []string {
	if queue {
		return []string{"servers", "load", "rate", "mu", "service", "ca2", "cs2"}
	}
	return append([]string{"rate", "prompt", "output", "tail", "burstiness", "ca2", "tp", "params", "active_params", "weight_bytes", "dtype_bytes", "gpu_mem",
		"kv_bytes_per_token", "kv_per_request", "kv_tokens", "max_num_seqs", "token_budget", "slo_ttft", "slo_tpot", "objective", "gpu_hour_usd",
		"step_base", "step_per_seq"}, measuredNames...)
}

func studentsT(p float64, degrees int) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(degrees)}.Quantile(p)
}
