package workloads

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"slosim/sim/clock"
)

// maxBins bounds the lines of a table of windows or bins, which is held whole.
const maxBins = 2_000_000

// csvTable reads a small CSV file by the names of its columns. Columns that the
// file does not have are left empty, unless they are required.
func csvTable(file string, required, optional []string, row func(fields [][]byte) error) error {
	f, err := openFile(file)
	if err != nil {
		return err
	}
	defer f.Close()
	d := &csvDecoder{lines: newLines(f)}
	switch err := d.lines.next(); {
	case err == io.EOF:
		return &TraceError{file, 1, "the file is empty; a header line with the columns " + strings.Join(required, ", ") + " is expected"}
	case err != nil:
		return err
	}
	d.split()
	var have []string
	for _, f := range d.fields {
		have = append(have, string(bytes.TrimSpace(f)))
	}
	var index []int
	for i, name := range append(slices.Clone(required), optional...) {
		k := slices.Index(have, name)
		if k < 0 && i < len(required) {
			return &TraceError{file, d.lines.n, fmt.Sprintf("no column %q; the file has %s", name, strings.Join(have, ", "))}
		}
		index = append(index, k)
	}
	fields := make([][]byte, len(index))
	for n := 0; ; n++ {
		if err := d.lines.next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if n == maxBins {
			return &TraceError{file, d.lines.n, fmt.Sprintf("more than %d lines", maxBins)}
		}
		d.split()
		for i, k := range index {
			switch fields[i] = nil; {
			case k >= len(d.fields):
				return &TraceError{file, d.lines.n, fmt.Sprintf("%d columns, at least %d expected", len(d.fields), k+1)}
			case k >= 0:
				fields[i] = bytes.TrimSpace(d.fields[k])
			}
		}
		if err := row(fields); err != nil {
			return &TraceError{file, d.lines.n, err.Error()}
		}
	}
}

// number reads a finite number that is not negative.
func number(text []byte, what string) (float64, error) {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is no %s: a number from 0 on is expected", text, what)
	}
	return v, nil
}

// ReadWindows reads an arrival rate per window from a CSV file with the columns
// t_s (start, s) and rate_rps (requests per second). With a column client the
// lines are of single clients, as in ServeGen's client windows: dist is Gamma or
// Weibull and p1 the shape of its gaps, or gap_cv the CV of gamma gaps. Factors of
// the windows that it returns are rates per second.
func ReadWindows(file string) (total []Window, clients []Caller, err error) {
	type window struct {
		client string
		at     clock.Duration
		rate   float64
		gap    Gap
	}
	var list []window
	byClient := false
	err = csvTable(file, []string{"t_s", "rate_rps"}, []string{"client", "dist", "p1", "gap_cv"}, func(f [][]byte) error {
		at, err := decimalTime(f[0], clock.Second)
		if err != nil {
			return err
		}
		w := window{client: string(f[2]), at: at, gap: Gap{Shape: 1}}
		if w.rate, err = number(f[1], "rate"); err != nil {
			return err
		}
		byClient = byClient || f[2] != nil
		if f[2] != nil && w.rate > 0 {
			w.gap, err = gapOf(string(f[3]), f[4], f[5])
		}
		list = append(list, w)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if len(list) == 0 {
		return nil, nil, &TraceError{file, 2, "the file has no windows"}
	}
	slices.SortStableFunc(list, func(a, b window) int {
		if c := strings.Compare(a.client, b.client); c != 0 {
			return c
		}
		return int(min(max(a.at-b.at, -1), 1))
	})
	starts := make([]clock.Duration, len(list))
	for i, w := range list {
		starts[i] = w.at
		if i > 0 && w.at == list[i-1].at && w.client == list[i-1].client {
			return nil, nil, &TraceError{file, 1, fmt.Sprintf("two windows at t_s = %g", w.at.Seconds())}
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	rates := make([]float64, len(starts))
	for i := 0; i < len(list); { // a client at a time
		one := Caller{}
		end := i
		for _, at := range starts {
			w := Window{At: at - starts[0]}
			gap := Gap{Shape: 1}
			if end < len(list) && list[end].client == list[i].client && list[end].at == at {
				w.Factor, gap = list[end].rate, list[end].gap
				end++
			}
			rates[w.index(starts)] += w.Factor
			if n := len(one.Windows); n == 0 || w.Factor > 0 || one.Windows[n-1].Factor > 0 {
				one.Windows, one.Gaps = append(one.Windows, w), append(one.Gaps, gap)
			}
		}
		if byClient {
			clients = append(clients, one)
		}
		i = end
	}
	for k, at := range starts {
		total = append(total, Window{At: at - starts[0], Factor: rates[k]})
	}
	return total, clients, nil
}

// index returns the position of a window's start.
func (w Window) index(starts []clock.Duration) int {
	k, _ := slices.BinarySearch(starts, w.At+starts[0])
	return k
}

// gapOf reads a distribution of gaps.
func gapOf(dist string, shape, cv []byte) (Gap, error) {
	switch dist {
	case "Gamma", "gamma", "Weibull", "weibull":
		v, err := number(shape, "shape")
		if err == nil && !(v > 0.001) {
			err = fmt.Errorf("a shape of %g is too small", v)
		}
		return Gap{Shape: v, Weibull: dist[1] == 'e'}, err
	case "Exponential", "exponential", "Poisson":
		return Gap{Shape: 1}, nil
	}
	if len(cv) == 0 {
		return Gap{Shape: 1}, nil
	}
	v, err := number(cv, "CV")
	if err == nil && !(v > 0.01 && v < 1000) {
		err = fmt.Errorf("a CV of %g is out of range", v)
	}
	return Gap{Shape: 1 / v / v}, err
}

// ReadHistogram reads a distribution from a CSV file with a header and two
// columns: the lower edge of a bin, rising, and its share, density or count.
// Within a bin all lengths are alike; the last one is as wide as the one before.
func ReadHistogram(file string) ([]Point, error) {
	f, err := openFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := &csvDecoder{lines: newLines(f)}
	var edges, sums []float64
	total := 0.0
	for {
		if err := d.lines.next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		d.split()
		broken := func(err error) error { return &TraceError{file, d.lines.n, err.Error()} }
		if len(d.fields) < 2 {
			return nil, broken(fmt.Errorf("%d column, two are expected", len(d.fields)))
		}
		edge, err := number(bytes.TrimSpace(d.fields[0]), "length")
		if err != nil {
			if len(edges) == 0 && d.lines.n == 1 { // the header
				continue
			}
			return nil, broken(err)
		}
		share, err := number(bytes.TrimSpace(d.fields[1]), "share")
		switch n := len(edges); {
		case err != nil:
			return nil, broken(err)
		case n > 0 && edge <= edges[n-1]:
			return nil, broken(fmt.Errorf("the bin at %g is not above the one before it, at %g", edge, edges[n-1]))
		case n == maxBins:
			return nil, broken(fmt.Errorf("more than %d bins", maxBins))
		case edge > maxRowTokens:
			return nil, broken(fmt.Errorf("a length of %g is more than 10,000,000", edge))
		}
		edges, sums = append(edges, edge), append(sums, total)
		total += share
	}
	n := len(edges)
	if n < 2 || !(total > 0) {
		return nil, &TraceError{file, d.lines.n + 1, "at least two bins with a share above 0 in all are expected"}
	}
	edges, sums = append(edges, 2*edges[n-1]-edges[n-2]), append(sums, total)
	var points []Point
	for i := range edges {
		p := Point{Tokens: edges[i], P: sums[i] / total}
		// A bin [3, 4) holds the length 3: of whole numbers its lower edge.
		p.Tokens = max(0, p.Tokens-0.5)
		points = extend(points, p)
	}
	points[len(points)-1].P = 1
	return points, nil
}
