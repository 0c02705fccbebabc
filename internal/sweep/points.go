package sweep

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"slosim/experiments"
	"slosim/internal/config"
	"slosim/internal/design"
	"slosim/sim"
)

// Point is a place in the design.
type Point struct {
	Values     []string // one per factor, as --set takes them
	Experiment sim.Experiment
	Invalid    string // why it is left out; "" = it is not
}

// settings returns what the point overrides.
func (f *File) settings(values []string) []string {
	var out []string
	for i, v := range values {
		out = append(out, f.Factors[i].Set+"="+v)
	}
	return out
}

// layOut returns the values of all points.
func (f *File) layOut() [][]string {
	var out [][]string
	if f.Kind == Grid {
		var levels [][]string
		var sizes []int
		for i := range f.Factors {
			levels = append(levels, f.Factors[i].Levels())
			sizes = append(sizes, len(levels[i]))
		}
		for _, index := range design.Product(sizes) {
			row := make([]string, len(index))
			for i, k := range index {
				row[i] = levels[i][k]
			}
			out = append(out, row)
		}
		return out
	}
	draw := design.LatinHypercube
	if f.Kind == Sobol {
		draw = design.Sobol
	}
	for _, u := range draw(f.Samples, len(f.Factors), f.Seed) {
		row := make([]string, len(u))
		for i := range u {
			row[i] = f.Factors[i].At(u[i])
		}
		out = append(out, row)
	}
	return out
}

// points loads the experiment at every point, before anything is simulated. Errors of
// all points come together, each once. Sets come from the command line.
func (f *File) points(sets []string) (base sim.Experiment, list []Point, p config.Provenance, err error) {
	path := f.Experiment
	if beside := filepath.Join(f.Dir, path); !filepath.IsAbs(path) {
		if _, err := os.Stat(beside); err == nil {
			path = beside
		}
	}
	name, dir, text, err := experiments.Text(path)
	if err != nil {
		return base, nil, p, err
	}
	sets = append(slices.Clone(f.Sets), sets...)
	if base, p, err = experiments.Parse(name, dir, text, sets...); err != nil {
		return base, nil, p, err
	}
	values := f.layOut()
	list = make([]Point, len(values))
	errs := make([]error, len(values))
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				list[i].Values = values[i]
				list[i].Experiment, _, errs[i] = experiments.Parse(name, dir, text, slices.Concat(sets, f.settings(values[i]))...)
			}
		})
	}
	for i := range values {
		next <- i
	}
	close(next)
	wg.Wait()
	return base, list, p, f.judge(list, errs)
}

// judge marks the points that are no valid experiment, or reports them.
func (f *File) judge(list []Point, errs []error) error {
	var all config.Errors
	seen := map[string]bool{}
	bad := 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		bad++
		list[i].Invalid = firstLine(err)
		var found config.Errors
		if !asErrors(err, &found) {
			return err
		}
		for _, e := range found {
			if id := e.Key + "\n" + e.Msg; !seen[id] {
				seen[id] = true
				all = append(all, e)
			}
		}
	}
	switch {
	case bad == 0:
		return nil
	case f.Skip && bad < len(list):
		return nil
	}
	last := *all[len(all)-1]
	last.Try = strings.TrimPrefix(last.Try+fmt.Sprintf("\n  %d of %d points are no valid experiment; nothing was simulated", bad, len(list)), "\n  ")
	if bad < len(list) {
		last.Try += `; to leave them out: [design] invalid = "skip"`
	}
	all[len(all)-1] = &last
	return all
}

func asErrors(err error, to *config.Errors) bool {
	list, ok := err.(config.Errors)
	*to = list
	return ok
}

// firstLine is what an error says, without where it is.
func firstLine(err error) string {
	text := err.Error()
	var list config.Errors
	if asErrors(err, &list) && len(list) > 0 {
		text = list[0].Msg
	}
	text, _, _ = strings.Cut(text, "\n")
	return cmp.Or(text, "it is no valid experiment")
}
