package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"slosim/internal/coverage"
)

func newCoverage() *cobra.Command {
	t := coverage.Trial{}
	system, requests := "mm1", 0
	cmd := &cobra.Command{
		Use:   "coverage",
		Short: "Measure how often the 95 % intervals hold the true value",
		Long: `Measure how often the 95 % intervals over replications hold the true value. On
the M/M/1 queue: mean and P99 of the sojourn, where both are known, at 5,000,
20,000 and 100,000 customers per replication. With --system llm: mean and P99 of
TTFT on a simulated replica, against very long replications on other seeds.
Prints a Markdown table.`,
		Example: "  sim coverage --intervals 100\n  sim coverage --system llm --requests 50000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case t.Load <= 0 || t.Load >= 1:
				return &exit{exitInput, fmt.Errorf("--load %g is not between 0 and 1", t.Load)}
			case t.Replications < 1 || t.Replications > 1000:
				return &exit{exitInput, fmt.Errorf("--replications %d\n  allowed: 1 (intervals from its batches) to 1000", t.Replications)}
			case t.Intervals < 1 || t.Intervals > 100_000:
				return &exit{exitInput, fmt.Errorf("--intervals %d\n  allowed: 1 to 100000", t.Intervals)}
			case system != "mm1" && system != "llm":
				return &exit{exitInput, fmt.Errorf("--system %q\n  allowed: mm1, llm", system)}
			case requests != 0 && (requests < 1000 || requests > 1_000_000):
				return &exit{exitInput, fmt.Errorf("--requests %d\n  allowed: 1000 to 1000000", requests)}
			case requests != 0 && system == "mm1":
				return &exit{exitInput, fmt.Errorf("--requests is for --system llm\n  try: remove it; the queue is measured at 5,000, 20,000 and 100,000")}
			case system == "llm":
				return coverLLM(cmd, t, requests)
			}
			w := cmd.OutOrStdout()
			fmt.Fprintf(w, "M/M/1 at load %g, %d intervals over %d replications each, seed %d.\n\n", t.Load, t.Intervals, t.Replications, t.Seed)
			fmt.Fprintln(w, "| customers per replication | mean: coverage | half width | P99: coverage | half width |\n|--:|--:|--:|--:|--:|")
			for _, n := range []int{5_000, 20_000, 100_000} {
				t.Customers = n
				mean, p99 := t.Run()
				fmt.Fprintf(w, "| %d | %s | %s |\n", n, coverageCell(mean), coverageCell(p99))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&system, "system", "mm1", "mm1, or llm: one simulated replica")
	cmd.Flags().IntVar(&requests, "requests", 0, "with llm: per replication (50000)")
	cmd.Flags().Float64Var(&t.Load, "load", .8, "arrival rate ÷ service rate")
	cmd.Flags().IntVar(&t.Replications, "replications", 5, "per interval; 1: from the batches of one run")
	cmd.Flags().IntVar(&t.Intervals, "intervals", 400, "how many intervals")
	cmd.Flags().Uint64Var(&t.Seed, "seed", 1, "of the draws")
	return cmd
}

func coverageCell(o coverage.Outcome) string {
	if o.Width == 0 {
		return "no interval | –"
	}
	return fmt.Sprintf("%.1f %% [%.1f, %.1f] | ±%.1f %%", 100*o.Share(), 100*o.Lo, 100*o.Hi, 100*o.Width)
}

// coverLLM measures a simulated replica.
func coverLLM(cmd *cobra.Command, t coverage.Trial, requests int) error {
	if requests == 0 {
		requests = 50_000
	}
	l := coverage.LLM{Load: t.Load, Requests: requests, Replications: t.Replications, Intervals: t.Intervals, Seed: t.Seed, Long: 20, LongRequests: 2_000_000}
	mean, p99, truth, err := l.Run(cmd.Context())
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "TTFT of one replica (llama-3.1-8b, H100, prompts of 2,000, outputs of 200 tokens in the mean) at load %g, %d intervals over %d replications each, seed %d.\n", t.Load, t.Intervals, t.Replications, t.Seed)
	fmt.Fprintf(w, "Truth, from %d replications of %d requests: mean %.2f ms [%.2f, %.2f], P99 %.1f ms [%.1f, %.1f].\n\n", l.Long, l.LongRequests,
		1e3*truth.Mean.V, 1e3*truth.Mean.Lo, 1e3*truth.Mean.Hi, 1e3*truth.P99.V, 1e3*truth.P99.Lo, 1e3*truth.P99.Hi)
	fmt.Fprintln(w, "| requests per replication | mean: coverage | half width | P99: coverage | half width |\n|--:|--:|--:|--:|--:|")
	fmt.Fprintf(w, "| %d | %s | %s |\n", requests, coverageCell(mean), coverageCell(p99))
	return nil
}
