package planner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"time"
)

// maxAnswer bounds what is read of an external planner's answer, in bytes.
const maxAnswer = 1 << 20

// question is what an external planner reads on its standard input.
type question struct {
	Scenario string `json:"scenario"`
	Claims   string `json:"claims"`
	Inputs   Inputs `json:"inputs"`
}

// ask gives an external planner the inputs of a scenario and returns the field of
// its answer. The error says what went wrong with the planner in this scenario.
func (f *Formula) ask(ctx context.Context, dir, scenario string, in Inputs) (float64, error) {
	all := Inputs{}
	for _, m := range []Inputs{in, f.Constants} {
		for k, v := range m {
			if !math.IsNaN(v) && !math.IsInf(v, 0) { // JSON has neither
				all[k] = v
			}
		}
	}
	text, err := json.Marshal(question{scenario, f.Claims, all})
	if err != nil {
		return 0, err
	}
	limit := time.Duration(f.Timeout * float64(time.Second))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.Command[0], f.Command[1:]...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(text)
	cmd.WaitDelay = time.Second // for what its children keep open; what it wrote itself is there
	var stdout, stderr bounded
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return 0, fmt.Errorf("%s: no answer within %v: %w", f.Command[0], limit, errTimeout)
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return 0, fmt.Errorf("%s: %w%s", strings.Join(f.Command, " "), err, lastLine(stderr.b.String()))
	}
	return answer(stdout.b.Bytes(), f.Field)
}

var errTimeout = errors.New("timed out")

// answer reads the field of a planner's JSON.
func answer(text []byte, field string) (float64, error) {
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return 0, fmt.Errorf("the answer is no JSON object: %w; it begins with %q", err, begin(text))
	}
	v, ok := fields[field]
	if !ok {
		return 0, fmt.Errorf("the answer has no %q; it has %s", field, strings.Join(sortedNames(fields), ", "))
	}
	n, ok := v.(float64)
	if !ok {
		return 0, fmt.Errorf("%q of the answer is no number: %v", field, v)
	}
	return n, nil
}

func begin(text []byte) string {
	if len(text) > 60 {
		text = text[:60]
	}
	return string(text)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + last
	}
	return ""
}

// bounded keeps the first maxAnswer bytes.
type bounded struct{ b bytes.Buffer }

func (w *bounded) Write(p []byte) (int, error) {
	if room := maxAnswer - w.b.Len(); room > 0 {
		w.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
