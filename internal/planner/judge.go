package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slosim/internal/report"
)

// Verdict is a formula over the whole grid.
type Verdict struct {
	Formula    string   `json:"formula"`
	Claims     string   `json:"claims"`
	Grade      string   `json:"grade"`
	Answered   int      `json:"scenarios"`
	Safe       int      `json:"safe"`
	Optimistic int      `json:"optimistic"`
	Wasteful   int      `json:"wasteful"`
	Faults     int      `json:"faults"`
	NotCovered int      `json:"no_fleet_holds"`
	Exact      bool     `json:"inside_simultaneous_interval"`
	MedianErr  float64  `json:"median_error"`
	WorstErr   float64  `json:"worst_error"`
	WorstAt    string   `json:"worst_at"`
	ExtraGPUs  int      `json:"extra_gpus"`   // bought for nothing, all scenarios
	Missing    int      `json:"missing_gpus"` // not bought, all scenarios
	ExtraUSD   float64  `json:"extra_usd_per_month"`
	FirstBreak string   `json:"first_break"`
	Regions    []Region `json:"regions"`
	Rule       string   `json:"rule"`
	Reason     string   `json:"reason"`
}

// Region is one value of one axis.
type Region struct {
	Axis       string `json:"axis"`
	Value      string `json:"value"`
	N          int    `json:"scenarios"`
	Safe       int    `json:"safe"`
	Optimistic int    `json:"optimistic"`
	Wasteful   int    `json:"wasteful"`
	Grade      Grade  `json:"grade"`
}

// judgeAll fills in what rows say of each other and the verdicts.
func judgeAll(f *File, r *Report) {
	for i := range f.Formulas {
		fm := &f.Formulas[i]
		var rows []*Row
		for k := range r.Rows {
			if r.Rows[k].Formula == fm.Name {
				rows = append(rows, &r.Rows[k])
			}
		}
		judgeRows(f, fm, rows)
		r.Formulas = append(r.Formulas, verdictOf(fm, rows))
	}
}

func judgeRows(f *File, fm *Formula, rows []*Row) {
	c := claims[fm.Claims]
	n := 0
	for _, r := range rows {
		if r.op.inputs != nil {
			n++
		}
	}
	for _, r := range rows {
		if r.op.inputs == nil {
			continue
		}
		r.Simulated = c.value(r.op)
		if r.Fault != "" {
			continue
		}
		wide := simultaneous(r.Simulated, n)
		r.Inside = r.Answer >= wide.Lo && r.Answer <= wide.Hi || r.Answer == r.Simulated.V
		r.Error = r.Answer/r.Simulated.V - 1
		if r.Answer == r.Simulated.V {
			r.Error = 0
		}
		tp := float64(max(1, r.op.scenario.tp))
		r.Grade = c.grade(r.Answer, r.Simulated, f.Tolerance, tp)
		r.width = (wide.Hi - wide.Lo) / 2 / wide.V
		if !c.sizing {
			continue
		}
		fleet := r.fleet()
		r.Fewest = r.op.fewest * r.op.scenario.tp
		r.ExtraGPUs = (fleet - r.op.fewest) * r.op.scenario.tp
		r.ExtraUSD = float64(r.ExtraGPUs) * r.op.scenario.Grid.GPUHourUSD * 24 * 30
		if p := r.op.answers[fleet]; p != nil {
			ok, binding := p.holds()
			r.Held, r.Binding = "no", binding
			if ok {
				r.Held = "yes"
			}
		} else if fleet < r.op.fewest {
			r.Held = "no"
		}
	}
}

func verdictOf(fm *Formula, rows []*Row) Verdict {
	v := Verdict{Formula: fm.Name, Claims: fm.Claims, Exact: true}
	var errs []float64
	var wrong, right []*Row
	for _, r := range rows {
		switch {
		case r.NotCovered:
			v.NotCovered++
			continue
		case r.Fault != "":
			v.Faults++
			continue
		}
		v.Answered++
		v.Exact = v.Exact && r.Inside
		switch r.Grade {
		case Safe:
			v.Safe++
			right = append(right, r)
		case Optimistic:
			v.Optimistic++
			wrong = append(wrong, r)
		case Wasteful:
			v.Wasteful++
			wrong = append(wrong, r)
		}
		if !math.IsNaN(r.Error) && !math.IsInf(r.Error, 0) {
			errs = append(errs, r.Error)
			if math.Abs(r.Error) > math.Abs(v.WorstErr) {
				v.WorstErr, v.WorstAt = r.Error, r.Scenario
			}
		}
		if r.ExtraGPUs > 0 {
			v.ExtraGPUs += r.ExtraGPUs
		} else {
			v.Missing -= r.ExtraGPUs
		}
		v.ExtraUSD += r.ExtraUSD
	}
	v.Exact = v.Exact && v.Answered > 0 && median(right, func(r *Row) float64 { return r.width }) < .2
	slices.Sort(errs)
	if n := len(errs); n > 0 {
		v.MedianErr = (errs[n/2] + errs[(n-1)/2]) / 2
	}
	v.Grade = gradeOf(v.Safe, v.Optimistic, v.Wasteful)
	v.Regions = regions(rows)
	if len(wrong) > 0 {
		v.FirstBreak = first(wrong).Scenario
		v.Rule = rule(wrong, right)
		v.Reason = reason(fm, wrong, right)
	}
	return v
}

// gradeOf is the grade of many rows: one in twenty may be wrong.
func gradeOf(safe, optimistic, wasteful int) string {
	n := safe + optimistic + wasteful
	switch {
	case n == 0:
		return "no answer"
	case optimistic*20 > n && wasteful*20 > n:
		return "optimistic and wasteful"
	case optimistic*20 > n:
		return string(Optimistic)
	case wasteful*20 > n:
		return string(Wasteful)
	}
	return string(Safe)
}

func regions(rows []*Row) []Region {
	var out []Region
	for _, r := range rows {
		if r.Fault != "" {
			continue
		}
		for i, a := range r.Axes {
			if !r.op.scenario.Grid.varies(i) {
				continue
			}
			k := slices.IndexFunc(out, func(o Region) bool { return o.Axis == a.Name && o.Value == a.Text })
			if k < 0 {
				out = append(out, Region{Axis: a.Name, Value: a.Text})
				k = len(out) - 1
			}
			o := &out[k]
			o.N++
			switch r.Grade {
			case Safe:
				o.Safe++
			case Optimistic:
				o.Optimistic++
			case Wasteful:
				o.Wasteful++
			}
		}
	}
	for i := range out {
		o := &out[i]
		switch {
		case o.Optimistic*20 > o.N:
			o.Grade = Optimistic
		case o.Wasteful*20 > o.N:
			o.Grade = Wasteful
		default:
			o.Grade = Safe
		}
	}
	return out
}

// first is the gentlest of the scenarios in which a formula breaks: the least load,
// or the least rate.
func first(rows []*Row) *Row {
	return slices.MinFunc(rows, func(a, b *Row) int {
		x, y := a.op.scenario, b.op.scenario
		switch {
		case x.load != y.load:
			return less(x.load, y.load)
		case x.load == 0 && x.rate != y.rate:
			return less(x.rate, y.rate)
		}
		return less(x.prompt, y.prompt)
	})
}

func less(a, b float64) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

// split is a side of a threshold on an axis.
type split struct {
	text   string
	inside func(*Row) bool
}

// rule finds the single condition on an axis that tells best where a formula breaks.
func rule(wrong, right []*Row) string {
	if len(right) == 0 {
		return fmt.Sprintf("everywhere: all %d scenarios", len(wrong))
	}
	var splits []split
	seen := map[string]bool{}
	for _, r := range append(slices.Clone(wrong), right...) {
		for i, a := range r.Axes {
			key := a.Name + a.Text
			if seen[key] || !r.op.scenario.Grid.varies(i) {
				continue
			}
			seen[key] = true
			of := func(o *Row) *Axis {
				k := slices.IndexFunc(o.Axes, func(x Axis) bool { return x.Name == a.Name })
				if k < 0 {
					return nil
				}
				return &o.Axes[k]
			}
			splits = append(splits, split{a.Name + " " + a.Text, func(o *Row) bool { x := of(o); return x != nil && x.Text == a.Text }})
			if !math.IsNaN(a.Value) {
				splits = append(splits,
					split{"from " + a.Name + " " + a.Text + " on", func(o *Row) bool { x := of(o); return x != nil && x.Value >= a.Value }},
					split{"up to " + a.Name + " " + a.Text, func(o *Row) bool { x := of(o); return x != nil && x.Value <= a.Value }})
			}
		}
	}
	best, text := 0.0, ""
	for _, s := range splits {
		in, out := share(wrong, s.inside), share(right, s.inside)
		if gain := in - out; gain > best+1e-9 && count(right, s.inside) < len(right) {
			w, n := count(wrong, s.inside), count(wrong, s.inside)+count(right, s.inside)
			best, text = gain, fmt.Sprintf("%s: %d of %d scenarios there, %d of %d elsewhere", s.text, w, n, len(wrong)-w, len(wrong)+len(right)-n)
		}
	}
	if best < .25 {
		return fmt.Sprintf("scattered: %d of %d scenarios, no one axis tells them apart", len(wrong), len(wrong)+len(right))
	}
	return text
}

func count(rows []*Row, is func(*Row) bool) int {
	n := 0
	for _, r := range rows {
		if is(r) {
			n++
		}
	}
	return n
}

func share(rows []*Row, is func(*Row) bool) float64 {
	if len(rows) == 0 {
		return 0
	}
	return float64(count(rows, is)) / float64(len(rows))
}

// reason says in words what is different where a formula breaks: the file's note
// about the formula, and what the simulation shows there.
func reason(fm *Formula, wrong, right []*Row) string {
	var parts []string
	if fm.Note != "" {
		parts = append(parts, strings.TrimSuffix(fm.Note, "."))
	}
	if wrong[0].op.point == nil {
		loads := func(r *Row) float64 { return r.op.scenario.load }
		parts = append(parts, fmt.Sprintf("there, load is %s in the middle", report.Percent(median(wrong, loads))))
		return strings.Join(parts, "; ")
	}
	var seen []string
	if q := median(wrong, func(r *Row) float64 { return r.op.point.of(queueShare).V }); q > .1 {
		seen = append(seen, fmt.Sprintf("%s of TTFT is waiting in the queue", report.Percent(q)))
	}
	if x := median(wrong, func(r *Row) float64 { return r.op.inputs["tpot_mean"] / r.op.inputs["idle_tpot"] }); x > 1.15 {
		seen = append(seen, fmt.Sprintf("TPOT is %.1f times that of a replica at ease", x))
	}
	if x := median(wrong, func(r *Row) float64 { return r.op.inputs["ttft_mean"] / r.op.inputs["ttft_p50"] }); x > 1.15 {
		seen = append(seen, fmt.Sprintf("mean TTFT is %.1f times its median", x))
	}
	if k := median(wrong, func(r *Row) float64 { return r.op.inputs["kv_peak"] }); k > .9 {
		seen = append(seen, fmt.Sprintf("KV memory is full to %s", report.Percent(k)))
	}
	if l := median(wrong, func(r *Row) float64 { return r.op.inputs["load"] }); l > 0 {
		seen = append(seen, fmt.Sprintf("load is %s", report.Percent(l)))
	}
	names := map[string]int{}
	for _, r := range wrong {
		if _, binding := r.op.point.holds(); binding != "" {
			names[binding]++
		}
	}
	for _, n := range sortedNames(names) {
		if names[n]*2 > len(wrong) {
			seen = append(seen, n+" is what binds")
		}
	}
	if seen != nil {
		parts = append(parts, "there, in the middle, "+strings.Join(seen, ", "))
	}
	return strings.Join(parts, "; ")
}

func median(rows []*Row, f func(*Row) float64) float64 {
	var v []float64
	for _, r := range rows {
		if x := f(r); !math.IsNaN(x) {
			v = append(v, x)
		}
	}
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	return v[len(v)/2]
}
