// Package clock is simulated time: integer nanoseconds, so that sums are exact
// and the same on every machine.
//
// It models instants (Time) and spans (Duration) with one unit. It leaves out
// calendars: t = 0 is the start of the experiment, and Start says which weekday
// and time of day that is.
package clock

import (
	"fmt"
	"math"
	"strings"
)

// Time is an instant in nanoseconds since the start of the experiment. It is
// negative during the pre-roll.
type Time int64

// Duration is a span in nanoseconds.
type Duration int64

// Never is later than every instant of a run.
const Never Time = math.MaxInt64

// Spans in their usual units.
const (
	Nanosecond  Duration = 1
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
	Minute               = 60 * Second
	Hour                 = 60 * Minute
	Day                  = 24 * Hour
	Week                 = 7 * Day
)

// Add returns t shifted by d.
func (t Time) Add(d Duration) Time { return t + Time(d) }

// Sub returns the span from u to t.
func (t Time) Sub(u Time) Duration { return Duration(t - u) }

// Seconds returns t as seconds since the start.
func (t Time) Seconds() float64 { return float64(t) / 1e9 }

// Seconds returns d in seconds.
func (d Duration) Seconds() float64 { return float64(d) / 1e9 }

// FromSeconds rounds s seconds to the nearest nanosecond.
func FromSeconds(s float64) Duration { return Duration(math.Round(s * 1e9)) }

// String writes the span as people say it: "2d 3h", "1h 30m", "1.25s", "340ms".
func (d Duration) String() string {
	if d < 0 {
		return "-" + (-d).String()
	}
	switch {
	case d < Microsecond:
		return fmt.Sprintf("%dns", int64(d))
	case d < Millisecond:
		return trim(float64(d)/1e3) + "us"
	case d < Second:
		return trim(float64(d)/1e6) + "ms"
	case d < Minute:
		return trim(float64(d)/1e9) + "s"
	}
	parts := make([]string, 0, 4)
	for _, u := range []struct {
		size Duration
		name string
	}{{Day, "d"}, {Hour, "h"}, {Minute, "m"}} {
		if n := d / u.size; n > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", n, u.name))
			d -= n * u.size
		}
	}
	if d > 0 {
		parts = append(parts, trim(float64(d)/1e9)+"s")
	}
	return strings.Join(parts, " ")
}

func trim(v float64) string {
	s := fmt.Sprintf("%.3f", v)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// Weekday and time of day of an instant, for a run whose t = 0 lies startOfDay
// after Monday 00:00.
var weekdays = [7]string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

// Label writes the instant as "Tue 08:00"; offset is t = 0 counted from Monday
// 00:00.
func (t Time) Label(offset Duration) string {
	ns := (int64(t) + int64(offset)) % int64(Week)
	if ns < 0 {
		ns += int64(Week)
	}
	d := Duration(ns)
	return fmt.Sprintf("%s %02d:%02d", weekdays[d/Day], d%Day/Hour, d%Hour/Minute)
}

// DayHour writes the instant as "day 3, 14:00": the first day of the run is day
// 1, and offset is t = 0 counted from Monday 00:00.
func (t Time) DayHour(offset Duration) string {
	ns := int64(t) + int64(offset)%int64(Day)
	day := ns / int64(Day)
	if ns < 0 {
		day--
	}
	in := Duration(ns - day*int64(Day))
	return fmt.Sprintf("day %d, %02d:%02d", day+1, in/Hour, in%Hour/Minute)
}
