package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"slosim/internal/report"
	"slosim/sim"
	"slosim/sim/clock"
)

// quick cuts an experiment down to its busiest two hours, and says so wherever it
// shows.
func quick(e sim.Experiment) (sim.Experiment, error) {
	full := e.Duration
	short, at, err := sim.Quick(e)
	switch {
	case errors.Is(err, sim.ErrNoQuick):
		return e, fmt.Errorf("--quick: %w\n  try --set duration=2h --set replications=1", err)
	case err != nil:
		return e, err
	}
	label := "quick: one replication"
	if short.Duration < full {
		label = fmt.Sprintf("quick: the busiest two hours, from %s on, one replication", clock.Time(at).DayHour(e.Start))
	}
	short.Title += " (" + label + ")"
	short.Name += "-quick"
	short.Assumptions = append([]string{"This is a " + label + ": budgets and dates of the full run need the full run."}, short.Assumptions...)
	return short, nil
}

// watchPoll is how often a watched file is looked at.
const watchPoll = 500 * time.Millisecond

// watch runs again whenever the experiment file is saved, until interrupted.
func watch(ctx context.Context, file string, stderr io.Writer, run func() error) error {
	if _, err := os.Stat(file); err != nil {
		return &exit{exitInput, fmt.Errorf("--watch %s: there is no such file to watch\n  save the experiment to a file first", file)}
	}
	for {
		before := stamp(file)
		if err := run(); err != nil {
			if ctx.Err() != nil {
				return err
			}
			if err.Error() != "" {
				fmt.Fprintln(stderr, "sim: error:", err)
			}
		}
		fmt.Fprintf(stderr, "\nwatching %s (Ctrl-C ends it)\n", file)
		for stamp(file) == before {
			select {
			case <-ctx.Done():
				return &exit{code: exitInterrupted}
			case <-time.After(watchPoll):
			}
		}
	}
}

// stamp tells one state of a file from another.
func stamp(file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

// rowsOf opens the file of --requests; nil without it.
func rowsOf(f runFlags, e *sim.Experiment) (*report.Rows, error) {
	if f.requests == "" {
		return nil, nil
	}
	return report.NewRows(f.requests, e)
}
