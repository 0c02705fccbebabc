package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"slosim/internal/review"
)

func newCompare() *cobra.Command {
	return &cobra.Command{
		Use:   "compare RUN RUN...",
		Short: "Put finished runs side by side",
		Long: `Put finished runs side by side, from the summary.json in their folders, and warn
where they differ in more than the experiment: seed, replications, version, span,
assumptions. For paired differences of two worlds use sim review.`,
		Example: "  sim compare out/prompt-growth out/eight",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("%s needs two or more folders of finished runs\n  for example: %s out/prompt-growth out/eight", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var runs []*review.Summary
			var errs []error
			for _, a := range args {
				s, err := review.ReadSummary(a)
				runs, errs = append(runs, s), append(errs, err)
			}
			if err := errors.Join(errs...); err != nil {
				return &exit{exitInput, err}
			}
			review.Compare(screen(cmd.OutOrStdout()), runs)
			return nil
		},
	}
}
