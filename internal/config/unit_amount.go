package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Values with a unit of amount.
var (
	// Share is a part of a whole: "30%" or 0.3.
	Share = Unit[float64]{Name: "a share", Allowed: `percent in quotes, or a number from 0 to 1`, Example: `"30%"`,
		Parse: parseShare, Format: formatShare}
	// Tokens is a number of tokens: 2000, "2K" = 2000, "2Ki" = 2048.
	Tokens = Unit[float64]{Name: "a number of tokens", Allowed: `a number, or text such as "2K" (2000) or "2Ki" (2048)`, Example: "2000",
		Parse: parseTokens, Format: formatFloat}
	// WholeTokens is a whole number of tokens or of other things that are counted.
	WholeTokens = Unit[int]{Name: "a whole number of tokens", Allowed: `a whole number, or text such as "8K" (8000) or "8Ki" (8192)`, Example: "8192",
		Parse: parseWholeTokens, Format: strconv.Itoa}
	// Rate is in events per second: "12/s", "300/min", "1M/day".
	Rate = Unit[float64]{Name: "a rate", Allowed: `a number per s, min, h or day, in quotes`, Example: `"12/s"`,
		Parse: parseRate, Format: func(v float64) string { return strconv.Quote(formatRate(v)) }}
	// Bytes is a size: GB = 10^9 bytes, GiB = 2^30 bytes.
	Bytes = Unit[float64]{Name: "a size", Allowed: `a number and kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024), in quotes`, Example: `"3.5GiB"`,
		Parse: parseBytes, Format: formatBytes}
	// Bandwidth is in bytes per second: "50GB/s".
	Bandwidth = Unit[float64]{Name: "a bandwidth", Allowed: `a size per s, in quotes: kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024)`, Example: `"50GB/s"`,
		Parse: parseBandwidth, Format: func(v float64) string { return strings.TrimSuffix(formatBytes(v), `"`) + `/s"` }}
	// Celsius is a temperature: 30 or "30C".
	Celsius = Unit[float64]{Name: "a temperature", Allowed: `a number of degrees Celsius, such as 30 or "30C"`, Example: "30",
		Parse: parseCelsius, Format: formatFloat}
)

func parseShare(v any) (float64, error) {
	s, ok := v.(string)
	if !ok {
		return parseFloat(v)
	}
	number, unit, err := quantity(s)
	if err != nil {
		return 0, err
	}
	if unit != "%" {
		return 0, errors.New("is no percentage")
	}
	return scaled(number, -2)
}

// formatShare writes a share as percent with all its digits. It moves the point
// in the text, because v·100 may need more digits than a float has.
func formatShare(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	whole, frac, _ := strings.Cut(text, ".")
	frac += "00"
	whole = strings.TrimLeft(whole+frac[:2], "0")
	frac = strings.TrimRight(frac[2:], "0")
	if whole == "" {
		whole = "0"
	}
	if frac != "" {
		whole += "." + frac
	}
	return strconv.Quote(whole + "%")
}

// prefixes of numbers: powers of ten, and of two.
var (
	decimalPrefix = map[string]int{"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "B": 9, "T": 12}
	binaryPrefix  = map[string]float64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
)

func parseTokens(v any) (float64, error) {
	s, ok := v.(string)
	if !ok {
		return parseFloat(v)
	}
	number, unit, err := quantity(s)
	if err != nil {
		return 0, err
	}
	unit = strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(unit, "s"), "token"))
	if factor, ok := binaryPrefix[unit]; ok {
		n, err := scaled(number, 0)
		return n * factor, err
	}
	exp, ok := decimalPrefix[unit]
	if !ok || exp > 9 {
		return 0, fmt.Errorf("has no unit that counts tokens (%q)", unit)
	}
	return scaled(number, exp)
}

func parseWholeTokens(v any) (int, error) {
	f, err := parseTokens(v)
	if err != nil {
		return 0, err
	}
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, errors.New("is not a whole number")
	}
	return int(f), nil
}

// secondsPer names the spans that a rate may be per.
var secondsPer = map[string]float64{
	"s": 1, "sec": 1, "second": 1, "min": 60, "m": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400,
}

func parseRate(v any) (float64, error) {
	s, ok := v.(string)
	if !ok {
		if _, err := parseFloat(v); err == nil {
			return 0, errors.New("has no unit")
		}
		return 0, fmt.Errorf("is %s, not a rate", describe(v))
	}
	head, per, ok := strings.Cut(s, "/")
	if !ok {
		return 0, errors.New("has no unit")
	}
	number, unit, err := quantity(head)
	if err != nil {
		return 0, err
	}
	for _, word := range []string{"requests", "request", "reqs", "req"} {
		unit = strings.TrimSpace(strings.TrimSuffix(unit, word))
	}
	seconds, known := secondsPer[strings.TrimSpace(per)]
	if !known {
		return 0, fmt.Errorf("is per %q", per)
	}
	exp, known := decimalPrefix[unit]
	if !known {
		return 0, fmt.Errorf("counts in %q", unit)
	}
	n, err := scaled(number, exp)
	return n / seconds, err
}

// ratePers are the spans that rates are written per, the most usual first.
var ratePers = []string{"s", "min", "h", "day"}

// maxRateDigits is what people write of a rate; longer numbers come from a change
// of unit.
const maxRateDigits = 7

// formatRate writes a rate exactly, per the first span that makes it short:
// "12/s", "10/min", "1000000/day".
func formatRate(v float64) string {
	for _, per := range ratePers {
		n := strconv.FormatFloat(v*secondsPer[per], 'g', maxRateDigits, 64)
		if f, err := strconv.ParseFloat(n, 64); err == nil && f/secondsPer[per] == v {
			return formatFloat(f) + "/" + per
		}
	}
	return formatFloat(v) + "/s"
}

// RateText writes a rate for the eye: exactly if that is short, else with four
// digits per the span that leaves it at least one before the point.
func RateText(v float64) string {
	if text := formatRate(v); len(text) <= maxRateDigits+len("/min") {
		return text
	}
	for _, per := range ratePers {
		if n := v * secondsPer[per]; n >= 1 {
			return fmt.Sprintf("%.4g/%s", n, per)
		}
	}
	return fmt.Sprintf("%.4g/s", v)
}

func parseBytes(v any) (float64, error) {
	s, ok := v.(string)
	if !ok {
		if _, err := parseFloat(v); err == nil {
			return 0, errors.New("has no unit")
		}
		return 0, fmt.Errorf("is %s, not a size", describe(v))
	}
	number, unit, err := quantity(s)
	if err != nil {
		return 0, err
	}
	prefix, isBytes := strings.CutSuffix(unit, "B")
	if !isBytes {
		return 0, fmt.Errorf("has no unit of size")
	}
	if factor, ok := binaryPrefix[prefix]; ok {
		n, err := scaled(number, 0)
		return n * factor, err
	}
	exp, ok := decimalPrefix[prefix]
	if !ok || prefix == "B" {
		return 0, fmt.Errorf("is in %q", unit)
	}
	return scaled(number, exp)
}

func formatBytes(v float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}} {
		n := v / u.size
		if text := formatFloat(n); v != 0 && n >= 0.1 && len(text) <= 8 {
			return strconv.Quote(text + u.name)
		}
	}
	return strconv.Quote(formatFloat(v) + "B")
}

func parseBandwidth(v any) (float64, error) {
	s, ok := v.(string)
	if !ok {
		if _, err := parseFloat(v); err == nil {
			return 0, errors.New("has no unit")
		}
		return 0, fmt.Errorf("is %s, not a bandwidth", describe(v))
	}
	size, per, ok := strings.Cut(s, "/")
	if !ok {
		return 0, errors.New("is not per second")
	}
	if strings.TrimSpace(per) != "s" {
		return 0, fmt.Errorf("is per %q", per)
	}
	return parseBytes(size)
}

func parseCelsius(v any) (float64, error) {
	s, ok := v.(string)
	if !ok {
		return parseFloat(v)
	}
	number, unit, err := quantity(s)
	if err != nil {
		return 0, err
	}
	if u := strings.TrimSpace(strings.TrimPrefix(unit, "°")); u != "C" {
		return 0, errors.New("is not in degrees Celsius")
	}
	return scaled(number, 0)
}
