package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"slosim/internal/report"
	"slosim/internal/sweep"
	"slosim/internal/trials"
)

// sweepFlags are the flags of sim sweep.
type sweepFlags struct {
	queueFlags
	progressFlags
	sets []string
	out  string
}

func newSweep() *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Simulate an experiment over a grid or a sampled design: which setting moves what",
		Long: `Simulate an experiment at every point of a design: a grid, a Latin hypercube or a
Sobol' sequence over any settings that --set takes, on the same seeds everywhere.

Every point is checked before anything runs. A result is remembered by its experiment,
seed and binary: running again is free, and an interruption loses only what was running.

Simulations run in this process; with --workers N in N processes of this machine; with
--nats URL wherever a sim worker is. The outcome is the same, byte for byte.

The outcome goes to out/NAME/: sweep.html (tornado charts, heat maps), sweep.json,
sweep.md, and results.parquet with a row per simulation.`,
		Example: "  sim sweep experiments/sweep.toml\n  sim sweep sweep --workers 4\n  sim sweep my.toml --nats tls://nats.example:4222 --creds team.creds",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("sim sweep needs a file that says what varies\n  for example: sim sweep experiments/sweep.toml")
			}
			return oneFile(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	setFlag(cmd, &f.sets)
	cmd.Flags().StringVar(&f.out, "out", "", "folder for the outcome (default out/NAME)")
	f.progressFlags.add(cmd, "print one line instead of the tables, and no progress")
	f.queueFlags.add(cmd)
	return cmd
}

func (f *sweepFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.check(); err != nil {
		return &exit{exitInput, err}
	}
	file, err := sweep.Load(args[0])
	if err != nil {
		return &exit{exitInput, err}
	}
	if f.out == "" {
		f.out = filepath.Join("out", file.Name)
	}
	if err := report.CheckDir(f.out); err != nil {
		return &exit{exitInput, err}
	}
	plan, err := sweep.Prepare(file, f.sets...)
	if err != nil {
		return &exit{exitInput, err}
	}
	warn(cmd.ErrOrStderr(), plan.Provenance)
	m := f.meter(cmd.ErrOrStderr())
	q, closeQueue, err := f.open(cmd.Context(), file.Name+"-sweep", m)
	if err != nil {
		return err
	}
	r, err := sweep.Run(cmd.Context(), plan, sweep.Options{Queue: q, Store: f.store, Progress: m.Update})
	m.Done()
	closeQueue()
	var full *trials.StoreError
	switch {
	case cmd.Context().Err() != nil, errors.Is(err, context.Canceled):
		return &exit{exitInterrupted, errors.New("interrupted; what was simulated is remembered: the same command goes on from there")}
	case errors.As(err, &full):
		return &exit{exitInternal, full}
	case err != nil:
		return &exit{failure(err), err}
	}
	return f.finish(cmd, args, r)
}

// finish writes the outcome and prints it.
func (f *sweepFlags) finish(cmd *cobra.Command, args []string, r *sweep.Result) error {
	files, err := r.Files(replay(cmd, args), versionText())
	if err == nil {
		err = report.WriteFiles(f.out, files)
	}
	out, page := cmd.OutOrStdout(), filepath.Join(f.out, "sweep.html")
	if !f.quiet {
		for _, g := range r.Grids() {
			g.Print(screen(out))
		}
	}
	if err != nil {
		return &exit{exitInternal, err}
	}
	fmt.Fprintf(out, "Report: %s\n", page)
	if n := len(r.Failures); n > 0 {
		return &exit{exitInternal, fmt.Errorf("%d of %d simulations failed; the first: point %d, seed %d: %s", n, len(r.Plan.Points)*len(r.Plan.Seeds), r.Failures[0].Point+1, r.Failures[0].Seed, r.Failures[0].Text)}
	}
	return nil
}
