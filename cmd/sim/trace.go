package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"slosim/internal/config"
	"slosim/internal/report"
	"slosim/internal/traffic"
	"slosim/sim/clock"
	"slosim/workloads"
)

// traceFlags are how a trace is read, as in the table trace of [[traffic]].
type traceFlags struct {
	spec      workloads.Trace
	unit      string
	fit, html string
}

func newTrace() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace FILE",
		Short: "Say what is in a trace, or fit traffic to it",
		Long: `Say what is in a file of requests: span, rate, gaps, dispersion, lengths, prefix
reuse. The format is recognised: Azure, BurstGPT, Mooncake, AIPerf, guidellm,
vllm bench, Parquet, JSON lines, CSV; plain, gzip or zstd. The file is streamed.

With --fit it writes a [[traffic]] table whose simulated traffic looks like the
trace, and shows how well it matches.`,
		Example: "  sim trace requests.csv.gz --arrival ts --prompt in --output out --unit 1ms\n  sim trace conversation.jsonl --html conversation.html\n  sim trace AzureLLMInferenceTrace_conv.csv --fit azure.toml",
		Args:    oneTrace,
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.spec.Format, "format", "", "`format` of the file, if it is not recognised")
	flags.StringVar(&f.spec.Arrival, "arrival", "", "`column` of the arrival (csv, jsonl, parquet)")
	flags.StringVar(&f.spec.Prompt, "prompt", "", "`column` of the prompt tokens")
	flags.StringVar(&f.spec.Output, "output", "", "`column` of the output tokens")
	flags.StringVar(&f.unit, "unit", "", "`unit` of the time stamps, such as 1ms")
	flags.Int32Var(&f.spec.Block, "block", 0, "mooncake: `tokens` that an id stands for (default 512)")
	flags.StringVar(&f.spec.Where.Column, "where", "", "only rows whose `column` has the value --is")
	flags.StringVar(&f.spec.Where.Is, "is", "", "the `value` of the column --where")
	flags.Int64Var(&f.spec.SkipBad, "skip-bad", 0, "pass over up to `N` broken rows, and count them")
	flags.StringVar(&f.fit, "fit", "", "write [[traffic]] that looks like the trace to this `file`")
	flags.StringVar(&f.html, "html", "", "write a page with charts to this `file`; it works offline")
	return cmd
}

func oneTrace(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return fmt.Errorf("sim trace needs a file of requests\n  for example: sim trace requests.csv.gz")
	case len(args) > 1:
		return fmt.Errorf("sim trace: %q is one argument too many\n  usage: %s", args[1], cmd.UseLine())
	}
	return nil
}

func (f *traceFlags) run(cmd *cobra.Command, file string) error {
	spec, err := f.resolve(file)
	if err != nil {
		return &exit{exitInput, err}
	}
	a, about, err := traffic.Trace(spec)
	if err != nil {
		return &exit{exitInput, fmt.Errorf("%w\n  %s", err, workloads.Expected(spec))}
	}
	v := &traffic.View{Spec: spec, About: about, A: a}
	if f.fit != "" {
		fit, err := traffic.NewFit(spec, a)
		if err != nil {
			return &exit{exitInput, err}
		}
		if v.Fit, err = fit.Goodness(a); err != nil {
			return &exit{exitInternal, err}
		}
		if err := os.WriteFile(f.fit, []byte(fit.TOML()), 0o644); err != nil {
			return &exit{exitInternal, fmt.Errorf("the fit cannot be written: %w", err)}
		}
	}
	out := cmd.OutOrStdout()
	for _, g := range v.Grids() {
		g.Print(screen(out))
	}
	if f.fit != "" {
		fmt.Fprintf(out, "%s has the fitted [[traffic]]\n", f.fit)
	}
	return writePage(cmd, f.html, v.Document(commandLine(os.Args[1:])))
}

// resolve fills in the format, and what of columns and unit it leaves open.
func (f *traceFlags) resolve(file string) (workloads.Trace, error) {
	spec := f.spec
	spec.File = file
	if spec.Format == "" {
		var err error
		if spec.Format, err = workloads.DetectFormat(file); err != nil {
			return spec, err
		}
	}
	given := spec
	spec.SetDefaults()
	for _, c := range []struct {
		flag      string
		have, set *string
	}{{"arrival", &given.Arrival, &spec.Arrival}, {"prompt", &given.Prompt, &spec.Prompt}, {"output", &given.Output, &spec.Output}} {
		switch {
		case *c.have == "":
		case !workloads.HasColumns(spec.Format):
			return spec, fmt.Errorf("--%s has no meaning here: the columns of the format %q are fixed", c.flag, spec.Format)
		default:
			*c.set = *c.have
		}
	}
	if given.Block > 0 {
		spec.Block = given.Block
	}
	if f.unit != "" {
		unit, err := config.Span.Parse(f.unit)
		if err != nil || unit <= 0 || unit > clock.Day {
			return spec, fmt.Errorf("--unit %s is no unit of time\n  for example: --unit 1ms", f.unit)
		}
		if !workloads.HasUnit(spec.Format) {
			return spec, fmt.Errorf("--unit has no meaning here: the unit of the format %q is fixed", spec.Format)
		}
		spec.Unit = unit
	}
	return spec, nil
}

// writePage writes a document's page, if a file is named.
func writePage(cmd *cobra.Command, file string, d *report.Document) error {
	if file == "" {
		return nil
	}
	page, err := d.HTML()
	if err != nil {
		return &exit{exitInternal, err}
	}
	if err := os.WriteFile(file, page, 0o644); err != nil {
		return &exit{exitInternal, fmt.Errorf("the page cannot be written: %w", err)}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s has the charts\n", file)
	return nil
}
