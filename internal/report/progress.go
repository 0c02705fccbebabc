package report

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"slosim/sim"
	"slosim/sim/clock"
)

// progressEvery bounds how often the line is drawn.
const progressEvery = 100 * time.Millisecond

// Progress is a line on a terminal that tells how far a run is. On anything but
// a terminal it is silent. It is the only reader of the wall clock in a run.
type Progress struct {
	f     *os.File
	live  bool
	begun time.Time
	drawn time.Time

	stage      string // of Count
	stageBegun time.Time
}

// NewProgress starts a progress line on f, which is usually os.Stderr.
func NewProgress(f *os.File) *Progress {
	return &Progress{f: f, live: f != nil && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb", begun: time.Now()}
}

// Update redraws the line. It is called from one goroutine at a time.
func (p *Progress) Update(u sim.Progress) {
	now := time.Now()
	if !p.live || now.Sub(p.drawn) < progressEvery {
		return
	}
	p.drawn = now
	columns, _, err := term.GetSize(int(p.f.Fd()))
	if err != nil || columns <= 0 {
		columns = defaultWidth
	}
	fmt.Fprint(p.f, "\r"+fit(progressLine(u, now.Sub(p.begun)), columns-1)+"\x1b[K")
}

// Done clears the line.
func (p *Progress) Done() {
	if p.live && !p.drawn.IsZero() {
		fmt.Fprint(p.f, "\r\x1b[K")
	}
	p.live = false
}

// progressLine writes the line after a run of the given wall time.
func progressLine(u sim.Progress, elapsed time.Duration) string {
	const cells = 24
	done := max(0, min(1, u.Done))
	full := int(done*cells + .5)
	line := fmt.Sprintf("simulating %s%s %3.0f %%  %s requests", strings.Repeat("█", full), strings.Repeat("░", cells-full), 100*done, compact(float64(u.Requests)))
	s := elapsed.Seconds()
	if s < 1 {
		return line
	}
	line += fmt.Sprintf("  %s/s", compact(float64(u.Requests)/s))
	if done > .01 {
		rest := s * (1 - done) / done
		line += "  " + span(clock.FromSeconds(float64(int(rest+.5)))) + " left"
	}
	return line
}

// compact writes a large count with three significant digits: "1.43 M".
func compact(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " K"}} {
		if v >= u.size {
			return number(v/u.size, decimals(v/u.size, 0)) + u.name
		}
	}
	return number(v, 0)
}
