package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slosim/experiments"
	"slosim/internal/config"
	"slosim/internal/planner"
	"slosim/sim"
	"slosim/sim/clock"
)

// planSpecFlags are what a plan may choose and must keep.
type planSpecFlags struct {
	planFlags
	sets         []string
	pool         string
	gpus, prices []string
	tp           []int
	vary         []string
	most         int
	confidence   string
	objective    string
	spare        int
	redundancy   float64
	spike        float64
	replications int
	full         bool
}

func newPlan() *cobra.Command {
	var f planSpecFlags
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "The cheapest deployment that meets every SLO",
		Long: `Find the least cost, or the fewest GPUs, that meets every SLO of the experiment
with the wanted confidence. Candidates are all combinations of --gpu, --tp and
--vary; analytic bounds prune, simulation decides. All candidates meet the same
arrivals; the answer is confirmed on fresh seeds.

Simulated are the busiest two hours; --full simulates the whole experiment. Each
candidate that holds becomes a runnable experiment in the report's folder.`,
		Example: "  sim plan burst --gpu h100,h200 --price h100=2.95,h200=4.1 --tp 4,8\n  sim plan pd-split --pool decode --vary pool.prefill.replicas=1,2,3 --spare 1",
		Args:    oneFile(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.add(cmd)
	setFlag(cmd, &f.sets)
	flags := cmd.Flags()
	flags.StringVar(&f.pool, "pool", "", "pool whose replicas are counted (default: the first)")
	flags.StringSliceVar(&f.gpus, "gpu", nil, "GPUs to choose from, for example h100,h200")
	flags.IntSliceVar(&f.tp, "tp", nil, "tensor_parallel to choose from, for example 1,2,4")
	flags.StringArrayVar(&f.vary, "vary", nil, "another choice: `path=a,b,c`, such as pool.main.engine.max_num_seqs=64,256 (repeatable)")
	flags.StringSliceVar(&f.prices, "price", nil, "dollars per GPU hour: `gpu=usd`, for example h100=2.95,h200=4.1")
	flags.IntVar(&f.most, "max-replicas", 64, "most replicas of a candidate")
	flags.StringVar(&f.confidence, "confidence", "95%", "that every SLO is met")
	flags.StringVar(&f.objective, "objective", "cost", "what is least: cost or gpus")
	flags.IntVar(&f.spare, "spare", 0, "replicas that may fail: 1 = N-1")
	flags.Float64Var(&f.redundancy, "redundancy", 1, "factor on the replicas, for example 1.3")
	flags.Float64Var(&f.spike, "spike", 1, "factor on the traffic")
	flags.IntVar(&f.replications, "replications", 5, "seeds of each simulation")
	flags.BoolVar(&f.full, "full", false, "simulate the whole experiment, not its busiest two hours")
	return cmd
}

func (f *planSpecFlags) run(cmd *cobra.Command, file string) error {
	e, p, err := experiments.Load(file, f.sets...)
	if err != nil {
		return &exit{exitInput, err}
	}
	spec, err := f.spec(file, e)
	if err != nil {
		return err
	}
	warn(cmd.ErrOrStderr(), p)
	o, done, err := f.options(cmd, e.Name)
	if err != nil {
		return err
	}
	plan, err := planner.MakePlan(cmd.Context(), spec, o)
	done()
	if err != nil {
		return planFailure(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		shipped, err := experiments.Shipped(nameOf(file))
		if err != nil {
			return &exit{exitInternal, err}
		}
		text = []byte(shipped)
	}
	more, err := plan.Files(string(text), filepath.Dir(file), f.sets)
	if err != nil {
		return &exit{exitInternal, err}
	}
	if err := f.finish(cmd, e.Name, plan, more); err != nil {
		return err
	}
	if plan.Best == nil { // nothing to deploy
		return &exit{code: exitGate}
	}
	return nil
}

// spec turns the flags into what the planner takes.
func (f *planSpecFlags) spec(file string, e sim.Experiment) (planner.PlanSpec, error) {
	s := planner.PlanSpec{Pool: f.pool, Most: f.most, Spare: f.spare, Redundancy: f.redundancy, Spike: f.spike, ByGPUs: f.objective == "gpus", Prices: map[string]float64{}}
	var pools []string
	for _, p := range e.Pools {
		pools = append(pools, p.Name)
	}
	if s.Pool == "" {
		s.Pool = pools[0]
	}
	var err error
	switch {
	case !slices.Contains(pools, s.Pool):
		return s, &exit{exitInput, fmt.Errorf("--pool %s: the experiment has no such pool%s", s.Pool, choices(s.Pool, pools, strings.Join(pools, ", ")))}
	case f.objective != "cost" && f.objective != "gpus":
		return s, flagError("objective", f.objective, "cost, gpus")
	case f.most < 1 || f.most > 4096:
		return s, flagError("max-replicas", f.most, "1 to 4096")
	case f.spare < 0 || f.spare > 1000:
		return s, flagError("spare", f.spare, "0 to 1000")
	case !(f.redundancy >= 1 && f.redundancy <= 10):
		return s, flagError("redundancy", f.redundancy, "1 to 10")
	case !(f.spike >= 1 && f.spike <= 100):
		return s, flagError("spike", f.spike, "1 to 100")
	case f.replications < 2 || f.replications > 100:
		return s, flagError("replications", f.replications, "2 to 100")
	}
	if s.Confidence, err = config.Share.Parse(f.confidence); err != nil || s.Confidence < .5 || s.Confidence > .9999 {
		return s, flagError("confidence", f.confidence, "50% to 99.99%")
	}
	for _, x := range f.prices {
		gpu, text, _ := strings.Cut(x, "=")
		usd, err := strconv.ParseFloat(text, 64)
		if err != nil || !(usd >= 0 && usd < 1e6) {
			return s, flagError("price", x, "gpu=usd, for example h100=2.95")
		}
		s.Prices[gpu] = usd
	}
	if len(f.gpus) > 0 {
		s.Choices = append(s.Choices, planner.Choice{Path: "pool." + s.Pool + ".gpu", Values: f.gpus})
	}
	var tps []string
	for _, tp := range f.tp {
		tps = append(tps, strconv.Itoa(tp))
	}
	if tps != nil {
		s.Choices = append(s.Choices, planner.Choice{Path: "pool." + s.Pool + ".tensor_parallel", Values: tps})
	}
	for _, v := range f.vary {
		path, list, ok := strings.Cut(v, "=")
		if !ok || list == "" {
			return s, flagError("vary", v, "path=a,b,c, for example pool.main.engine.max_num_seqs=64,256")
		}
		s.Choices = append(s.Choices, planner.Choice{Path: path, Values: strings.Split(list, ",")})
	}
	s.Load = func(more ...string) (sim.Experiment, error) {
		e, _, err := experiments.Load(file, append(slices.Clone(f.sets), more...)...)
		e.Replications = f.replications
		return e, err
	}
	if !f.full {
		s.Cut = func(e sim.Experiment) (sim.Experiment, error) {
			if e.Duration <= 2*clock.Hour {
				return e, nil
			}
			short, _, err := sim.Quick(e)
			if errors.Is(err, sim.ErrNoQuick) {
				return e, nil
			}
			short.Replications = e.Replications
			return short, err
		}
	}
	return s, nil
}
