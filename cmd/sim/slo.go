package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"slosim/experiments"
	"slosim/internal/openslo"
	"slosim/internal/progress"
	"slosim/internal/promrules"
	"slosim/sim"
)

func newSLO() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "slo",
		Short: "Exchange SLOs: OpenSLO documents, Prometheus rules",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSLOExport(), newSLOImport())
	return cmd
}

type exportFlags struct {
	sets     []string
	format   string
	out      string
	selector string
	idle     bool
	progressFlags
}

func newSLOExport() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write the SLOs of an experiment as OpenSLO v1 or Prometheus rules",
		Long: `Write the SLOs of an experiment so that what was simulated is what is watched:
OpenSLO v1 documents, or Prometheus recording rules and multi-window burn-rate
alerts on vLLM's metrics.

Prometheus rules have an alarm on prompt lengths too, at the length from which on
the SLO breaks. To find it the experiment is run, unless --idle leaves it at what
an idle replica cannot do in time.`,
		Example: "  sim slo export prompt-growth --format openslo\n  sim slo export prompt-growth --format prometheus --selector 'model_name=\"chat\"' --out rules",
		Args:    oneFile(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return exportSLOs(cmd.Context(), args[0], f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	setFlag(cmd, &f.sets)
	cmd.Flags().StringVar(&f.format, "format", "openslo", "openslo or prometheus")
	cmd.Flags().StringVar(&f.out, "out", "", "folder to write to (default: standard output)")
	cmd.Flags().StringVar(&f.selector, "selector", "", "`labels` of the servers that are watched, such as model_name=\"chat\"")
	f.progressFlags.add(cmd, "no progress")
	cmd.Flags().BoolVar(&f.idle, "idle", false, "run nothing: take the length alarm from an idle replica")
	return cmd
}

func exportSLOs(ctx context.Context, file string, f exportFlags, stdout, stderr io.Writer) error {
	if f.format != "openslo" && f.format != "prometheus" {
		return &exit{exitInput, fmt.Errorf("--format %s is not known%s", f.format, choices(f.format, []string{"openslo", "prometheus"}, "openslo, prometheus"))}
	}
	if strings.ContainsAny(f.selector, "{}\n") {
		return &exit{exitInput, fmt.Errorf("--selector %s: leave the braces away\n  for example: --selector 'model_name=\"chat\"'", f.selector)}
	}
	e, p, err := experiments.Load(file, f.sets...)
	if err != nil {
		return &exit{exitInput, err}
	}
	warn(stderr, p)
	if len(e.SLOs) == 0 {
		return &exit{exitInput, fmt.Errorf("%s has no [[slo]]: there is nothing to export", file)}
	}
	var text bytes.Buffer
	name := e.Name + ".openslo.yaml"
	if f.format == "openslo" {
		list := make([]openslo.SLO, len(e.SLOs))
		for i, o := range e.SLOs {
			list[i] = openslo.SLO{Objective: o, Method: openslo.Occurrences}
		}
		err = openslo.Write(&text, list, f.selector)
	} else {
		name = e.Name + ".rules.yml"
		err = writeRules(ctx, &text, e, f, f.meter(stderr))
	}
	if err != nil {
		return err
	}
	if f.out == "" {
		_, err := stdout.Write(text.Bytes())
		return err
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return &exit{exitInput, err}
	}
	path := filepath.Join(f.out, name)
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		return &exit{exitInternal, err}
	}
	fmt.Fprintln(stdout, path)
	return nil
}

// writeRules finds the lengths at which objectives break, and writes the rules.
func writeRules(ctx context.Context, w io.Writer, e sim.Experiment, f exportFlags, m *progress.Meter) error {
	list := make([]promrules.Watched, len(e.SLOs))
	for i, o := range e.SLOs {
		list[i].Objective = o
	}
	if f.idle {
		lengths, err := sim.IdleLengths(e)
		if err != nil {
			return &exit{exitInput, err}
		}
		for i := range list {
			list[i].BreakLength, list[i].Why = lengths[i], "even an idle replica is too slow for them"
		}
	} else {
		result, err := runQuietly(ctx, e, m)
		if err != nil {
			return err
		}
		for i := range list {
			list[i].BreakLength, list[i].Why = result.BreakLength(i)
		}
	}
	rules, notes := promrules.Of(e.Name, f.selector, list)
	if err := rules.Write(w, notes); err != nil {
		return &exit{exitInternal, err}
	}
	return nil
}

// runQuietly runs an experiment with nothing but a progress line.
func runQuietly(ctx context.Context, e sim.Experiment, m *progress.Meter) (*sim.Result, error) {
	defer m.Done()
	result, err := sim.Run(ctx, e, sim.Options{Progress: func(u sim.Progress) {
		m.Update(progress.State{Stage: "simulating", Share: u.Done, Requests: u.Requests})
	}})
	switch {
	case ctx.Err() != nil:
		return nil, &exit{exitInterrupted, ctx.Err()}
	case err != nil:
		return nil, &exit{failure(err), err}
	}
	return result, nil
}

func newSLOImport() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE.yaml",
		Short: "Print OpenSLO v1 documents as [[slo]] tables",
		Long: `Print the SLOs of a file of OpenSLO v1 documents as [[slo]] tables, to be added to
an experiment. What a document says that a simulation does not follow is noted.`,
		Example: "  sim slo import chat.openslo.yaml >> experiments/chat.toml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("sim slo import needs one file of OpenSLO documents\n  for example: sim slo import chat.openslo.yaml")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return &exit{exitInput, err}
			}
			defer file.Close()
			list, notes, err := openslo.Read(file, args[0])
			if err != nil {
				return &exit{exitInput, err}
			}
			for _, n := range notes {
				fmt.Fprintln(cmd.ErrOrStderr(), "note: "+n)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), openslo.TOML(list))
			return err
		},
	}
}
