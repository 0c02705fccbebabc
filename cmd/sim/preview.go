package main

import (
	"os"

	"github.com/spf13/cobra"

	"slosim/experiments"
	"slosim/internal/traffic"
)

func newPreview() *cobra.Command {
	var sets []string
	var html string
	cmd := &cobra.Command{
		Use:   "preview FILE",
		Short: "Draw the traffic that an experiment would send, before any simulation",
		Long: `Draw the traffic that an experiment would send under its seed: rate, tokens per
second, lengths by cohort, and by Little's law how many requests would be in
flight. Nothing is simulated.`,
		Example: "  sim preview experiments/prompt-growth.toml --html traffic.html\n  sim preview prompt-growth --set traffic.chat.rate.burstiness=0.3",
		Args:    oneFile(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, p, err := experiments.Load(args[0], sets...)
			if err != nil {
				return &exit{exitInput, err}
			}
			warn(cmd.ErrOrStderr(), p)
			v, err := traffic.NewPreview(e)
			if err != nil {
				return &exit{exitInternal, err}
			}
			for _, g := range v.Grids() {
				g.Print(screen(cmd.OutOrStdout()))
			}
			return writePage(cmd, html, v.Document(commandLine(os.Args[1:])))
		},
	}
	setFlag(cmd, &sets)
	cmd.Flags().StringVar(&html, "html", "", "write a page with charts to this `file`; it works offline")
	return cmd
}
