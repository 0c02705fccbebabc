package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"slosim/experiments"
	"slosim/internal/ready"
	"slosim/sim"
)

func newReady() *cobra.Command {
	var sets []string
	var dry, gate bool
	var f progressFlags
	cmd := &cobra.Command{
		Use:   "ready FILE",
		Short: "Hold an experiment against the launch checklist: six items, each with its evidence",
		Long: `Hold an experiment against the launch checklist: SLO defined in writing, metrics
monitored, error budget configured, capacity planned, degradation path rehearsed,
post-mortem practice. Capacity is judged by a run, unless --dry leaves it out.
With fewer than four met, no promise should be made; --gate makes that status 1.`,
		Example: "  sim ready experiments/prompt-growth.toml",
		Args:    oneFile(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, p, err := experiments.Load(args[0], sets...)
			if err != nil {
				return &exit{exitInput, err}
			}
			warn(cmd.ErrOrStderr(), p)
			var r *sim.Result
			if !dry {
				if r, err = runQuietly(cmd.Context(), e, f.meter(cmd.ErrOrStderr())); err != nil {
					return err
				}
			}
			items := ready.Check(&e, &p, r)
			w := cmd.OutOrStdout()
			for i, item := range items {
				mark := "not met"
				if item.Met {
					mark = "met"
				}
				fmt.Fprintf(w, "%d. %-26s  %s\n", i+1, item.Name, mark)
				for _, text := range item.Evidence {
					fmt.Fprintf(w, "     %s\n", text)
				}
			}
			met := ready.Met(items)
			fmt.Fprintf(w, "\n%d of %d met", met, len(items))
			if met >= ready.Enough {
				fmt.Fprintln(w, ".")
				return nil
			}
			fmt.Fprintf(w, ", fewer than %d: no promise should be made.\n", ready.Enough)
			if gate {
				return &exit{code: exitGate}
			}
			return nil
		},
	}
	setFlag(cmd, &sets)
	f.add(cmd, "no progress")
	cmd.Flags().BoolVar(&dry, "dry", false, "run nothing: capacity counts as not planned")
	cmd.Flags().BoolVar(&gate, "gate", false, "exit status 1 when fewer than four are met")
	return cmd
}
