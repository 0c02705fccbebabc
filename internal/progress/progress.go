// Package progress tells a person, or a program, how far a long verb is: one line on a
// terminal, a plain line now and then anywhere else, or JSON lines. It looks at the
// wall clock; nothing that it says is part of a result.
package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// State is how far a job is.
type State struct {
	Stage       string  // "simulating"
	Done, Total int     // of Unit; Total 0 = unknown
	Unit        string  // "simulations"
	Share       float64 // in [0, 1], where it is known finer than Done ÷ Total; 0 = take that
	Requests    int64   // simulated in this run
	Known       int     // of Done: not done now, but found
	Failed      int     // of Done
}

// Mode is how progress is shown.
type Mode int

// Modes.
const (
	Auto  Mode = iota // a line on a terminal, plain lines elsewhere
	Quiet             // nothing
	JSON              // one object per line
)

// How often each kind of line is written.
const (
	drawEvery  = 100 * time.Millisecond
	plainEvery = 10 * time.Second
	plainFirst = 5 * time.Second
	jsonEvery  = time.Second
	width      = 80 // of a terminal that does not say
)

// Meter shows the progress of one job. It is safe for concurrent use.
type Meter struct {
	mu    sync.Mutex
	w     io.Writer
	mode  Mode
	live  bool // a terminal
	now   func() time.Time
	begun time.Time

	state State
	stage time.Time // begin of the stage
	shown time.Time
	drawn bool // a line is on the terminal
	said  bool // plain or JSON lines were written
	ended bool
	stop  chan struct{} // ends Start's clock; nil = there is none
}

// New starts a meter on w, which is usually os.Stderr.
func New(w io.Writer, mode Mode) *Meter {
	m := &Meter{w: w, mode: mode, now: time.Now}
	if f, ok := w.(*os.File); ok && mode == Auto {
		m.live = term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	}
	m.begun = m.now()
	m.stage = m.begun
	return m
}

// Start is New with a clock: lines come in their time also while a job has nothing
// new to tell, such as during a long simulation. Done ends it.
func Start(w io.Writer, mode Mode) *Meter {
	m := New(w, mode)
	if mode == Quiet {
		return m
	}
	m.stop = make(chan struct{})
	go func() {
		tick := time.NewTicker(jsonEvery / 4)
		defer tick.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-tick.C:
				m.again()
			}
		}
	}()
	return m
}

// again shows the state as it is, if a line is due.
func (m *Meter) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.Stage != "" {
		m.show(m.now())
	}
}

// Update tells how far the job is.
func (m *Meter) Update(s State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if s.Stage != m.state.Stage && m.state.Stage != "" { // the first began with the job
		m.stage = now
	}
	m.state = s
	m.show(now)
}

// show writes a line if one is due.
func (m *Meter) show(now time.Time) {
	if m.ended || m.mode == Quiet {
		return
	}
	switch {
	case m.mode == JSON:
		if now.Sub(m.shown) >= jsonEvery {
			m.shown = now
			m.json(now, false)
		}
	case m.live:
		if now.Sub(m.shown) >= drawEvery {
			m.shown = now
			m.draw(now)
		}
	default:
		wait := plainEvery
		if !m.said {
			wait = plainFirst
		}
		if now.Sub(later(m.shown, m.begun)) >= wait {
			m.shown, m.said = now, true
			fmt.Fprintln(m.w, "sim: "+m.text(now))
		}
	}
}

// Say writes a message without disturbing the line; as JSON it is an object, too.
func (m *Meter) Say(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.mode == JSON:
		m.write(map[string]string{"message": text})
	case m.drawn:
		fmt.Fprintf(m.w, "\r\x1b[Ksim: %s\n", text)
		m.draw(m.now())
	default:
		fmt.Fprintln(m.w, "sim: "+text)
	}
}

// Done ends the meter: the line goes, JSON gets its last object.
func (m *Meter) Done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return
	}
	m.ended = true
	if m.stop != nil {
		close(m.stop)
	}
	switch {
	case m.mode == JSON:
		m.json(m.now(), true)
	case m.drawn:
		fmt.Fprint(m.w, "\r\x1b[K")
		m.drawn = false
	case m.said:
		fmt.Fprintln(m.w, "sim: "+m.text(m.now()))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (m *Meter) draw(now time.Time) {
	columns := width
	if f, ok := m.w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			columns = n
		}
	}
	m.drawn = true
	fmt.Fprint(m.w, "\r"+cut(m.line(now), columns-1)+"\x1b[K")
}

// line is what stands on a terminal.
func (m *Meter) line(now time.Time) string {
	const cells = 20
	text := m.state.Stage
	if s := m.share(); !math.IsNaN(s) {
		full := int(s*cells + .5)
		text += " " + strings.Repeat("█", full) + strings.Repeat("░", cells-full)
	}
	return text + " " + strings.Join(m.parts(now), "  ")
}

// text is the same for a log.
func (m *Meter) text(now time.Time) string {
	if parts := m.parts(now); len(parts) > 0 {
		return m.state.Stage + ": " + strings.Join(parts, ", ")
	}
	return m.state.Stage
}

func (m *Meter) parts(now time.Time) []string {
	s := m.state
	var out []string
	switch {
	case s.Total > 0:
		out = append(out, fmt.Sprintf("%d of %d %s", s.Done, s.Total, s.Unit))
	case s.Share > 0:
		out = append(out, fmt.Sprintf("%.0f %%", 100*s.Share))
	case s.Done > 0:
		out = append(out, fmt.Sprintf("%d %s", s.Done, s.Unit))
	}
	if s.Known > 0 {
		out = append(out, fmt.Sprintf("%d known", s.Known))
	}
	if s.Failed > 0 {
		out = append(out, fmt.Sprintf("%d failed", s.Failed))
	}
	if s.Requests > 0 {
		out = append(out, compact(float64(s.Requests))+" requests")
		if v := m.speed(now); v > 0 {
			out = append(out, compact(v)+"/s")
		}
	}
	if rest := m.eta(now); rest > 0 {
		out = append(out, span(rest)+" left")
	}
	return out
}

// share is the part that is done; NaN = unknown.
func (m *Meter) share() float64 {
	s := m.state
	switch {
	case s.Share > 0:
		return min(1, s.Share)
	case s.Total > 0:
		return min(1, float64(s.Done)/float64(s.Total))
	}
	return math.NaN()
}

// speed is requests per second since the beginning; 0 = too early to say.
func (m *Meter) speed(now time.Time) float64 {
	if s := now.Sub(m.begun).Seconds(); s >= 1 {
		return float64(m.state.Requests) / s
	}
	return 0
}

// eta is how long the stage takes from now on, at its speed so far; what was found
// cost no time. 0 = unknown.
func (m *Meter) eta(now time.Time) time.Duration {
	took, s := now.Sub(m.stage), m.state
	share := m.share()
	if took < time.Second || math.IsNaN(share) || share >= 1 {
		return 0
	}
	done, all := share, 1.0
	if s.Share == 0 {
		done, all = float64(s.Done-s.Known), float64(s.Total-s.Known)
	}
	if done <= .01*all && done < 1 {
		return 0
	}
	return time.Duration(float64(took) * (all - done) / done)
}

// object is a JSON line.
type object struct {
	Stage    string   `json:"stage"`
	Done     int      `json:"done"`
	Total    int      `json:"total"` // 0 = unknown
	Unit     string   `json:"unit,omitempty"`
	Share    *float64 `json:"share"`
	Requests int64    `json:"requests"`
	Speed    float64  `json:"requests_per_s"`
	ETA      *float64 `json:"eta_s"` // null = unknown
	Known    int      `json:"known"`
	Failed   int      `json:"failed"`
	Elapsed  float64  `json:"elapsed_s"`
	Finished bool     `json:"finished"`
}

func (m *Meter) json(now time.Time, finished bool) {
	s := m.state
	o := object{Stage: s.Stage, Done: s.Done, Total: s.Total, Unit: s.Unit, Requests: s.Requests, Speed: round(m.speed(now)),
		Known: s.Known, Failed: s.Failed, Elapsed: round(now.Sub(m.begun).Seconds()), Finished: finished}
	if v := m.share(); !math.IsNaN(v) {
		v = math.Round(1e4*v) / 1e4
		o.Share = &v
	}
	if d := m.eta(now); d > 0 {
		v := round(d.Seconds())
		o.ETA = &v
	}
	m.write(o)
}

func (m *Meter) write(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		return // strings and numbers; there is no other case
	}
	m.said = true
	fmt.Fprintf(m.w, "%s\n", line)
}

func round(v float64) float64 { return math.Round(10*v) / 10 }

// compact writes a large count with three significant digits: "1.43 M".
func compact(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " K"}} {
		if v >= .9995*u.size {
			v /= u.size
			digits := 2
			if v >= 9.995 {
				digits = 1
			}
			if v >= 99.95 {
				digits = 0
			}
			return fmt.Sprintf("%.*f%s", digits, v, u.name)
		}
	}
	return fmt.Sprintf("%.0f", v)
}

// span writes a time as people say it: "1m 20s".
func span(d time.Duration) string {
	d = max(time.Second, d.Round(time.Second))
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h >= 24:
		return fmt.Sprintf("%dd %dh", h/24, h%24)
	case h > 0:
		return fmt.Sprintf("%dh %dm", h, m)
	case m > 0:
		return fmt.Sprintf("%dm %ds", m, s)
	}
	return fmt.Sprintf("%ds", s)
}

// cut shortens a line to the columns of a terminal.
func cut(text string, columns int) string {
	r := []rune(text)
	if columns < 1 || len(r) <= columns {
		return text
	}
	return string(r[:columns-1]) + "…"
}
