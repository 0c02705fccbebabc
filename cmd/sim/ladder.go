package main

import (
	"github.com/spf13/cobra"

	"slosim/internal/config"
	"slosim/internal/planner"
)

func newLadder() *cobra.Command {
	var f studyFlags
	var target string
	cmd := &cobra.Command{
		Use:   "ladder FILE",
		Short: "The step test: safe watermark, knee and saturation, and what steady state says",
		Long: `Carry out the step test of the field: half of the target first, a fifth of the
target more every two minutes; safe is the last step at which TTFT P99 and TPOT P95
are at most 80 % of their SLO. Each step is then held in steady state, and the
watermark is found there by bisection.`,
		Example: "  sim ladder experiments/burst.toml --target 16/s",
		Args:    oneFile(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, span, err := f.load(cmd, args[0])
			if err != nil {
				return err
			}
			rate := 0.0
			if target != "" {
				if rate, err = config.Rate.Parse(target); err != nil || !(rate > 0) {
					return flagError("target", target, "a rate such as 16/s")
				}
			}
			o, done, err := f.options(cmd, e.Name)
			if err != nil {
				return err
			}
			l, err := planner.ClimbLadder(cmd.Context(), e, rate, span, o)
			done()
			if err != nil {
				return planFailure(err)
			}
			return f.finish(cmd, e.Name, l, nil)
		},
	}
	f.add(cmd, "15m", "30m")
	cmd.Flags().StringVar(&target, "target", "", "`rate` that the service is meant for, such as 16/s (default: the experiment's mean)")
	return cmd
}
