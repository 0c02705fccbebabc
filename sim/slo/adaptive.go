package slo

import (
	"fmt"
	"strconv"

	"slosim/sim/clock"
)

// Adaptive moves an objective's threshold, within bounds that a person sets. A
// request is judged by the threshold that was in force when it was sent.
type Adaptive struct {
	By       string         // "budget", "traffic" or "feedback"
	Min, Max clock.Duration // of the threshold
	Every    clock.Duration // between looks; whole minutes
	Notice   clock.Duration // from the announcement until it is in force
	Step     float64        // relative size of an adjustment; by traffic the least that is announced

	// Low and High are, by budget, shares of it that are spent: below Low the
	// threshold is tightened, above High relaxed. By traffic they are requests per
	// second between which it goes from Min to Max. By feedback they are shares of
	// bad ratings: below Low it is relaxed, above High tightened.
	Low, High float64

	// By feedback: a share Voices of the users rate what they got, badly if it took
	// longer than Bearable or never came.
	Voices   float64        `json:",omitempty"`
	Bearable clock.Duration `json:",omitempty"`
}

// leastRatings are what a look at the feedback needs.
const leastRatings = 20

// Signal is what a controller looks at.
type Signal struct {
	Spent   float64 // share of the budget
	Rate    float64 // requests per second since the last look
	Ratings int64   // since the last look
	Bad     int64   // of Ratings
}

// Next returns the threshold after one that is in force, and why it changes; the
// reason is "" when it stays.
func (a *Adaptive) Next(now clock.Duration, s Signal) (clock.Duration, string) {
	to, why := now, ""
	scaled := func(f float64) clock.Duration { return a.bound(clock.Duration(float64(now) * f)) }
	switch a.By {
	case "budget":
		switch {
		case s.Spent < a.Low:
			to, why = scaled(1-a.Step), fmt.Sprintf("%s of the budget is spent, less than %s: tightened", pct(s.Spent), pct(a.Low))
		case s.Spent > a.High:
			to, why = scaled(1+a.Step), fmt.Sprintf("%s of the budget is spent, more than %s: relaxed", pct(s.Spent), pct(a.High))
		}
	case "traffic":
		part := min(max((s.Rate-a.Low)/(a.High-a.Low), 0), 1)
		to = a.bound(a.Min + clock.Duration(part*float64(a.Max-a.Min)))
		if d := to - now; float64(max(d, -d)) < a.Step*float64(now) {
			return now, ""
		}
		verb := "relaxed"
		if to < now {
			verb = "tightened"
		}
		why = fmt.Sprintf("%.3g requests/s since the last look, %s of the way from %.3g to %.3g: %s", s.Rate, pct(part), a.Low, a.High, verb)
	case "feedback":
		share := float64(s.Bad) / float64(max(1, s.Ratings))
		switch {
		case s.Ratings < leastRatings:
		case share > a.High:
			to, why = scaled(1-a.Step), fmt.Sprintf("%s of %d ratings are bad, more than %s: tightened", pct(share), s.Ratings, pct(a.High))
		case share < a.Low:
			to, why = scaled(1+a.Step), fmt.Sprintf("%s of %d ratings are bad, less than %s: relaxed", pct(share), s.Ratings, pct(a.Low))
		}
	}
	if to == now {
		return now, ""
	}
	return to, why
}

// bound keeps a threshold within the bounds, in whole milliseconds where these are.
func (a *Adaptive) bound(d clock.Duration) clock.Duration {
	if d > 10*clock.Millisecond {
		d = (d + clock.Millisecond/2) / clock.Millisecond * clock.Millisecond
	}
	return min(max(d, a.Min), a.Max)
}

// pct writes a share with three digits: "12.3 %".
func pct(v float64) string { return strconv.FormatFloat(100*v, 'g', 3, 64) + " %" }

// Adjustment is one change of a threshold.
type Adjustment struct {
	At, InForce clock.Time // announced; in force for requests sent from then on
	From, To    clock.Duration
	Reason      string
}
