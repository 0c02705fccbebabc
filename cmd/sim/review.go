package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"slosim/experiments"
	"slosim/internal/progress"
	"slosim/internal/report"
	"slosim/internal/review"
	"slosim/sim"
)

// reviewFlags are the flags of sim review.
type reviewFlags struct {
	queueFlags
	progressFlags
	sets     []string
	out      string
	gate     string
	limit    time.Duration
	material float64
	levers   bool
	incident bool
	variance int
}

func newReview() *cobra.Command {
	var f reviewFlags
	cmd := &cobra.Command{
		Use:   "review [BASE] CHANGE",
		Short: "Review a launch: what a change does to the SLOs, why, and what mends it",
		Long: `Compare the world with a change to the world without it, on common random
numbers, and call it PASS, WARN or BLOCK.

With one experiment its [[change]] tables are the launch. With two, the second is
the change and the first the world without it. The review goes to
out/NAME-review/: review.html, review.json, review.md, and one runnable TOML per
lever.

Exit status 1 if the call reaches --gate: block (the default), warn, or none.`,
		Example: "  sim review experiments/prompt-growth.toml\n  sim review base.toml change.toml --gate warn\n  sim review prompt-growth --set change.feature.share=5% --levers=false",
		Args: func(cmd *cobra.Command, args []string) error {
			return oneFile(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runReview(cmd.Context(), args, f, cmd.Flags().Changed, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	setFlag(cmd, &f.sets)
	cmd.Flags().StringVar(&f.out, "out", "", "folder for the review (default out/NAME-review)")
	cmd.Flags().StringVar(&f.gate, "gate", "block", "which call makes the exit status 1: block, warn or none")
	f.progressFlags.add(cmd, "print one line instead of the review, and no progress")
	f.queueFlags.add(cmd)
	cmd.Flags().DurationVar(&f.limit, "time-limit", 0, "stop looking for causes and levers after this time; the call itself always runs in full (default: no limit)")
	cmd.Flags().Float64Var(&f.material, "material", review.DefaultMaterial, "growth of the burn rate from which on a worsening counts")
	cmd.Flags().BoolVar(&f.incident, "post-mortem", false, "the launch has happened: write post-mortem.html and .md, too (timeline, detection, budget, causes, prevention)")
	cmd.Flags().IntVar(&f.variance, "variance", 0, "replications on which each lever shows what common random numbers gain (0: before and after only)")
	cmd.Flags().BoolVar(&f.levers, "levers", true, "look for causes and levers")
	return cmd
}

// runReview loads both worlds, compares them and reports.
func runReview(ctx context.Context, args []string, f reviewFlags, given func(string) bool, stdout, stderr io.Writer) error {
	switch {
	case f.gate != "none" && f.gate != "block" && f.gate != "warn":
		return &exit{exitInput, fmt.Errorf("--gate %s is not known%s", f.gate, choices(f.gate, []string{"none", "block", "warn"}, "none, block, warn"))}
	case f.limit < 0:
		return &exit{exitInput, fmt.Errorf("--time-limit %s is negative\n  allowed: 0 (no limit) or more, for example 60s", f.limit)}
	case f.variance < 0 || f.variance == 1 || f.variance > 1000:
		return &exit{exitInput, fmt.Errorf("--variance %d\n  allowed: 0 (before and after only), or 2 to 1000 replications per lever", f.variance)}
	case !(f.material > 0):
		return &exit{exitInput, fmt.Errorf("--material %g is not possible\n  allowed: more than 0; 0.1 is a tenth of the budget's pace", f.material)}
	}
	base, change, text, err := reviewWorlds(args, f.sets, stderr)
	if err != nil {
		return &exit{exitInput, err}
	}
	f.settle(&change.Review, given)
	if f.out == "" {
		f.out = filepath.Join("out", change.Name+"-review")
	}
	if err := report.CheckDir(f.out); err != nil {
		return &exit{exitInput, err}
	}
	replay := append([]string{"review"}, args...)
	for _, s := range f.sets {
		replay = append(replay, "--set", s)
	}
	m := f.meter(stderr)
	defer m.Done()
	q, closeQueue, err := f.open(ctx, change.Name+"-review", m)
	if err != nil {
		return err
	}
	o := review.Options{Queue: q, Store: f.store, Progress: m.Update, TimeLimit: f.limit, Material: f.material, Chance: change.Review.Chance, Levers: f.levers, Variance: f.variance, Incident: f.incident, Version: versionText(), Command: commandLine(replay)}
	m.Update(progress.State{Stage: "review"})
	r, err := review.Run(ctx, base, change, text, o)
	m.Done()
	closeQueue()
	switch {
	case errors.Is(err, context.Canceled):
		return &exit{exitInterrupted, errors.New("interrupted before both worlds were simulated: there is no report; the same command goes on from there")}
	case err != nil:
		return &exit{failure(err), fmt.Errorf("%w\n  replay: %s", err, o.Command)}
	}
	written := r.Write(f.out)
	page := filepath.Join(f.out, "review.html")
	if f.quiet {
		fmt.Fprintf(stdout, "%s  %s  %s\n", r.Verdict.Call, change.Name, page)
	} else {
		r.Terminal(screen(stdout))
		fmt.Fprintf(stdout, "\nReport: %s\n", page)
	}
	switch {
	case written != nil:
		return &exit{exitInternal, written}
	case ctx.Err() != nil:
		return &exit{code: exitInterrupted}
	case f.gate == "block" && r.Verdict.Call == review.Block, f.gate == "warn" && r.Verdict.Call != review.Pass:
		return &exit{code: exitGate}
	}
	return nil
}

// settle takes from the experiment's [review] what no flag says.
func (f *reviewFlags) settle(r *sim.Review, given func(string) bool) {
	if r.Gate == "" { // there is no such table
		return
	}
	if !given("gate") {
		f.gate = r.Gate
	}
	if !given("material") {
		f.material = r.Material
	}
	if !given("time-limit") {
		f.limit = time.Duration(r.TimeLimit)
	}
	if !given("levers") {
		f.levers = r.Levers
	}
}

// reviewWorlds loads the world without the change, the one with it, and the text of
// the latter. Overrides apply to both.
func reviewWorlds(args, sets []string, stderr io.Writer) (base, change sim.Experiment, text review.Source, err error) {
	file := args[len(args)-1]
	change, p, err := experiments.Load(file, sets...)
	if err != nil {
		return base, change, text, err
	}
	warn(stderr, p)
	text.Name, text.Dir, text.Text, err = experiments.Text(file)
	if err != nil {
		return base, change, text, err
	}
	text.Sets = sets
	if len(args) == 1 {
		if len(change.Changes) == 0 {
			return base, change, text, fmt.Errorf("%s has no [[change]]: there is nothing to review\n  add the launch as a [[change]], or name two files: sim review BASE.toml CHANGE.toml", file)
		}
		return review.Without(change), change, text, nil
	}
	base, _, err = experiments.Load(args[0], sets...)
	if err != nil {
		return base, change, text, err
	}
	if base.Duration != change.Duration || base.Start != change.Start || base.Warmup != change.Warmup {
		return base, change, text, fmt.Errorf("%s and %s cover different spans: give both the same start, duration and warmup", args[0], file)
	}
	return review.Aligned(base, change), change, text, nil
}
