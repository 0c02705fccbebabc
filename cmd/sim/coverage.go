package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"slosim/internal/coverage"
)

func newCoverage() *cobra.Command {
	t := coverage.Trial{}
	cmd := &cobra.Command{
		Use:   "coverage",
		Short: "Measure how often the 95 % intervals hold the true value, on the M/M/1 queue",
		Long: `Measure how often the 95 % intervals over replications hold the true value: mean
and P99 of the sojourn in an M/M/1 queue, where both are known, at 5,000, 20,000
and 100,000 customers per replication. Prints a Markdown table.`,
		Example: "  sim coverage --intervals 100",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case t.Load <= 0 || t.Load >= 1:
				return &exit{exitInput, fmt.Errorf("--load %g is not between 0 and 1", t.Load)}
			case t.Replications < 2 || t.Replications > 1000:
				return &exit{exitInput, fmt.Errorf("--replications %d\n  allowed: 2 to 1000", t.Replications)}
			case t.Intervals < 1 || t.Intervals > 100_000:
				return &exit{exitInput, fmt.Errorf("--intervals %d\n  allowed: 1 to 100000", t.Intervals)}
			}
			w := cmd.OutOrStdout()
			fmt.Fprintf(w, "M/M/1 at load %g, %d intervals over %d replications each, seed %d.\n\n", t.Load, t.Intervals, t.Replications, t.Seed)
			fmt.Fprintln(w, "| customers per replication | mean: coverage | half width | P99: coverage | half width |\n|--:|--:|--:|--:|--:|")
			for _, n := range []int{5_000, 20_000, 100_000} {
				t.Customers = n
				mean, p99 := t.Run()
				cell := func(o coverage.Outcome) string {
					return fmt.Sprintf("%.1f %% [%.1f, %.1f] | ±%.1f %%", 100*o.Share(), 100*o.Lo, 100*o.Hi, 100*o.Width)
				}
				fmt.Fprintf(w, "| %d | %s | %s |\n", n, cell(mean), cell(p99))
			}
			return nil
		},
	}
	cmd.Flags().Float64Var(&t.Load, "load", .8, "arrival rate ÷ service rate")
	cmd.Flags().IntVar(&t.Replications, "replications", 5, "per interval")
	cmd.Flags().IntVar(&t.Intervals, "intervals", 400, "how many intervals")
	cmd.Flags().Uint64Var(&t.Seed, "seed", 1, "of the draws")
	return cmd
}
