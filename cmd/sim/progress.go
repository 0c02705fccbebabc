package main

import (
	"io"

	"github.com/spf13/cobra"

	"slosim/internal/progress"
)

// progressFlags say how a long verb tells how far it is.
type progressFlags struct {
	quiet bool
	json  bool
}

// add adds the flags; quiet says what --quiet leaves.
func (f *progressFlags) add(cmd *cobra.Command, quiet string) {
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, quiet)
	cmd.Flags().BoolVar(&f.json, "json-progress", false, "progress as JSON, one object per line, on standard error")
}

// meter starts the progress line.
func (f *progressFlags) meter(stderr io.Writer) *progress.Meter {
	return progress.Start(stderr, f.mode())
}

func (f *progressFlags) mode() progress.Mode {
	switch {
	case f.json:
		return progress.JSON
	case f.quiet:
		return progress.Quiet
	}
	return progress.Auto
}
