package main

import (
	"bytes"
	"context"
	"encoding/json"
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
	"slosim/internal/measured"
	"slosim/internal/progress"
)

// accuracyFlags are the flags of sim accuracy.
type accuracyFlags struct {
	calibration string
	out         string
	sources     []string
	only        string
	all         bool
	update      bool
	progressFlags
}

func newAccuracy() *cobra.Command {
	var f accuracyFlags
	cmd := &cobra.Command{
		Use:   "accuracy DIR",
		Short: "Replay measured runs and compare: signed errors of every run",
		Long: `Replay every measured run under DIR in the simulator and compare. Nothing is
fitted: constants come from the catalogue, or from --calibration. A run that
cannot be simulated is listed with the reason.

Tables are recognised by their columns, whatever their names: requests one by one
(residency, replay16), closed-loop tables (inferencex, nim), steady batches
(mlenergy), saturation (trtllm). Results of vllm bench serve, guidellm, AIPerf and
plain CSV files are for sim calibrate and sim run --measured.

accuracy.json (every row with both figures) and validation.md go to --out.`,
		Example: "  sim accuracy ../shared/data\n  sim accuracy ../shared/data --source residency --all",
		Args:    oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			return compare(cmd.Context(), args[0], f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.calibration, "calibration", "", "calibration file of sim calibrate, instead of the catalogue's constants")
	cmd.Flags().StringVar(&f.out, "out", filepath.Join("out", "accuracy"), "folder for accuracy.json and validation.md")
	cmd.Flags().StringSliceVar(&f.sources, "source", nil, "only these layouts, for example residency,nim")
	cmd.Flags().StringVar(&f.only, "only", "", "only runs whose name or group contains this `text`")
	cmd.Flags().BoolVar(&f.all, "all", false, "print every run, not only groups")
	cmd.Flags().BoolVar(&f.update, "update", false, "also rewrite docs/validation.md and internal/accuracy/bands.json of this repository")
	f.progressFlags.add(cmd, "print only the goals")
	return cmd
}

// oneFolder wants the folder of measurements as the only argument.
func oneFolder(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs one folder of measurements\n  for example: %s ../shared/data", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// compare reads, simulates, prints and writes.
func compare(ctx context.Context, dir string, f accuracyFlags, stdout, stderr io.Writer) error {
	folder, err := measured.ReadFolder(dir)
	if err != nil {
		return &exit{exitInput, err}
	}
	engine := ""
	if f.calibration != "" {
		if engine, err = experiments.CalibrationEngine(f.calibration); err != nil {
			return &exit{exitInput, err}
		}
	}
	for _, fault := range folder.Errors {
		fmt.Fprintln(stderr, "sim: warning:", fault)
	}
	runs, err := chosen(folder.Runs, f)
	if err != nil {
		return &exit{exitInput, err}
	}
	o := accuracy.Options{Calibration: f.calibration, Engine: engine, Fitted: experiments.FittedOn}
	m := f.meter(stderr)
	o.Progress = func(done int) {
		m.Update(progress.State{Stage: "replaying", Done: done, Total: len(runs), Unit: "runs"})
	}
	o.Progress(0)
	rows, err := accuracy.Compare(ctx, runs, o)
	m.Done()
	if errors.Is(err, context.Canceled) {
		return &exit{exitInterrupted, errors.New("interrupted; nothing is written")}
	}
	r := &accuracy.Report{Version: versionText(), Command: "sim accuracy " + filepath.ToSlash(dir), Calibration: f.calibration,
		Rows: rows, Bars: accuracy.Judge(rows), Bands: accuracy.Bands(rows), Notes: notes(runs), Ignored: folder.Ignored}
	for _, fault := range folder.Errors {
		r.Faults = append(r.Faults, fault.Error())
	}
	written := writeAccuracy(r, f)
	if f.quiet {
		r.Rows = nil
	}
	r.WriteTerminal(stdout, f.all)
	if written != nil {
		return &exit{exitInternal, written}
	}
	fmt.Fprintf(stdout, "\nEvery row: %s\n", filepath.Join(f.out, "accuracy.json"))
	return nil
}

// chosen returns the runs that the flags leave.
func chosen(runs []measured.Run, f accuracyFlags) ([]measured.Run, error) {
	var have []string
	var out []measured.Run
	for _, r := range runs {
		if !slices.Contains(have, r.Source) {
			have = append(have, r.Source)
		}
		if (len(f.sources) == 0 || slices.Contains(f.sources, r.Source)) && strings.Contains(r.Source+" "+r.Group+" "+r.Name, f.only) {
			out = append(out, r)
		}
	}
	for _, s := range f.sources {
		if !slices.Contains(have, s) {
			return nil, fmt.Errorf("--source %s: the folder has no such runs%s", s, choices(s, have, strings.Join(have, ", ")))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--only %q leaves none of the %d runs", f.only, len(runs))
	}
	return out, nil
}

// notes lists the assumptions about the runs, each once.
func notes(runs []measured.Run) []string {
	var list []string
	for _, r := range runs {
		for _, n := range r.Notes {
			if n = r.Source + ": " + n; !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
	}
	return list
}

// writeAccuracy writes the files of a comparison.
func writeAccuracy(r *accuracy.Report, f accuracyFlags) error {
	var rows, page bytes.Buffer
	if err := r.WriteJSON(&rows); err != nil {
		return err
	}
	r.WritePage(&page)
	files := map[string][]byte{filepath.Join(f.out, "accuracy.json"): rows.Bytes(), filepath.Join(f.out, "validation.md"): page.Bytes()}
	if f.update {
		bands, err := json.MarshalIndent(r.Bands, "", " ")
		if err != nil {
			return err
		}
		files[filepath.Join("docs", "validation.md")] = page.Bytes()
		files[filepath.Join("internal", "accuracy", "bands.json")] = append(bands, '\n')
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return err
	}
	for path, text := range files {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
