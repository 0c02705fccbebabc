package review

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slosim/internal/report"
)

// Cause is one ablation: the change's world with one thing taken away, on the same
// random numbers.
type Cause struct {
	Name     string `json:"name"`
	What     string `json:"what"` // what was taken away, in words
	Bad      Number `json:"bad_share"`
	Burn     Number `json:"burn_rate"`
	P99      Number `json:"ttft_p99_s"`
	Explains Number `json:"explains"` // share of the added bad events that go; all of them together need not add up to 1
	Kind     string `json:"kind"`     // "with", "without", "ablation", "together", "bound"
}

// Lever is one way to mend what the change breaks, at the smallest dose found.
type Lever struct {
	Name      string     `json:"name"`
	Asks      string     `json:"asks"` // of whom: "platform", "product" or "business"
	Dose      string     `json:"dose"`
	Restores  []string   `json:"restores"` // objectives that the change breaks and this mends
	Misses    []string   `json:"misses"`   // and those that it does not
	Confirmed bool       `json:"confirmed"`
	Basis     string     `json:"confirmed_on"`
	GPUs      int        `json:"extra_gpus"`
	USD       Number     `json:"extra_usd_per_month"`
	Rejected  Number     `json:"rejected_share"`
	SLOs      []LeverSLO `json:"slos"`
	NewP99    Number     `json:"new_requests_ttft_p99_s"` // of the requests that the change makes or moves
	File      string     `json:"file"`                    // runnable TOML in the folder; "" = it cannot be written as one

	text string
	pass bool // every objective restored and confirmed
	shed bool
	rank int
	dose int
}

// LeverSLO is one objective under a lever.
type LeverSLO struct {
	Name     string `json:"name"`
	Bad      Number `json:"bad_share"`
	Quantile Number `json:"quantile_s"`
}

// Promise is what could be promised at a number of GPUs.
type Promise struct {
	Replicas int    `json:"extra_replicas"`
	GPUs     int    `json:"extra_gpus"`
	USD      Number `json:"extra_usd_per_month"`
	All      Number `json:"ttft_p99_all_s"`
	Existing Number `json:"ttft_p99_existing_s"`
	New      Number `json:"ttft_p99_new_s"`
}

// Exposure is what a canary would have shown.
type Exposure struct {
	Share   Number `json:"share"` // of the launch's own share
	SLO     string `json:"slo"`
	Bad     Number `json:"bad_share"`
	P99     Number `json:"ttft_p99_s"`
	NewP99  Number `json:"new_requests_ttft_p99_s"`
	Shows   string `json:"shows"` // "holds" or "breaks"
	Minutes Number `json:"minutes_to_tell"`
}

// advice is the recommendation in a sentence.
func (r *Review) advice() string {
	for _, l := range r.Levers {
		if l.Name == r.Recommended {
			price := "no further GPUs"
			if math.IsNaN(float64(l.USD)) {
				price = "price not known"
			} else if l.GPUs > 0 {
				price = fmt.Sprintf("%d GPUs more, %s per month", l.GPUs, money(float64(l.USD)))
			}
			return fmt.Sprintf("%s: %s. Asks the %s; %s. Tried on %s.", sentence(l.Name), l.Dose, l.Asks, price, l.Basis)
		}
	}
	if len(r.Levers) == 0 {
		return ""
	}
	for _, l := range r.Levers {
		if len(l.Restores) > 0 && !l.shed {
			return fmt.Sprintf("No lever tried restores everything. The best mends %s: %s, %s.", strings.Join(l.Restores, " and "), l.Name, l.Dose)
		}
	}
	return "None of the levers that were tried restores what the change breaks."
}

func (r *Review) causeGrid() report.Grid {
	g := report.Grid{Caption: "Why: one thing taken away at a time, " + r.Hours, Left: 2, Head: []string{"world", "what differs", "explains", "TTFT P99", "bad share", "burn rate"}}
	for _, c := range r.Causes {
		explains := percent(math.Round(float64(c.Explains)*1000) / 1000)
		if c.Kind == "with" || c.Kind == "without" || math.IsNaN(float64(c.Explains)) {
			explains = ""
		}
		g.Rows = append(g.Rows, []string{c.Name, c.What, explains, secs(c.P99), percent(float64(c.Bad)), burn(float64(c.Burn))})
	}
	g.Notes = []string{"Explains: the share of the bad requests added by the change that go with what was taken away. The shares overlap where causes act together, so they need not add up to 100 %."}
	return g
}

func (r *Review) leverGrid() report.Grid {
	g := report.Grid{Caption: "What to do: smallest doses that suffice, " + r.Hours, Left: 4, Head: []string{"lever", "dose", "restores", "asks", "extra per month", "bad share", "new requests' P99", "rejected", "TOML"}}
	for _, l := range r.Levers {
		var bad []string
		for _, s := range l.SLOs {
			bad = append(bad, percent(float64(s.Bad)))
		}
		restores := "all"
		switch {
		case len(l.Restores) == 0:
			restores = "nothing"
		case len(l.Misses) > 0:
			restores = "only " + strings.Join(l.Restores, ", ")
		}
		switch {
		case l.shed && len(l.Restores) > 0:
			restores += ", of the answered requests; no PASS"
		case len(l.Restores) > 0 && l.Confirmed:
			restores += ": PASS"
		case len(l.Restores) > 0:
			restores += ", not confirmed"
		}
		rejected := ""
		if l.Rejected >= 0.0005 { // not the few over-long prompts
			rejected = percent(float64(l.Rejected))
		}
		g.Rows = append(g.Rows, []string{l.Name, l.Dose, restores, l.Asks, money(float64(l.USD)), strings.Join(bad, ", "), secs(l.NewP99), rejected, l.File})
	}
	var names []string
	for _, s := range r.SLOs {
		names = append(names, s.Name)
	}
	g.Notes = []string{"Bad shares in order of the objectives (" + strings.Join(names, "; ") + "). PASS: confirmed on fresh seeds of the same hours; the recommended one in full."}
	return g
}

func (r *Review) promiseGrid() report.Grid {
	g := report.Grid{Caption: "What could be promised instead, and its price: TTFT P99, " + r.Hours, Left: 1, Head: []string{"replicas", "extra per month", "all requests", "existing", "new"}}
	for _, p := range r.Promises {
		g.Rows = append(g.Rows, []string{fmt.Sprintf("+%d", p.Replicas), money(float64(p.USD)), secs(p.All), secs(p.Existing), secs(p.New)})
	}
	if text := r.promiseText(); text != "" {
		g.Notes = []string{text}
	}
	return g
}

// promiseText prices whole seconds: what the new requests could be promised for 99 %
// of them.
func (r *Review) promiseText() string {
	if len(r.Promises) == 0 || math.IsNaN(float64(r.Promises[0].New)) || math.IsInf(float64(r.Promises[0].New), 0) {
		return ""
	}
	var said []string
	top := math.Ceil(float64(r.Promises[0].New))
	for t := top; t >= 1 && t > top-6; t-- {
		text := fmt.Sprintf("%g s is out of reach of %s more", t, plural(r.Promises[len(r.Promises)-1].Replicas, "replica"))
		for _, p := range r.Promises {
			if float64(p.New) <= t {
				text = fmt.Sprintf("%g s costs %s per month (+%s)", t, money(float64(p.USD)), plural(p.Replicas, "replica"))
				if p.Replicas == 0 {
					text = fmt.Sprintf("%g s costs nothing", t)
				}
				break
			}
		}
		if said = append(said, text); strings.Contains(text, "out of reach") {
			break
		}
	}
	return "A P99 promised to the new requests alone: " + strings.Join(said, "; ") + "."
}

// leverLines list the levers for a terminal, which is too narrow for their table.
func (r *Review) leverLines() []string {
	out := []string{"What to do: smallest doses that suffice, " + r.Hours}
	for i, row := range r.leverGrid().Rows {
		l := &r.Levers[i]
		line := fmt.Sprintf("  %-22s %s. Restores %s. %s, %s per month. Bad shares %s.", row[0], row[1], row[2], sentence(l.Asks), row[4], row[5])
		if row[7] != "" {
			line += " Rejects " + row[7] + "."
		}
		if l.File != "" {
			line += " " + l.File
		}
		out = append(out, line)
	}
	return out
}

func (r *Review) canaryGrid() report.Grid {
	g := report.Grid{Caption: "What a canary would have shown, " + r.Hours, Left: 2, Head: []string{"exposure", "objective", "bad share", "TTFT P99", "new requests' P99", "shows", "minutes to tell"}}
	for _, c := range r.Canary {
		g.Rows = append(g.Rows, []string{percent(float64(c.Share)), c.SLO, percent(float64(c.Bad)), secs(c.P99), secs(c.NewP99), c.Shows, report.Number(float64(c.Minutes))})
	}
	g.Notes = []string{"Exposure: of the launch's own share. Minutes to tell: until a 95 % binomial interval of the bad share, at these hours' rate, excludes what the objective allows; neighbouring requests are not independent, so that is a lower bound."}
	return g
}

// order ranks levers: those that restore most, then what they cost, then whom they
// ask.
func order(list []Lever) {
	slices.SortStableFunc(list, func(a, b Lever) int {
		for _, d := range []float64{
			float64(score(b) - score(a)), price(a) - price(b), float64(asks[a.Asks] - asks[b.Asks]), float64(a.rank - b.rank),
		} {
			if d != 0 {
				return int(math.Copysign(1, d))
			}
		}
		return 0
	})
}

// price ranks levers by cost; an unknown one stands behind all others.
func price(l Lever) float64 {
	if math.IsNaN(float64(l.USD)) {
		return 1e15
	}
	return float64(l.USD)
}

var asks = map[string]int{"platform": 0, "product": 1, "business": 2}

// score counts what a lever restores; one that sheds load stands below all others.
func score(l Lever) int {
	s := 2 * len(l.Restores)
	if l.Confirmed {
		s++
	}
	if l.shed || len(l.Restores) == 0 {
		s = 0
	}
	return s
}
