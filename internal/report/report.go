package report

import (
	"fmt"

	"slosim/internal/accuracy"
	"slosim/internal/config"
	"slosim/sim"
)

// Meta is what a report needs beside the result.
type Meta struct {
	Version    string             // of the simulator
	Command    string             // that replays the run
	Provenance *config.Provenance // where each setting came from; may be nil
	Measured   *Overlay           // a measured result to lay over the charts; may be nil
	Bands      []accuracy.Band    // how far the model was off in validation; nil says nothing about it
}

// Write puts the run's files into dir: report.html, summary.json, summary.md,
// timeseries.csv and timeseries-pools.csv. They are written aside and renamed,
// so that nothing is ever half-written; an existing dir is replaced only if it
// is empty or the output of an earlier run.
func Write(dir string, r *sim.Result, m Meta) error {
	s := newStory(r, m)
	var files []file
	for _, out := range []struct {
		name   string
		render func(*story) ([]byte, error)
	}{
		{"report.html", page},
		{"summary.json", summaryJSON},
		{"summary.md", summaryMarkdown},
		{"timeseries.csv", classCSV},
		{"timeseries-pools.csv", poolCSV},
	} {
		data, err := out.render(s)
		if err != nil {
			return fmt.Errorf("report: %s: %w", out.name, err)
		}
		files = append(files, file{out.name, data})
	}
	return replace(dir, files)
}
