package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"slosim/sim/clock"
)

// row parses one value and shows what comes out: the value, its text, or the
// error.
func row[T any](u Unit[T], v any) string {
	got, err := u.Parse(v)
	if err != nil {
		return fmt.Sprintf("%#v  ERROR %s", v, err)
	}
	return fmt.Sprintf("%#v  %v  %s", v, got, u.Format(got))
}

// TestUnits is the table of what people write and what it means.
func TestUnits(t *testing.T) {
	var b strings.Builder
	add := func(name string, rows ...string) { fmt.Fprintf(&b, "%s\n  %s\n", name, strings.Join(rows, "\n  ")) }
	add("Span in nanoseconds", row(Span, "250ms"), row(Span, "90m"), row(Span, "6h"), row(Span, "30d"), row(Span, "1h30m"), row(Span, "1d 8h"), row(Span, "72 hours"), row(Span, "1.5s"),
		row(Span, int64(0)), row(Span, int64(5)), row(Span, "5"), row(Span, "5 parsecs"), row(Span, "-5s"), row(Span, "0.1ns"), row(Span, ""), row(Span, true), row(Span, "9999999w"))
	add("FineSpan in picoseconds", row(FineSpan, "1.3us"), row(FineSpan, "4.5ms"), row(FineSpan, "80ns"), row(FineSpan, "500ps"), row(FineSpan, "0.5ps"))
	add("Rate per second", row(Rate, "12/s"), row(Rate, "300/min"), row(Rate, "1M/day"), row(Rate, "5.5 req/s"), row(Rate, "1.2K requests/h"), row(Rate, "10/min"), row(Rate, "0.123456789/s"), row(Rate, "40/h"), row(Rate, "7/fortnight"), row(Rate, "7"), row(Rate, int64(7)), row(Rate, "x/s"))
	var texts []string
	for _, v := range []float64{6, 10. / 60, 1e6 / 86400, 5.5, 1. / 3, 0.1234567891, 100. / 7, 3e-7, 0} {
		texts = append(texts, fmt.Sprintf("%v  %s", v, RateText(v)))
	}
	add("RateText", texts...)
	add("Bytes", row(Bytes, "80GB"), row(Bytes, "3.5GiB"), row(Bytes, "512 MiB"), row(Bytes, "80"), row(Bytes, int64(80)), row(Bytes, "80Gb"))
	add("Bandwidth", row(Bandwidth, "50GB/s"), row(Bandwidth, "12.5 GB/s"), row(Bandwidth, "1.5GiB/s"), row(Bandwidth, "400Gb/s"), row(Bandwidth, "50GB"), row(Bandwidth, "50GB/min"), row(Bandwidth, int64(50)), row(Bandwidth, true))
	add("Share", row(Share, "99.9%"), row(Share, 0.999), row(Share, "30 %"), row(Share, int64(1)), row(Share, "0.1"), row(Share, "99,9%"))
	add("Tokens", row(Tokens, int64(2000)), row(Tokens, "2K"), row(Tokens, "2Ki"), row(Tokens, "1.5K tokens"), row(Tokens, "2X"), row(Tokens, "2GB"))
	add("WholeTokens", row(WholeTokens, "8Ki"), row(WholeTokens, 1.5), row(WholeTokens, "1.5K"))
	add("TimeOfDay", row(TimeOfDay, "14:00"), row(TimeOfDay, "9:05"), row(TimeOfDay, "24:00"), row(TimeOfDay, "14"), row(TimeOfDay, int64(14)))
	add("WeekTime", row(WeekTime, "Mon 00:00"), row(WeekTime, "sunday 23:59"), row(WeekTime, "Foo 1:00"), row(WeekTime, "08:00"))
	add("Celsius", row(Celsius, int64(30)), row(Celsius, "30C"), row(Celsius, "30 °C"), row(Celsius, "86F"))
	add("Int", row(Int, int64(4)), row(Int, 4.0), row(Int, 4.5), row(Int, "4"))
	add("OneOf", row(OneOf("bf16", "fp8"), "fp8"), row(OneOf("bf16", "fp8"), "bf61"), row(OneOf("bf16", "fp8"), "int4"), row(OneOf("bf16", "fp8"), int64(8)))
	add("Texts", row(Texts, "a"), row(Texts, []any{"a", "b"}), row(Texts, []any{"a", int64(1)}), row(Texts, int64(1)))
	golden(t, "testdata/units.txt", b.String())
}

// TestUnitsReadBackWhatTheyWrite: the text of a value is the value.
func TestUnitsReadBackWhatTheyWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		same(t, Span, clock.Duration(rapid.Int64Range(0, int64(300*clock.Day)).Draw(t, "span")))
		same(t, FineSpan, rapid.Int64Range(0, 1e13).Draw(t, "fine"))
		same(t, Share, rapid.Float64Range(0, 1).Draw(t, "share"))
		same(t, Rate, rapid.Float64Range(0, 1e6).Draw(t, "rate"))
		same(t, Bandwidth, rapid.Float64Range(1, 1e13).Draw(t, "bandwidth"))
		same(t, Tokens, rapid.Float64Range(1, 1e7).Draw(t, "tokens"))
		same(t, TimeOfDay, clock.Duration(rapid.Int64Range(0, 1439).Draw(t, "minute"))*clock.Minute)
		same(t, WeekTime, clock.Duration(rapid.Int64Range(0, 7*1440-1).Draw(t, "week"))*clock.Minute)
	})
}

func same[T comparable](t *rapid.T, u Unit[T], v T) {
	text := u.Format(v)
	raw, err := setValue(text)
	if err != nil {
		t.Fatalf("%v is written %s, which is no value: %v", v, text, err)
	}
	if got, err := u.Parse(raw); err != nil || got != v {
		t.Fatalf("%v is written %s and read as %v (%v)", v, text, got, err)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"replicas", "replications", "router", "tensor_parallel", "gpu", "model", "gpu_hour_usd", "peak_to_trough"}
	got := map[string]string{}
	for _, w := range []string{"replica", "Replicas", "tensor-parallel", "tp", "paralel", "modle", "mod", "xyz", "", "gp", "peak"} {
		got[w] = Nearest(w, names)
	}
	want := map[string]string{"replica": "replicas", "Replicas": "replicas", "tensor-parallel": "tensor_parallel", "tp": "tensor_parallel",
		"paralel": "", "modle": "model", "mod": "model", "xyz": "", "": "", "gp": "", "peak": "peak_to_trough"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
