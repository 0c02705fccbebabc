package main

import (
	"github.com/spf13/cobra"

	"slosim/experiments"
	"slosim/internal/config"
	"slosim/internal/planner"
	"slosim/sim"
	"slosim/sim/clock"
)

// studyFlags are those of verbs that study one experiment.
type studyFlags struct {
	planFlags
	sets         []string
	duration     string
	warmup       string
	replications int
}

func (f *studyFlags) add(cmd *cobra.Command, duration, warmup string) {
	f.planFlags.add(cmd)
	setFlag(cmd, &f.sets)
	cmd.Flags().StringVar(&f.duration, "duration", duration, "`time` that each point is counted for")
	cmd.Flags().StringVar(&f.warmup, "warmup", warmup, "`time` that each point is simulated before")
	cmd.Flags().IntVar(&f.replications, "replications", 5, "seeds of each point")
}

// load reads the experiment and how long its points are to be.
func (f *studyFlags) load(cmd *cobra.Command, file string) (sim.Experiment, planner.Span, error) {
	e, p, err := experiments.Load(file, f.sets...)
	if err != nil {
		return e, planner.Span{}, &exit{exitInput, err}
	}
	warn(cmd.ErrOrStderr(), p)
	var s planner.Span
	for _, x := range []struct {
		flag, text string
		to         *clock.Duration
		least      clock.Duration
	}{{"duration", f.duration, &s.Duration, 10 * clock.Second}, {"warmup", f.warmup, &s.Warmup, 0}} {
		if *x.to, err = config.Span.Parse(x.text); err != nil || *x.to < x.least || *x.to > 30*clock.Day {
			return e, s, flagError(x.flag, x.text, "a time of up to 30d such as 10m")
		}
	}
	if f.replications < 2 || f.replications > 100 {
		return e, s, flagError("replications", f.replications, "2 to 100")
	}
	e.Replications = f.replications
	return e, s, nil
}

func newCurve() *cobra.Command {
	var f studyFlags
	cmd := &cobra.Command{
		Use:   "curve FILE",
		Short: "Latency against load, up to saturation: the hockey stick",
		Long: `Simulate the experiment's mix at constant rates from 10 to 105 % of saturation and
show TTFT, TPOT, goodput and use of the GPUs; the 70–80 % and 95 % lines of the
utilisation rule are judged.`,
		Example: "  sim curve experiments/prompt-growth.toml\n  sim curve burst --duration 30m",
		Args:    oneFile(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, span, err := f.load(cmd, args[0])
			if err != nil {
				return err
			}
			o, done, err := f.options(cmd, e.Name)
			if err != nil {
				return err
			}
			c, err := planner.DrawCurve(cmd.Context(), e, span, o)
			done()
			if err != nil {
				return planFailure(err)
			}
			return f.finish(cmd, e.Name, c, nil)
		},
	}
	f.add(cmd, "10m", "5m")
	return cmd
}
