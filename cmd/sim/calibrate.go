package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slosim/experiments"
	"slosim/internal/accuracy"
	"slosim/internal/calibrate"
	"slosim/internal/measured"
	"slosim/internal/progress"
	"slosim/sim"
)

// calibrateFlags are the flags of sim calibrate.
type calibrateFlags struct {
	experiment    string
	sets          []string
	pool          string
	runs          []string
	phase         string
	fit           []string
	hold          []string
	out           string
	since         string
	fromCatalogue bool
	models        string
	anyGPU        bool
	noCheck       bool
	progressFlags
}

func newCalibrate() *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate MEASUREMENTS...",
		Short: "Fit host times and speeds to your own measurements",
		Long: `Fit the constants of a serving engine to measured runs and write them to a
calibration file, which an experiment names with calibration = "FILE".

MEASUREMENTS are results of vllm bench serve (JSON, best with --save-detailed),
guidellm (JSON), AIPerf (JSON, JSONL, CSV) or plain CSV files with one request per
row (prompt_tokens, output_tokens, arrival_s, ttft_ms, e2e_ms); --experiment says
what was deployed. Or a folder as sim accuracy takes it, with --run.

The search is bounded, its loss robust; each constant is also held to where it
begins, so that data which say nothing about it leave it there. Printed are the
error before and after, on parts that were left out (cross-validation), what lies
at a bound, and what these data do not identify.`,
		Example: "  sim calibrate bench.json --experiment my.toml --out calibration.toml\n  sim calibrate ../shared/data --run residency/sweep_rate__agg_2rps__vanilla --fit front_fixed,step_fixed,compute",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs measurements\n  for example: %s bench.json --experiment my.toml", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			command := []string{"calibrate"}
			for _, a := range os.Args[min(2, len(os.Args)):] {
				command = append(command, filepath.ToSlash(a))
			}
			return fitConstants(cmd.Context(), args, f, commandLine(command), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	setFlag(cmd, &f.sets)
	f.progressFlags.add(cmd, "no progress")
	cmd.Flags().StringVar(&f.experiment, "experiment", "", "experiment `file` that says what was deployed")
	cmd.Flags().StringVar(&f.pool, "pool", "", "its pool, if it has several")
	cmd.Flags().StringArrayVar(&f.runs, "run", nil, "of a folder: `source/name` of a run to fit on (repeatable)")
	cmd.Flags().StringVar(&f.phase, "phase", "", "of a run in phases: the one to fit on, for example \"5 req/s\"")
	cmd.Flags().StringSliceVar(&f.fit, "fit", nil, "constants to fit: "+strings.Join(calibrate.Names(), ", "))
	cmd.Flags().StringSliceVar(&f.hold, "hold", nil, "constants to set and not to fit: `name=value`, in ms or us as in the file, for example compute=1.02")
	cmd.Flags().StringVar(&f.out, "out", "calibration.toml", "file to write")
	cmd.Flags().StringVar(&f.since, "since", "", "of vllm: first `release` that the constants are for")
	cmd.Flags().StringVar(&f.models, "models", "", "only for dense models or for those with experts: `dense or moe`")
	cmd.Flags().BoolVar(&f.anyGPU, "any-gpu", false, "the constants are the engine's, whatever the GPU")
	cmd.Flags().BoolVar(&f.fromCatalogue, "from-catalogue", false, "begin at the catalogue's constants instead of those of the engine's release")
	cmd.Flags().BoolVar(&f.noCheck, "no-check", false, "leave out the cross-validation")
	return cmd
}

// worstFit is the mean absolute error from which a fit explains nothing.
const worstFit = 0.5

// fitConstants reads, fits, prints and writes.
func fitConstants(ctx context.Context, args []string, f calibrateFlags, command string, stdout, stderr io.Writer) error {
	cases, ids, err := f.cases(args)
	if err != nil {
		return &exit{exitInput, err}
	}
	if !slices.Contains([]string{"", "dense", "moe"}, f.models) {
		return &exit{exitInput, fmt.Errorf("--models %q: allowed are dense and moe", f.models)}
	}
	d := &cases[0].Experiment.Pools[0]
	names := f.fit
	if len(names) == 0 {
		names = calibrate.Default(d.Deployment.Host.Async)
	}
	params, err := calibrate.Find(names)
	if err != nil {
		return &exit{exitInput, err}
	}
	held, err := calibrate.Hold(f.hold, params)
	if err != nil {
		return &exit{exitInput, err}
	}
	o := calibrate.Options{Params: params, Held: held, FromCatalogue: f.fromCatalogue, Check: !f.noCheck}
	m := f.meter(stderr)
	o.Progress = func(n int) { m.Update(progress.State{Stage: "fitting", Done: n, Unit: "simulations"}) }
	fit, err := calibrate.Run(ctx, cases, o)
	m.Done()
	if errors.Is(err, context.Canceled) {
		return &exit{exitInterrupted, errors.New("interrupted; nothing is written")}
	}
	if err != nil {
		return &exit{exitInput, err}
	}
	fit.Print(stdout)
	if fit.Within > worstFit {
		return &exit{exitInput, fmt.Errorf("the fitted replay is still off by %.0f %%: nothing is written\n  is a unit wrong (seconds for milliseconds), or is the experiment another deployment than the measured one?", 100*fit.Within)}
	}
	var text bytes.Buffer
	fit.Write(&text, f.header(d, command, ids))
	if err := os.WriteFile(f.out, text.Bytes(), 0o644); err != nil {
		return &exit{exitInternal, err}
	}
	fmt.Fprintf(stdout, "\nWritten: %s; name it in a [[pool]]: calibration = %q\n", f.out, filepath.ToSlash(f.out))
	return nil
}

// header says what the fitted constants are of.
func (f calibrateFlags) header(d *sim.Pool, command string, ids []string) calibrate.Header {
	h := calibrate.Header{Engine: d.Engine.Kind, Since: f.since, GPU: d.Deployment.GPU.Name, Models: f.models, Frontend: d.Engine.Frontend, Command: command, FittedOn: ids}
	if f.anyGPU {
		h.GPU = ""
	}
	return h
}

// cases returns the runs to fit on, with the experiments that replay them.
func (f calibrateFlags) cases(args []string) ([]calibrate.Case, []string, error) {
	if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
		return f.fromFolder(args[0])
	}
	if f.experiment == "" {
		return nil, nil, errors.New("--experiment is missing: a result does not say on what it was measured\n  write an experiment with a [[pool]] like your deployment: sim list experiments")
	}
	e, _, err := experiments.Load(f.experiment, f.sets...)
	if err != nil {
		return nil, nil, err
	}
	pool, err := poolOf(e, f.pool)
	if err != nil {
		return nil, nil, err
	}
	var cases []calibrate.Case
	var ids []string
	for _, path := range args {
		runs, err := measured.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range runs {
			x, err := accuracy.OnExperiment(&r, e, pool)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", path, err)
			}
			cases = append(cases, calibrate.Case{Run: r, Experiment: x})
			ids = append(ids, "user/"+r.Name)
		}
	}
	return cases, ids, nil
}

// poolOf returns the pool of that name, or the only one.
func poolOf(e sim.Experiment, name string) (int, error) {
	var names []string
	for i, p := range e.Pools {
		if p.Name == name || name == "" && len(e.Pools) == 1 {
			return i, nil
		}
		names = append(names, p.Name)
	}
	if name == "" {
		return 0, fmt.Errorf("the experiment has several pools; say which was measured: --pool %s", strings.Join(names, " or --pool "))
	}
	return 0, fmt.Errorf("--pool %s: the experiment has no such pool%s", name, choices(name, names, strings.Join(names, ", ")))
}

// fromFolder takes runs of a folder of measurements, which know their deployment.
func (f calibrateFlags) fromFolder(dir string) ([]calibrate.Case, []string, error) {
	folder, err := measured.ReadFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	if len(f.runs) == 0 {
		return nil, nil, fmt.Errorf("%s is a folder of %d runs: say on which to fit, for example --run %s/%s", dir, len(folder.Runs), folder.Runs[0].Source, folder.Runs[0].Name)
	}
	var cases []calibrate.Case
	var ids []string
	for _, want := range f.runs {
		found := false
		for _, r := range folder.Runs {
			if r.Source+"/"+r.Name != want {
				continue
			}
			found = true
			c, id, err := f.folderCase(r)
			if err != nil {
				return nil, nil, fmt.Errorf("--run %s: %w", want, err)
			}
			if n := len(cases); n > 0 && cases[0].Experiment.Pools[0].Engine.Kind != c.Experiment.Pools[0].Engine.Kind {
				return nil, nil, fmt.Errorf("--run %s: its engine is not that of the first run", want)
			}
			cases, ids = append(cases, c), append(ids, id)
		}
		if !found {
			return nil, nil, fmt.Errorf("--run %s: the folder has no such run; see the names with: sim accuracy %s --all", want, dir)
		}
	}
	return cases, ids, nil
}

// folderCase cuts a run to the phase that is fitted.
func (f calibrateFlags) folderCase(r measured.Run) (calibrate.Case, string, error) {
	id, phase := r.Source+"/"+r.Name, 0
	if len(r.Phases) > 1 || f.phase != "" && len(r.Phases) == 1 {
		phase = -1
		for i, name := range r.Phases {
			if name == cmp.Or(f.phase, r.Phases[0]) {
				phase, id = i, id+"/"+name
			}
		}
		if phase < 0 {
			return calibrate.Case{}, "", fmt.Errorf("it has no phase %q; its phases are %s", f.phase, strings.Join(r.Phases, ", "))
		}
		var keep []measured.Request
		for _, q := range r.Load.Requests {
			if q.Phase <= phase {
				keep = append(keep, q)
			}
		}
		r.Load.Requests = keep
	}
	e, err := accuracy.Experiment(&r, "")
	return calibrate.Case{Run: r, Experiment: e, Phase: phase}, id, err
}
