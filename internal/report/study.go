package report

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"slosim/sim/clock"
)

// WriteStudy puts the files of a study of many runs into dir, as Write does for one
// run: report.html, summary.md, summary.json and more.
func WriteStudy(dir string, d *Document, markdown func(io.Writer), json func(io.Writer) error, more map[string][]byte) error {
	page, err := d.HTML()
	if err != nil {
		return err
	}
	var text, data bytes.Buffer
	markdown(&text)
	if err := json(&data); err != nil {
		return fmt.Errorf("report: summary.json: %w", err)
	}
	files := []file{{"report.html", page}, {"summary.md", text.Bytes()}, {"summary.json", data.Bytes()}}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		files = append(files, file{name, more[name]})
	}
	return replace(dir, files)
}

// Count redraws the line for a job of many simulations. It is called from one
// goroutine at a time.
func (p *Progress) Count(stage string, done, total int, requests int64) {
	now := time.Now()
	if stage != p.stage {
		p.stage, p.stageBegun = stage, now
	}
	if !p.live || now.Sub(p.drawn) < progressEvery && done < total {
		return
	}
	p.drawn = now
	columns, _, err := term.GetSize(int(p.f.Fd()))
	if err != nil || columns <= 0 {
		columns = defaultWidth
	}
	const cells = 16
	full := done * cells / max(1, total)
	line := fmt.Sprintf("%s %s%s %d of %d  %s requests", stage, strings.Repeat("█", full), strings.Repeat("░", cells-full), done, total, compact(float64(requests)))
	if s := now.Sub(p.stageBegun).Seconds(); s > 1 && done > 0 && done < total {
		rest := s * float64(total-done) / float64(done)
		line += "  " + span(clock.FromSeconds(float64(int(rest+.5)))) + " left"
	}
	fmt.Fprint(p.f, "\r"+fit(line, columns-1)+"\x1b[K")
}
