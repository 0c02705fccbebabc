package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"slosim/internal/planner"
	"slosim/internal/report"
)

// planFlags are the flags that all planning verbs share.
type planFlags struct {
	queueFlags
	progressFlags
	out string
}

func (f *planFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.out, "out", "", "folder for the report (default out/NAME-"+cmd.Name()+")")
	f.queueFlags.add(cmd)
	f.progressFlags.add(cmd, "print only where the report is, and no progress")
}

// options returns how planning is carried out, and what ends it. The queue of a verb
// is told from others by the report's name.
func (f *planFlags) options(cmd *cobra.Command, name string) (planner.Options, func(), error) {
	m := f.meter(cmd.ErrOrStderr())
	q, closeQueue, err := f.open(cmd.Context(), name+"-"+cmd.Name(), m)
	if err != nil {
		return planner.Options{}, nil, err
	}
	o := planner.Options{Queue: q, Store: f.store, Progress: m.Update}
	return o, func() { m.Done(); closeQueue() }, nil
}

// study is what a planning verb found.
type study interface {
	Grids() []report.Grid
	Document(command string) *report.Document
	Markdown(io.Writer)
	JSON(io.Writer) error
}

// finish prints a study and writes its files.
func (f *planFlags) finish(cmd *cobra.Command, name string, s study, more map[string][]byte) error {
	if f.out == "" {
		f.out = filepath.Join("out", name+"-"+cmd.Name())
	}
	d := s.Document(replay(cmd, cmd.Flags().Args()))
	if err := report.WriteStudy(f.out, d, s.Markdown, s.JSON, more); err != nil {
		return &exit{exitInternal, err}
	}
	out := cmd.OutOrStdout()
	if !f.quiet {
		for _, g := range s.Grids() {
			g.Print(screen(out))
		}
	} else if d.Headline != "" {
		fmt.Fprintln(out, d.Headline)
	}
	fmt.Fprintf(out, "Report: %s\n", filepath.Join(f.out, "report.html"))
	return nil
}

// planFailure turns an error of the planner into an exit.
func planFailure(err error) error {
	if errors.Is(err, context.Canceled) {
		return &exit{exitInterrupted, errors.New("interrupted; what was simulated is remembered: the same command goes on from there")}
	}
	if planner.IsInput(err) {
		return &exit{exitInput, err}
	}
	return &exit{failure(err), err}
}

func newValidate() *cobra.Command {
	var f planFlags
	var claims string
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Put planner formulas to the test: each against a grid of simulations",
		Long: `Simulate a grid of scenarios and compare planner formulas with it, claim by claim:
error, GPUs and dollars too many or too few, whether the SLO holds at the formula's
answer, where it breaks and why.

Formulas are data: an expression, or a command that reads JSON and answers JSON.
The shipped ones: experiments/planner-formulas.toml.`,
		Example: "  sim validate experiments/planner-formulas.toml",
		Args: func(cmd *cobra.Command, args []string) error {
			if claims != "" && len(args) == 0 {
				return nil
			}
			return oneFile(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if claims != "" {
				return f.fieldClaims(cmd, claims)
			}
			file, err := planner.Load(args[0])
			if err != nil {
				return &exit{exitInput, err}
			}
			o, done, err := f.options(cmd, nameOf(args[0]))
			if err != nil {
				return err
			}
			r, err := planner.Validate(cmd.Context(), file, o)
			done()
			if err != nil {
				return planFailure(err)
			}
			return f.finish(cmd, nameOf(args[0]), r, nil)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&claims, "claims", "", "instead: simulate the claims of the field and write the page to this `file`")
	return cmd
}

// fieldClaims writes docs/claims.md.
func (f *planFlags) fieldClaims(cmd *cobra.Command, path string) error {
	o, done, err := f.options(cmd, "claims")
	if err != nil {
		return err
	}
	c, err := planner.TryFieldClaims(cmd.Context(), o)
	done()
	if err != nil {
		return planFailure(err)
	}
	var page bytes.Buffer
	c.Markdown(&page)
	if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
		return &exit{exitInternal, err}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Claims: %s\n", path)
	return nil
}

// nameOf is a file's name without folder and .toml.
func nameOf(path string) string {
	base := filepath.Base(path)
	if ext := filepath.Ext(base); ext == ".toml" {
		base = base[:len(base)-len(ext)]
	}
	return base
}

// flagError says what a flag takes.
func flagError(flag string, value any, allowed string) error {
	return &exit{exitInput, fmt.Errorf("--%s %v is out of range\n  allowed: %s", flag, value, allowed)}
}
