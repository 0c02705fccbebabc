package main

import (
	"github.com/spf13/cobra"

	"slosim/experiments"
)

func newCheck() *cobra.Command {
	var sets []string
	cmd := &cobra.Command{
		Use:     "check FILE",
		Short:   "Check an experiment without running it",
		Example: "  sim check experiments/prompt-growth.toml --set pool.main.replicas=8",
		Args:    oneFile(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, p, err := experiments.Load(args[0], sets...)
			if err != nil {
				return &exit{exitInput, err}
			}
			warn(cmd.ErrOrStderr(), p)
			experiments.Describe(cmd.OutOrStdout(), e, p)
			return nil
		},
	}
	setFlag(cmd, &sets)
	return cmd
}
