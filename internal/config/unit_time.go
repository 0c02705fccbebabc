package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"slosim/sim/clock"
)

// Values with a unit of time.
var (
	// Span is a duration of at least 0: "250ms", "90m", "1h30m", "30d".
	Span = Unit[clock.Duration]{Name: "a duration", Allowed: `numbers with ns, us, ms, s, m, h, d or w, in quotes`, Example: `"2s"`,
		Parse:  func(v any) (clock.Duration, error) { n, err := parseSpan(v, 1000); return clock.Duration(n), err },
		Format: func(v clock.Duration) string { return strconv.Quote(SpanText(v)) }}
	// FineSpan is a duration in picoseconds: "1.3us", "80ns", "500ps".
	FineSpan = Unit[int64]{Name: "a duration", Allowed: `numbers with ps, ns, us, ms or s, in quotes`, Example: `"4.5ms"`,
		Parse:  func(v any) (int64, error) { return parseSpan(v, 1) },
		Format: func(v int64) string { return strconv.Quote(formatSpan(v, spanUnits)) }}
	// TimeOfDay is a time since midnight: "14:00".
	TimeOfDay = Unit[clock.Duration]{Name: "a time of day", Allowed: `"00:00" to "23:59", in quotes`, Example: `"14:00"`,
		Parse: parseTimeOfDay, Format: func(v clock.Duration) string { return strconv.Quote(clockText(v)) }}
	// WeekTime is a weekday and time, counted from Monday 00:00: "Mon 08:00".
	WeekTime = Unit[clock.Duration]{Name: "a weekday and time", Allowed: `Mon, Tue, Wed, Thu, Fri, Sat or Sun and a time of day, in quotes`, Example: `"Mon 00:00"`,
		Parse: parseWeekTime, Format: func(v clock.Duration) string {
			return strconv.Quote(weekdays[v/clock.Day] + " " + clockText(v%clock.Day))
		}}
)

type spanUnit struct {
	name string
	ps   float64
}

// spanUnits from small to large; parsing accepts all, plus other spellings.
var spanUnits = []spanUnit{
	{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}, {"m", 60e12}, {"h", 3600e12}, {"d", 86400e12},
}

var otherSpanUnits = map[string]float64{
	"µs": 1e6, "μs": 1e6, "sec": 1e12, "second": 1e12, "seconds": 1e12, "min": 60e12, "minute": 60e12, "minutes": 60e12,
	"hour": 3600e12, "hours": 3600e12, "day": 86400e12, "days": 86400e12, "w": 7 * 86400e12, "week": 7 * 86400e12, "weeks": 7 * 86400e12,
}

func picoseconds(unit string) (float64, bool) {
	for _, u := range spanUnits {
		if u.name == unit {
			return u.ps, true
		}
	}
	ps, ok := otherSpanUnits[unit]
	return ps, ok
}

// parseSpan reads a duration as a number of ticks of perTick picoseconds, and
// refuses what is finer than a tick.
func parseSpan(v any, perTick float64) (int64, error) {
	s, ok := v.(string)
	if !ok {
		f, err := parseFloat(v)
		switch {
		case err == nil && f == 0:
			return 0, nil
		case err == nil:
			return 0, errors.New("has no unit")
		}
		return 0, fmt.Errorf("is %s, not a duration", describe(v))
	}
	total, rest := int64(0), strings.TrimSpace(s)
	if rest == "" {
		return 0, errors.New("is empty")
	}
	for rest != "" {
		number, tail, err := quantity(rest)
		if err != nil {
			return 0, err
		}
		end := strings.IndexAny(tail, "0123456789 +-.")
		if end < 0 {
			end = len(tail)
		}
		ps, ok := picoseconds(tail[:end])
		if !ok {
			return 0, unknownSpan(tail[:end])
		}
		n, err := ticks(number, ps/perTick)
		switch {
		case err == errFiner && perTick == 1:
			return 0, errors.New("is finer than a picosecond")
		case err == errFiner:
			return 0, errors.New("is finer than a nanosecond")
		case err != nil:
			return 0, err
		case total+n > maxTicks(perTick):
			return 0, errors.New("is too long")
		}
		total += n
		rest = strings.TrimSpace(tail[end:])
	}
	return total, nil
}

// maxTicks bounds a duration: 100 years in nanoseconds, 26 days in picoseconds.
func maxTicks(perTick float64) int64 {
	return int64(min(100*365*86400e12/perTick, math.MaxInt64/4))
}

var errFiner = errors.New("is finer than a tick")

// ticks returns number × size as a whole number of ticks.
func ticks(number string, size float64) (int64, error) {
	n, err := scaled(number, 0)
	switch {
	case err != nil:
		return 0, err
	case n < 0 || strings.HasPrefix(number, "-"):
		return 0, errors.New("is negative")
	case n*size > math.MaxInt64/4:
		return 0, errors.New("is too long")
	}
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil && size == math.Trunc(size) {
		return whole * int64(size), nil
	}
	v := math.Round(n * size)
	if math.Abs(n*size-v) > 1e-6*math.Max(1, v) {
		return 0, errFiner
	}
	return int64(v), nil
}

func unknownSpan(unit string) error {
	if unit == "" {
		return errors.New("has no unit")
	}
	return fmt.Errorf("has the unknown unit %q", unit)
}

// SpanText writes a duration exactly: "72h", "1h30m", "30d".
func SpanText(d clock.Duration) string { return formatSpan(int64(d), spanUnits[1:]) }

// daysFrom is the length from which whole days are written as days.
const daysFrom = 7 * 86400e12

// formatSpan writes n ticks of the first unit exactly, in at most a few parts:
// "1d8h", "4.5ms".
func formatSpan(n int64, units []spanUnit) string {
	if n == 0 {
		return "0s"
	}
	tick := units[0].ps
	var b strings.Builder
	for i := len(units) - 1; i >= 0 && n > 0; i-- {
		size := int64(units[i].ps / tick)
		if n < size || units[i].name == "d" && (float64(n)*tick < daysFrom || n%size != 0) {
			continue
		}
		if units[i].ps > 1e12 {
			fmt.Fprintf(&b, "%d%s", n/size, units[i].name)
			n %= size
			continue
		}
		// Below a minute one decimal number says it all.
		frac := strings.TrimRight(fmt.Sprintf("%0*d", len(strconv.FormatInt(size, 10))-1, n%size), "0")
		if size == 1 || frac == "" {
			fmt.Fprintf(&b, "%d%s", n/size, units[i].name)
		} else {
			fmt.Fprintf(&b, "%d.%s%s", n/size, frac, units[i].name)
		}
		break
	}
	return b.String()
}

var weekdays = [7]string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

func parseTimeOfDay(v any) (clock.Duration, error) {
	s, ok := v.(string)
	if !ok {
		return 0, fmt.Errorf("is %s, not text", describe(v))
	}
	hour, minute, ok := strings.Cut(s, ":")
	h, err1 := strconv.Atoi(hour)
	m, err2 := strconv.Atoi(minute)
	if !ok || err1 != nil || err2 != nil || len(minute) != 2 {
		return 0, errors.New("is no time of day")
	}
	if h < 0 || h > 23 || m < 0 || m > 59 {
		return 0, errors.New("is not between 00:00 and 23:59")
	}
	return clock.Duration(h)*clock.Hour + clock.Duration(m)*clock.Minute, nil
}

func parseWeekTime(v any) (clock.Duration, error) {
	s, ok := v.(string)
	if !ok {
		return 0, fmt.Errorf("is %s, not text", describe(v))
	}
	day, at, ok := strings.Cut(strings.TrimSpace(s), " ")
	if !ok {
		return 0, errors.New("is not a weekday and a time")
	}
	for i, name := range weekdays {
		if len(day) >= 3 && strings.EqualFold(name, day[:3]) {
			t, err := parseTimeOfDay(strings.TrimSpace(at))
			return clock.Duration(i)*clock.Day + t, err
		}
	}
	return 0, fmt.Errorf("has the unknown weekday %q", day)
}

func clockText(d clock.Duration) string {
	return fmt.Sprintf("%02d:%02d", d/clock.Hour, d%clock.Hour/clock.Minute)
}
