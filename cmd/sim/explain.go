package main

import (
	"github.com/spf13/cobra"

	"slosim/experiments"
)

func newExplain() *cobra.Command {
	var sets []string
	cmd := &cobra.Command{
		Use:   "explain FILE [KEY]",
		Short: "Print every setting of an experiment and where it comes from",
		Long: `Print every setting of an experiment, defaults and catalogue figures included,
as: path = value  # where it comes from. With KEY, only that setting and those
below it. The paths are those that --set takes.`,
		Example: "  sim explain experiments/prompt-growth.toml\n  sim explain prompt-growth pool.main.engine",
		Args:    oneFile(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, p, err := experiments.Load(args[0], sets...)
			if err != nil {
				return &exit{exitInput, err}
			}
			key := ""
			if len(args) == 2 {
				key = args[1]
			}
			if err := p.Explain(cmd.OutOrStdout(), key); err != nil {
				return &exit{exitInput, err}
			}
			return nil
		},
	}
	setFlag(cmd, &sets)
	return cmd
}
