package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Values without a unit.
var (
	Text = Unit[string]{Name: "text in quotes", Allowed: "text in quotes", Example: `"text"`,
		Parse: parseText, Format: strconv.Quote}
	Bool = Unit[bool]{Name: "true or false", Allowed: "true, false", Example: "true",
		Parse: parseBool, Format: strconv.FormatBool}
	Int = Unit[int]{Name: "a whole number", Allowed: "a whole number, without quotes", Example: "4",
		Parse: parseInt, Format: strconv.Itoa}
	Float = Unit[float64]{Name: "a number", Allowed: "a number, without quotes", Example: "2.95",
		Parse: parseFloat, Format: formatFloat}
	Texts = Unit[[]string]{Name: "a list of names", Allowed: `a name or a list of names`, Example: `["a", "b"]`,
		Parse: parseTexts, Format: func(v []string) string { return "[" + quoteList(v) + "]" }}
)

// OneOf is text with few allowed values.
func OneOf(allowed ...string) Unit[string] {
	u := Text
	u.Name = "one of " + quoteList(allowed)
	u.Allowed = quoteList(allowed)
	u.Example = strconv.Quote(allowed[0])
	u.Parse = func(v any) (string, error) {
		s, ok := v.(string)
		switch {
		case !ok:
			return "", fmt.Errorf("is %s", describe(v))
		case slices.Contains(allowed, s):
			return s, nil
		}
		if near := Nearest(s, allowed); near != "" {
			return "", fmt.Errorf("is not known; did you mean %q?", near)
		}
		return "", errors.New("is not known")
	}
	return u
}

func parseText(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("is %s, not text", describe(v))
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' }) {
		return "", errors.New("contains control characters")
	}
	return s, nil
}

func parseTexts(v any) ([]string, error) {
	if s, ok := v.(string); ok {
		return []string{s}, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("is %s, not a list", describe(v))
	}
	var out []string // an empty list is nil, as a missing one
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil, fmt.Errorf("holds %s, not text", describe(e))
		}
		out = append(out, s)
	}
	return out, nil
}

func parseBool(v any) (bool, error) {
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("is %s", describe(v))
	}
	return b, nil
}

func parseInt(v any) (int, error) {
	switch v := v.(type) {
	case int64:
		return int(v), nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int(v), nil
		}
		return 0, errors.New("is not whole")
	}
	return 0, fmt.Errorf("is %s", describe(v))
}

func parseFloat(v any) (float64, error) {
	switch v := v.(type) {
	case int64:
		return float64(v), nil
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v, nil
		}
		return 0, errors.New("is not finite")
	}
	return 0, fmt.Errorf("is %s", describe(v))
}

// formatFloat writes the shortest decimal that reads back the same.
func formatFloat(v float64) string {
	if a := math.Abs(v); v != 0 && (a < 1e-6 || a >= 1e15) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// quantity parts "12.5 GiB" into the number's text and the unit.
func quantity(s string) (number, unit string, err error) {
	s = strings.TrimSpace(s)
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || strings.IndexByte("+-._", s[i]) >= 0) {
		i++
	}
	// An exponent belongs to the number: 1e6, 2.5e-3.
	if j := i + 1; i < len(s) && (s[i] == 'e' || s[i] == 'E') && j < len(s) {
		if strings.IndexByte("+-", s[j]) >= 0 {
			j++
		}
		for j < len(s) && s[j] >= '0' && s[j] <= '9' {
			j++
			i = j
		}
	}
	number = strings.ReplaceAll(s[:i], "_", "")
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return "", "", errors.New("does not begin with a number")
	}
	return number, strings.TrimSpace(s[i:]), nil
}

// scaled returns number × 10^exp10, rounded once, so that 99.9 % is 0.999.
func scaled(number string, exp10 int) (float64, error) {
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		more, err := strconv.Atoi(number[i+1:])
		if err != nil {
			return 0, errors.New("is no number")
		}
		number, exp10 = number[:i], exp10+more
	}
	v, err := strconv.ParseFloat(number+"e"+strconv.Itoa(exp10), 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, errors.New("is too large")
	}
	return v, nil
}
