package accuracy

import (
	"cmp"
	"slices"

	"slosim/internal/measured"
)

// fullPhases marks the phases in which as many requests were in flight at once as
// the engine may run. span returns when a request was with the engine.
func fullPhases(run *measured.Run, span func(i int) (from, to float64, ok bool), out map[int]bool) map[int]bool {
	type event struct {
		at    float64
		delta int
		phase int
	}
	var events []event
	for i, q := range run.Load.Requests {
		if from, to, ok := span(i); ok {
			events = append(events, event{from, 1, q.Phase}, event{to, -1, q.Phase})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.delta, b.delta)) })
	n := 0
	for _, e := range events {
		if n += e.delta; n >= run.Setup.MaxSeqs && e.delta > 0 {
			out[e.phase] = true
		}
	}
	return out
}

// unevenPrompts is a coefficient of variation of the prompt lengths above which a
// run counts as a mix of lengths.
const unevenPrompts = 0.3

// mixOf tells whether a run's prompts are of about one length ("even") or of
// several ("mixed").
func mixOf(run *measured.Run) string {
	var n, sum, squares float64
	for _, q := range run.Load.Requests {
		n++
		sum += float64(q.Prompt)
		squares += float64(q.Prompt) * float64(q.Prompt)
	}
	if n > 0 && squares/n-(sum/n)*(sum/n) > unevenPrompts*unevenPrompts*(sum/n)*(sum/n) {
		return "mixed"
	}
	return "even"
}
