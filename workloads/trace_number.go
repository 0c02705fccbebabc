package workloads

import (
	"math"
	"math/bits"
	"strconv"

	"slosim/sim/clock"
)

// decimalTime reads a time stamp in units exactly: 1700000000.123456789 s loses
// no nanosecond, as it would as a float64.
func decimalTime(text []byte, unit clock.Duration) (clock.Duration, error) {
	if ns, ok := fixedPoint(text, uint64(unit)); ok {
		return ns, nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, badf("%q is no arrival time: a number is expected", text)
	}
	if v *= float64(unit); math.Abs(v) >= math.MaxInt64/2 {
		return 0, badf("%s is no arrival time in units of %s: is the unit right?", text, unit)
	}
	return clock.Duration(math.Round(v)), nil
}

// fixedPoint reads digits with at most one point times unit, rounded to whole
// nanoseconds; ok is false for any other text and beyond 146 years.
func fixedPoint(text []byte, unit uint64) (ns clock.Duration, ok bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	var digits, scale uint64 = 0, 1
	point, any := false, false
	for _, c := range text {
		switch {
		case c == '.' && !point:
			point = true
		case c < '0' || c > '9' || digits > math.MaxUint64/10-1:
			return 0, false
		default:
			any = true
			digits = digits*10 + uint64(c-'0')
			if point {
				scale *= 10
			}
		}
	}
	hi, lo := bits.Mul64(digits, unit)
	if lo += scale / 2; lo < scale/2 {
		hi++
	}
	if !any || hi >= scale {
		return 0, false
	}
	q, _ := bits.Div64(hi, lo, scale)
	if q > math.MaxInt64/2 {
		return 0, false
	}
	if negative {
		return -clock.Duration(q), true
	}
	return clock.Duration(q), true
}

// tokenCount reads a whole number of tokens; its range is checked elsewhere.
func tokenCount(text []byte, what string) (int64, error) {
	n := int64(0)
	plain := len(text) > 0 && len(text) < 18
	for _, c := range text {
		if plain = plain && c >= '0' && c <= '9'; !plain {
			break
		}
		n = n*10 + int64(c-'0')
	}
	if plain {
		return n, nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || v != math.Trunc(v) || !(math.Abs(v) < 1e15) {
		return 0, badf("%q is no number of %s tokens: a whole number from 1 to 10,000,000 is expected", text, what)
	}
	return int64(v), nil
}
