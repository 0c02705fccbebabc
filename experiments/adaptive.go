package experiments

import (
	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// adaptive reads how an objective's threshold moves.
func adaptive(t *config.Table, o *slo.Objective) {
	if !t.Has("adaptive") {
		t.Know("adaptive")
		return
	}
	a := t.Sub("adaptive", `adaptive = { by = "budget", min = "1s", max = "3s" }`)
	x := &slo.Adaptive{By: config.Read(a, "by", config.OneOf("budget", "traffic", "feedback"), config.Required, config.Note[string]("what moves the threshold"), config.Example[string](`"budget"`))}
	switch o.Metric {
	case slo.TTFT, slo.TPOT, slo.E2E, slo.Queue, "":
	default:
		a.Errorf("by", "ttft, tpot, e2e, queue", "", "an objective on %s has no single threshold of requests that could move", o.Metric)
	}
	if x.By == "feedback" && (o.Metric == slo.TPOT || o.Metric == slo.Queue) {
		a.Errorf("by", `"budget", "traffic"`, "put it on the TTFT or E2E that users feel", "users rate how long they wait: feedback moves thresholds of ttft and e2e")
	}
	limit := []config.Rule[clock.Duration]{config.Required[clock.Duration], config.Example[clock.Duration](`"1s"`), config.Above(0, clock.Day)}
	x.Min = config.Read(a, "min", config.Span, append(limit, config.Note[clock.Duration]("never tighter"))...)
	x.Max = config.Read(a, "max", config.Span, append(limit, config.Note[clock.Duration]("never looser"))...)
	minutes := config.Where(func(d clock.Duration) bool { return d%clock.Minute == 0 }, "is no whole number of minutes", "whole minutes", "")
	x.Every = config.Read(a, "every", config.Span, config.Default(clock.Hour, "assumption: between looks"), config.Example[clock.Duration](`"1h"`), minutes, config.Between(clock.Minute, 92*clock.Day))
	x.Notice = config.Read(a, "notice", config.Span, config.Default(clock.Duration(0), "an adjustment is in force at once"), config.Example[clock.Duration](`"30m"`), config.Between(0, 92*clock.Day))
	x.Step = config.Read(a, "step", config.Share, config.Default(0.1, "assumption: of the threshold, per adjustment; by traffic the least that is announced"), config.Example[float64](`"10%"`), config.Between(0.001, 0.9))
	marks(a, x)
	if x.By == "feedback" {
		x.Bearable = config.Read(a, "bearable", config.Span, config.Required, config.Note[clock.Duration]("users who wait longer rate badly"), config.Example[clock.Duration](`"2s"`), config.Above(0, clock.Day))
		x.Voices = config.Read(a, "voices", config.Share, config.Default(0.05, "assumption: of the users give a rating"), config.Example[float64](`"5%"`), config.Between(0.0001, 1))
	} else {
		forbid(a, "", `this is for by = "feedback"`, "bearable", "voices")
	}
	switch {
	case x.Min > x.Max && x.Max > 0:
		a.Errorf("max", "at least min, "+config.SpanText(x.Min), "", "max = %s is less than min = %s", config.SpanText(x.Max), config.SpanText(x.Min))
	case o.Threshold > 0 && x.Max > 0 && (o.Threshold < x.Min || o.Threshold > x.Max):
		t.Errorf("threshold", config.SpanText(x.Min)+" to "+config.SpanText(x.Max), "it is where the controller begins", "the threshold %s does not lie within the bounds of adaptive", config.SpanText(o.Threshold))
	case x.Notice >= x.Every && x.Notice > 0:
		a.Errorf("notice", "less than every, "+config.SpanText(x.Every), "", "an adjustment would be announced before the last one is in force")
	}
	o.Adaptive = x
}

// marks reads where a controller acts, in the unit of what it looks at.
func marks(a *config.Table, x *slo.Adaptive) {
	switch x.By {
	case "budget":
		x.Low = config.Read(a, "low", config.Share, config.Default(0.25, "assumption: with less of the budget spent the threshold is tightened"), config.Example[float64](`"25%"`), config.Between(0.0, 100))
		x.High = config.Read(a, "high", config.Share, config.Default(0.75, "assumption: with more of it spent the threshold is relaxed"), config.Example[float64](`"75%"`), config.Between(0.0, 100))
	case "traffic":
		x.Low = config.Read(a, "low", config.Rate, config.Required, config.Note[float64]("up to here the threshold is min"), config.Example[float64](`"2/s"`), config.Between(0.0, maxRate))
		x.High = config.Read(a, "high", config.Rate, config.Required, config.Note[float64]("from here on it is max"), config.Example[float64](`"8/s"`), config.Between(0.0, maxRate))
	case "feedback":
		x.Low = config.Read(a, "low", config.Share, config.Default(0.02, "assumption: with fewer bad ratings the threshold is relaxed"), config.Example[float64](`"2%"`), config.Between(0.0, 1))
		x.High = config.Read(a, "high", config.Share, config.Default(0.10, "assumption: with more bad ratings it is tightened"), config.Example[float64](`"10%"`), config.Between(0.0, 1))
	default:
		a.Know("low", "high")
		return
	}
	if x.Low >= x.High && !(x.Low == 0 && x.High == 0) {
		a.Errorf("high", "more than low", "", "low and high leave nothing in between")
	}
}
