package design

import (
	"math"
	"strconv"
	"strings"
)

// Factor is a setting that a design varies: a list of values, or a range.
type Factor struct {
	Set  string // path of the setting: "pool.main.replicas"
	Name string // in tables and charts

	Values []string // as --set takes them
	Labels []string // of Values, for tables; nil = the values themselves

	From, To float64 // without Values; both included
	Unit     string  // behind the number: "/s", "%"
	Log      bool    // steps and strata are equal in the logarithm
	Integer  bool
	Steps    int // of a grid
}

// digits are the significant digits of a value from a range: what is simulated is
// exactly what is written.
const digits = 6

// At returns the value at u in [0, 1).
func (f *Factor) At(u float64) string {
	if f.Values != nil {
		return f.Values[min(int(u*float64(len(f.Values))), len(f.Values)-1)]
	}
	lo, hi := f.From, f.To
	if f.Integer && !f.Log { // each integer has the same share
		v := math.Floor(lo + u*(hi-lo+1))
		return f.write(min(v, hi))
	}
	return f.write(f.between(u))
}

// between returns the number at share u of the range.
func (f *Factor) between(u float64) float64 {
	v := f.From + u*(f.To-f.From)
	if f.Log {
		v = f.From * math.Pow(f.To/f.From, u)
	}
	if f.Integer {
		v = math.Round(v)
	}
	return min(max(v, f.From), f.To)
}

// Levels returns the values of a grid, each once.
func (f *Factor) Levels() []string {
	if f.Values != nil {
		return f.Values
	}
	var out []string
	for i := range f.Steps {
		v := f.write(f.between(float64(i) / float64(max(1, f.Steps-1))))
		if len(out) == 0 || out[len(out)-1] != v {
			out = append(out, v)
		}
	}
	return out
}

func (f *Factor) write(v float64) string {
	return Number(v) + f.Unit
}

// Number writes v with six significant digits and no exponent.
func Number(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	if err != nil {
		rounded = v
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// Split parts a value into its number and its unit: "8/s" is 8 and "/s".
func Split(text string) (v float64, unit string, ok bool) {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && strings.IndexByte("+-.0123456789", text[end]) >= 0 {
		end++
	}
	v, err := strconv.ParseFloat(text[:end], 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, "", false
	}
	return v, strings.TrimSpace(text[end:]), true
}

// Label is how a value is shown.
func (f *Factor) Label(value string) string {
	for i, v := range f.Values {
		if v == value && i < len(f.Labels) {
			return f.Labels[i]
		}
	}
	return value
}

// Numeric tells whether all values are numbers of one unit, and returns the number of
// each.
func (f *Factor) Numeric() (unit string, ok bool) {
	if f.Values == nil {
		return f.Unit, true
	}
	for i, text := range f.Values {
		_, u, is := Split(text)
		if !is || i > 0 && u != unit {
			return "", false
		}
		unit = u
	}
	return unit, true
}
