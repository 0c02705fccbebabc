package openslo

import (
	"fmt"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// OpenSLO has no word for a threshold that moves: the document has the one it begins
// with, and what moves it is an annotation.
const keyAdaptive = "sim/adaptive"

func adaptiveText(a *slo.Adaptive) string {
	text := func(d clock.Duration) string { return config.SpanText(d) }
	return fmt.Sprintf("by=%s min=%s max=%s every=%s notice=%s step=%s low=%s high=%s bearable=%s voices=%s",
		a.By, text(a.Min), text(a.Max), text(a.Every), text(a.Notice), number(a.Step), number(a.Low), number(a.High), text(a.Bearable), number(a.Voices))
}

// adaptive reads it back.
func (p *parser) adaptive(f map[string]string, span func(key, text string) clock.Duration, num func(key, text string) float64) *slo.Adaptive {
	if len(f) == 0 {
		return nil
	}
	d := func(key string) clock.Duration { return span(keyAdaptive, f[key]) }
	n := func(key string) float64 { return num(keyAdaptive, f[key]) }
	return &slo.Adaptive{By: f["by"], Min: d("min"), Max: d("max"), Every: d("every"), Notice: d("notice"), Step: n("step"), Low: n("low"), High: n("high"), Bearable: d("bearable"), Voices: n("voices")}
}

// adaptiveTOML writes it as an experiment has it.
func adaptiveTOML(a *slo.Adaptive) string {
	mark := config.Share.Format
	if a.By == "traffic" {
		mark = config.Rate.Format
	}
	text := fmt.Sprintf("{ by = %q, min = %s, max = %s, every = %s, notice = %s, step = %s, low = %s, high = %s", a.By, config.Span.Format(a.Min), config.Span.Format(a.Max),
		config.Span.Format(a.Every), config.Span.Format(a.Notice), config.Share.Format(a.Step), mark(a.Low), mark(a.High))
	if a.By == "feedback" {
		text += fmt.Sprintf(", bearable = %s, voices = %s", config.Span.Format(a.Bearable), config.Share.Format(a.Voices))
	}
	return text + " }"
}
