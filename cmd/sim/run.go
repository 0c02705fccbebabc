package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"slosim/experiments"
	"slosim/internal/accuracy"
	"slosim/internal/config"
	"slosim/internal/progress"
	"slosim/internal/queue"
	"slosim/internal/report"
	"slosim/sim"
)

// runFlags are the flags of sim run.
type runFlags struct {
	sets    []string
	out     string
	gate    string
	workers int
	progressFlags

	quick, watch bool
	requests     string // file of one row per request

	measured      string // result to lay over the charts
	measuredClass string
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run an experiment: verdict, report.html, summary.json, time series",
		Long: `Run an experiment and print its verdict. The report goes to out/NAME/.

With --gate block the exit status is 1 if an SLO is MISSED, with --gate warn
also if one, or the whole run, is UNDECIDED. Gate with the built binary: "go run" turns every
failure into status 1.`,
		Example: "  sim run experiments/prompt-growth.toml\n  sim run prompt-growth --set pool.main.replicas=8 --out out/eight",
		Args:    oneFile(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run := func() error {
				return runExperiment(cmd.Context(), args[0], f, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			if f.watch {
				return watch(cmd.Context(), args[0], cmd.ErrOrStderr(), run)
			}
			return run()
		},
	}
	setFlag(cmd, &f.sets)
	cmd.Flags().StringVar(&f.out, "out", "", "folder for the report (default out/NAME)")
	cmd.Flags().StringVar(&f.gate, "gate", "none", "which verdict makes the exit status 1: none, block or warn")
	f.progressFlags.add(cmd, "print one line instead of the summary, and no progress")
	cmd.Flags().BoolVar(&f.quick, "quick", false, "only the busiest two hours, one replication")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "run again whenever the file is saved")
	cmd.Flags().StringVar(&f.requests, "requests", "", "write one row per request of the first replication to `file` (.csv or .parquet)")
	cmd.Flags().StringVar(&f.measured, "measured", "", "lay a measured result over the charts: `file` of vllm bench serve, guidellm, AIPerf, or CSV")
	cmd.Flags().StringVar(&f.measuredClass, "measured-class", "", "traffic class that it is compared with (default: the first)")
	cmd.Flags().IntVar(&f.workers, "parallel", 0, "replications side by side (default: one per core)")
	cmd.Flags().IntVar(&f.workers, "workers", 0, "what --parallel was called")
	cmd.Flags().Lookup("workers").Hidden = true
	return cmd
}

// runExperiment loads, simulates and reports.
func runExperiment(ctx context.Context, file string, f runFlags, stdout, stderr io.Writer) error {
	if err := checkFlags(f); err != nil {
		return &exit{exitInput, err}
	}
	e, p, err := experiments.Load(file, f.sets...)
	if err != nil {
		return &exit{exitInput, err}
	}
	if f.quick {
		if e, err = quick(e); err != nil {
			return &exit{exitInput, err}
		}
	}
	if f.out == "" {
		f.out = filepath.Join("out", e.Name)
	}
	if err := report.CheckDir(f.out); err != nil {
		return &exit{exitInput, err}
	}
	lay, err := newOverlay(f, e)
	if err != nil {
		return &exit{exitInput, err}
	}
	rows, err := rowsOf(f, &e)
	if err != nil {
		return &exit{exitInput, err}
	}
	warn(stderr, p)
	replay := []string{"run", file}
	for _, s := range f.sets {
		replay = append(replay, "--set", s)
	}
	if f.quick {
		replay = append(replay, "--quick")
	}
	meta := report.Meta{Version: versionText(), Command: commandLine(replay), Provenance: &p, Bands: accuracy.ShippedBands()}

	result, err := simulate(ctx, e, f, lay, rows, stderr)
	interrupted := errors.Is(err, context.Canceled)
	if rows != nil && err != nil && (result == nil || !interrupted) {
		rows.Discard()
		rows = nil
	}
	switch {
	case interrupted && result == nil:
		return &exit{exitInterrupted, errors.New("interrupted before anything was counted; nothing is written")}
	case err != nil && !interrupted:
		return &exit{failure(err), fmt.Errorf("%w\n  replay: %s", err, meta.Command)}
	}
	meta.Measured = lay.done()
	// Files first: a closed pipe (sim run ... | head) ends the program.
	written := report.Write(f.out, result, meta)
	if !f.quiet {
		report.Terminal(screen(stdout), result, meta)
		printOverlay(stdout, meta.Measured)
	}
	if written != nil {
		return &exit{exitInternal, written}
	}
	if rows != nil {
		n, err := rows.Close()
		if err != nil {
			return &exit{exitInternal, err}
		}
		switch {
		case interrupted:
			fmt.Fprintf(stdout, "\n%d requests up to the interruption, of the first replication: %s\n", n, f.requests)
		case !f.quiet:
			fmt.Fprintf(stdout, "\n%d requests: %s\n", n, f.requests)
		}
	}
	page := filepath.Join(f.out, "report.html")
	if f.quiet {
		fmt.Fprintf(stdout, "%s  %s  %s\n", result.Verdict.Status, e.Name, page)
	} else {
		fmt.Fprintf(stdout, "\nReport: %s\n", page)
	}
	switch {
	case interrupted:
		return &exit{code: exitInterrupted}
	case gated(f.gate, result):
		return &exit{code: exitGate}
	}
	return nil
}

func checkFlags(f runFlags) error {
	switch f.gate {
	case "none", "block", "warn":
	default:
		return fmt.Errorf("--gate %s is not known%s", f.gate, choices(f.gate, []string{"none", "block", "warn"}, "none, block, warn"))
	}
	if f.workers < 0 {
		return fmt.Errorf("--parallel %d is negative\n  allowed: 0 (one per core) or more", f.workers)
	}
	return nil
}

// simulate runs the experiment with a progress line.
func simulate(ctx context.Context, e sim.Experiment, f runFlags, lay *overlay, rows *report.Rows, stderr io.Writer) (*sim.Result, error) {
	options := sim.Options{Workers: f.workers, Served: lay.observer()}
	if rows != nil {
		other := options.Served
		options.Served = func(s sim.Served) {
			if other != nil {
				other(s)
			}
			if s.Replication == 0 { // one goroutine's: Rows needs no lock
				rows.Add(&s)
			}
		}
	}
	m := f.meter(stderr)
	defer m.Done()
	options.Progress = func(u sim.Progress) {
		m.Update(progress.State{Stage: "simulating", Share: u.Done, Requests: u.Requests})
	}
	return sim.Run(ctx, e, options)
}

// failure returns the exit status of a run that failed.
func failure(err error) int {
	var failed *queue.Failure
	if config.IsInput(err) || errors.As(err, &failed) && failed.Input {
		return exitInput
	}
	return exitInternal
}

// gated tells whether the result reaches the gate.
func gated(gate string, r *sim.Result) bool {
	undecided := r.Verdict.Status == sim.Undecided // without any [[slo]] too
	missed := false
	for _, o := range r.SLOs {
		missed = missed || o.Status == sim.Missed
		undecided = undecided || o.Status == sim.Undecided
	}
	return gate != "none" && missed || gate == "warn" && undecided
}
