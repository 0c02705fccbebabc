package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"slosim/internal/report"
	"slosim/sim/stats"
)

// Number is a float64 in JSON with nine significant digits; null = none, or no bound.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return []byte(strconv.FormatFloat(v, 'g', 9, 64)), nil
}

type estimateJSON struct {
	V     Number `json:"v"`
	Lo    Number `json:"lo"`
	Hi    Number `json:"hi"`
	Seeds int    `json:"seeds"`
	Never bool   `json:"never,omitempty"` // it has no bound: the quantile lies among requests never answered
}

func estimateOf(e stats.Estimate) estimateJSON {
	return estimateJSON{Number(e.V), Number(e.Lo), Number(e.Hi), e.R, math.IsInf(e.V, 1)}
}

type sweepJSON struct {
	Schema      string        `json:"schema"`
	Name        string        `json:"name"`
	Title       string        `json:"title"`
	Experiment  string        `json:"experiment"`
	Command     string        `json:"command"`
	Version     string        `json:"version"`
	Design      designJSON    `json:"design"`
	Seeds       []uint64      `json:"seeds"`
	Factors     []factorJSON  `json:"factors"`
	Metrics     []metricJSON  `json:"metrics"`
	Points      []pointJSON   `json:"points"`
	Effects     []effectJSON  `json:"effects"`
	Failures    []failureJSON `json:"failures"`
	Simulations int           `json:"simulations"`
	Requests    int64         `json:"requests"`
}

type designJSON struct {
	Kind   string `json:"kind"`
	Points int    `json:"points"`
	Seed   uint64 `json:"seed"`
}

type factorJSON struct {
	Set    string `json:"set"`
	Name   string `json:"name"`
	Column string `json:"column"`
}

type metricJSON struct {
	Metric string `json:"metric"`
	Column string `json:"column"`
	Title  string `json:"title"`
}

type pointJSON struct {
	Values  []string                `json:"values"`
	Invalid string                  `json:"left_out,omitempty"`
	Metrics map[string]estimateJSON `json:"metrics"`
}

type effectJSON struct {
	Metric  string       `json:"metric"`
	Factor  string       `json:"factor"`
	Levels  []levelJSON  `json:"levels"`
	Range   estimateJSON `json:"range"`
	Share   Number       `json:"variance_explained"`
	LeftOut int          `json:"points_left_out"`
}

type levelJSON struct {
	Level string       `json:"level"`
	N     int          `json:"points"`
	Mean  estimateJSON `json:"mean"`
}

type failureJSON struct {
	Point int    `json:"point"` // from 1
	Seed  uint64 `json:"seed"`
	Why   string `json:"why"`
}

// JSON is sweep.json.
func (r *Result) JSON(command, version string) ([]byte, error) {
	f := r.Plan.File
	out := sweepJSON{Schema: "slosim.sweep/1", Name: f.Name, Title: f.Title, Experiment: f.Experiment, Command: command, Version: version,
		Design: designJSON{f.Kind, len(r.Plan.Points), f.Seed}, Seeds: r.Plan.Seeds, Failures: []failureJSON{}, Requests: r.Requests,
		Simulations: (len(r.Plan.Points) - r.leftOut()) * len(r.Plan.Seeds)}
	for i, name := range r.factorColumns() {
		out.Factors = append(out.Factors, factorJSON{f.Factors[i].Set, f.Factors[i].Name, name})
	}
	for i := range r.Plan.Metrics {
		m := &r.Plan.Metrics[i]
		out.Metrics = append(out.Metrics, metricJSON{m.Name, m.Column, m.Title})
	}
	for i := range r.Plan.Points {
		p := pointJSON{Values: r.Plan.Points[i].Values, Invalid: r.Plan.Points[i].Invalid, Metrics: map[string]estimateJSON{}}
		for m := range r.Plan.Metrics {
			p.Metrics[r.Plan.Metrics[m].Column] = estimateOf(r.Estimate(i, m))
		}
		out.Points = append(out.Points, p)
	}
	for i := range r.Effects {
		e := &r.Effects[i]
		x := effectJSON{Metric: r.Plan.Metrics[e.Metric].Column, Factor: f.Factors[e.Factor].Name, Range: estimateOf(e.Range), Share: Number(e.Share), LeftOut: e.Gaps}
		for _, l := range e.Levels {
			x.Levels = append(x.Levels, levelJSON{l.Label, l.N, estimateOf(l.Mean)})
		}
		out.Effects = append(out.Effects, x)
	}
	for _, x := range r.Failures {
		out.Failures = append(out.Failures, failureJSON{x.Point + 1, x.Seed, x.Text})
	}
	return report.ReadableJSON(out)
}

// factorColumns name the factors' columns: their paths, or with a unit behind.
func (r *Result) factorColumns() []string {
	taken := map[string]bool{"point": true, "seed": true, "requests": true}
	for i := range r.Plan.Metrics {
		taken[r.Plan.Metrics[i].Column] = true
	}
	var out []string
	for i := range r.Plan.File.Factors {
		name := plainName(r.Plan.File.Factors[i].Set)
		for taken[name] {
			name += "_"
		}
		taken[name] = true
		out = append(out, name)
	}
	return out
}

// columns is documented in results.parquet's own metadata.
type column struct {
	Name string `json:"name"`
	Set  string `json:"set,omitempty"`  // of a setting
	Unit string `json:"unit,omitempty"` // of its numbers
	Is   string `json:"is,omitempty"`
	put  func(point, seed int) parquet.Value
	node parquet.Node
}

func (r *Result) columns() []column {
	list := []column{
		{Name: "point", Is: "number of the point, from 1", node: parquet.Int(32), put: func(p, _ int) parquet.Value { return parquet.ValueOf(int32(p + 1)) }},
		{Name: "seed", Is: "seed of the simulation", node: parquet.Int(64), put: func(_, s int) parquet.Value { return parquet.ValueOf(int64(r.Plan.Seeds[s])) }},
	}
	for i, name := range r.factorColumns() {
		f := &r.Plan.File.Factors[i]
		c := column{Name: name, Set: f.Set}
		if unit, ok := f.Numeric(); ok {
			c.Unit, c.node = unit, parquet.Leaf(parquet.DoubleType)
			c.put = func(p, _ int) parquet.Value { return parquet.ValueOf(numberOf(r.Plan.Points[p].Values[i])) }
		} else {
			c.node = parquet.String()
			c.put = func(p, _ int) parquet.Value { return parquet.ValueOf(f.Label(r.Plan.Points[p].Values[i])) }
		}
		list = append(list, c)
	}
	for m := range r.Plan.Metrics {
		x := &r.Plan.Metrics[m]
		list = append(list, column{Name: x.Column, Is: x.Title, node: parquet.Leaf(parquet.DoubleType),
			put: func(p, s int) parquet.Value { return parquet.ValueOf(r.Values[p][m][s]) }})
	}
	return list
}

// Parquet is results.parquet: one row per simulation. A metric that a simulation does
// not have is NaN; one without a bound is infinite.
func (r *Result) Parquet() ([]byte, error) {
	columns := r.columns()
	about, err := json.Marshal(columns)
	if err != nil {
		return nil, err
	}
	group := parquet.Group{}
	for _, c := range columns {
		group[c.Name] = c.node
	}
	slices.SortFunc(columns, func(a, b column) int { // Parquet groups are in this order
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[any](&buf, parquet.NewSchema("sweep", group), parquet.Compression(&parquet.Snappy), parquet.KeyValueMetadata("sim.columns", string(about)))
	for p := range r.Plan.Points {
		if r.Plan.Points[p].Invalid != "" {
			continue
		}
		for s := range r.Plan.Seeds {
			row := make(parquet.Row, len(columns))
			for i, c := range columns {
				row[i] = c.put(p, s).Level(0, 0, i)
			}
			if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
				return nil, fmt.Errorf("results.parquet: %w", err)
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("results.parquet: %w", err)
	}
	return buf.Bytes(), nil
}

// Files are all outputs of a sweep.
func (r *Result) Files(command, version string) ([]report.File, error) {
	page, err := r.Document(command).HTML()
	if err != nil {
		return nil, err
	}
	data, err := r.JSON(command, version)
	if err != nil {
		return nil, err
	}
	rows, err := r.Parquet()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	r.Markdown(&text)
	return []report.File{{Name: "sweep.html", Data: page}, {Name: "sweep.json", Data: data}, {Name: "sweep.md", Data: text.Bytes()}, {Name: "results.parquet", Data: rows}}, nil
}
