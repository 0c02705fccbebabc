package experiments

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

func metricNames() []string {
	var names []string
	for _, m := range slo.Metrics {
		names = append(names, string(m))
	}
	return names
}

// thresholds reads what a request, or a token, must meet to be good.
func thresholds(t *config.Table, o *slo.Objective) {
	switch o.Metric {
	case slo.Availability:
		forbid(t, "", "availability has no threshold: an answered request is good", "threshold")
	case slo.Goodput:
		forbid(t, "", "goodput has several thresholds: write them as all = { ttft = \"2s\", tpot = \"50ms\" }", "threshold")
	case "":
		t.Know("threshold")
	default:
		o.Threshold = config.Read(t, "threshold", config.Span, config.Required, config.Above(0, clock.Day))
	}
	if o.Metric == slo.ITL {
		forbid(t, "", "ITL is judged token by token, over all tokens of the pools that serve the class: it has no cohorts", "only", "exclude")
	}
	if o.Metric != slo.Goodput {
		if o.Metric != "" {
			forbid(t, "", `all is for metric = "goodput"; others have one threshold`, "all")
		} else {
			t.Know("all")
		}
		return
	}
	all := t.Sub("all", `all = { ttft = "2s", tpot = "50ms", e2e = "30s" }`)
	read := func(key string) clock.Duration {
		return config.Read(all, key, config.Span, config.Default(clock.Duration(0), "not judged"), config.Example[clock.Duration](`"2s"`), config.Between(0, clock.Day))
	}
	o.All = slo.Limits{TTFT: read("ttft"), TPOT: read("tpot"), E2E: read("e2e")}
	if o.All == (slo.Limits{}) {
		t.Errorf("all", "ttft, tpot, e2e", `for example: all = { ttft = "2s", tpot = "50ms", e2e = "30s" }`, "goodput needs at least one threshold")
	}
}

// promptBand reads the prompts that count.
func promptBand(t *config.Table, o *slo.Objective) {
	if o.Metric == slo.ITL {
		forbid(t, "", "ITL is judged token by token, over all tokens of the pools that serve the class: it has no length bands", "min_prompt", "max_prompt")
		return
	}
	o.MinPrompt = int32(config.Read(t, "min_prompt", config.WholeTokens, config.Default(0, "prompts of every length count"), config.Example[int]("8000"), config.Between(0, int(maxTokens))))
	o.MaxPrompt = int32(config.Read(t, "max_prompt", config.WholeTokens, config.Default(0, "no bound; else only shorter prompts count"), config.Example[int]("8000"), config.Between(0, int(maxTokens))))
	if o.MaxPrompt > 0 && o.MaxPrompt <= o.MinPrompt {
		t.Errorf("max_prompt", "", "prompts of at least min_prompt and less than max_prompt tokens count", "no prompt lies between min_prompt = %d and max_prompt = %d", o.MinPrompt, o.MaxPrompt)
	}
}

// target reads the share of good events that is promised, as objective or, which
// is the same, as a percentile.
func target(t *config.Table) float64 {
	if t.Has("percentile") {
		if t.Has("objective") {
			t.Know("objective")
			t.Errorf("percentile", "", "remove one of the two", "percentile and objective say the same thing in two ways: P99 ≤ threshold is 99 %% of the requests")
		}
		v := config.Read(t, "percentile", percentile, config.Required)
		if !t.Has("objective") {
			t.Derived("objective", config.Share.Format(v), "from percentile")
		}
		return v
	}
	t.Know("percentile")
	return config.Read(t, "objective", config.Share, config.Required, config.Example[float64](`"99%"`),
		config.Where(func(v float64) bool { return v > 0 && v < 1 }, "cannot be the share of good requests",
			`more than 0% and less than 100%`, `for example: objective = "99.9%"; at 100 % there would be no error budget`))
}

// percentile is "P99", read as the share of good requests.
var percentile = config.Unit[float64]{
	Name: "a percentile", Allowed: `"P50", "P99", "P99.9" and so on: above P0, below P100`, Example: `"P99"`,
	Parse: func(v any) (float64, error) {
		text, ok := v.(string)
		number, found := strings.CutPrefix(strings.ToUpper(strings.TrimSpace(text)), "P")
		p, err := strconv.ParseFloat(number, 64)
		switch {
		case !ok || !found || err != nil || math.IsNaN(p):
			return 0, errors.New("is no percentile")
		case p <= 0 || p >= 100:
			return 0, errors.New("is no percentile above P0 and below P100")
		}
		return math.Round(p*1e8) / 1e10, nil
	},
	Format: func(v float64) string {
		return strconv.Quote("P" + strings.Trim(config.Share.Format(v), "\"%"))
	},
}

// budgetRules reads how the budget's window runs, what is done as it is spent, and
// the burn-rate alerts.
func budgetRules(t *config.Table, o *slo.Objective) {
	o.Rolling = config.Read(t, "window_kind", config.OneOf("calendar", "rolling"), config.Default("calendar", "the budget is whole again at the window's end; rolling: old events leave it")) == "rolling"
	p := t.Sub("policy", `policy = { warn = "50%", freeze = "80%", stop = "100%" }`)
	read := func(key string, of float64, note string) float64 {
		return 100 * config.Read(p, key, config.Share, config.Default(of, note), config.Example[float64](config.Share.Format(of)), config.Between(0.01, 1))
	}
	o.Policy = slo.Policy{
		Warn:   read("warn", .5, "of the budget spent: a warning"),
		Freeze: read("freeze", .8, "non-essential changes wait"),
		Stop:   read("stop", 1, "all features wait"),
	}
	if o.Policy.Warn > o.Policy.Freeze || o.Policy.Freeze > o.Policy.Stop {
		t.Errorf("policy", "", "warn comes first, stop last", "the marks of the policy are out of order")
	}
	if o.Policy == slo.StandardPolicy {
		o.Policy = slo.Policy{} // the same, and the same experiment
	}
	o.MinEvents = int64(config.Read(t, "min_events", config.Int, config.Default(slo.MinEvents, "in an alert's short window, before it may fire"), config.Example[int]("100"), config.Between(1, 1_000_000_000)))
	if o.MinEvents == slo.MinEvents {
		o.MinEvents = 0
	}
	for _, a := range t.List("alerts", `alerts = [{ long = "1h", short = "5m", factor = 14.4, severity = "page" }]`) {
		o.Alerts = append(o.Alerts, alertPair(a, o.Window))
	}
	if len(o.Alerts) > maxAlerts {
		t.Errorf("alerts", "", "", "%d alerts are more than %d", len(o.Alerts), maxAlerts)
	}
}

// maxAlerts bounds the alerts of an objective.
const maxAlerts = 20

func alertPair(t *config.Table, window clock.Duration) slo.Pair {
	minutes := config.Where(func(d clock.Duration) bool { return d >= clock.Minute && d%clock.Minute == 0 }, "is no alert window", "whole minutes, at least one", `for example: long = "1h"`)
	p := slo.Pair{
		Long:     config.Read(t, "long", config.Span, config.Required, config.Example[clock.Duration](`"1h"`), minutes, config.Between(clock.Minute, 92*clock.Day)),
		Short:    config.Read(t, "short", config.Span, config.Required, config.Example[clock.Duration](`"5m"`), minutes, config.Between(clock.Minute, 92*clock.Day)),
		Factor:   config.Read(t, "factor", config.Float, config.Required, config.Note[float64]("times the burn rate that just uses the window's budget up"), config.Example[float64]("14.4"), config.Above(0.0, 1e6)),
		Severity: config.Read(t, "severity", config.OneOf("page", "ticket"), config.Default("page", "")),
	}
	if p.Short > p.Long {
		t.Errorf("short", "", "the short window makes the alert end soon after the trouble; one twelfth of the long one is usual", "the short window is longer than the long one")
	}
	if p.Long > window {
		t.Errorf("long", "", fmt.Sprintf("at most the objective's window, %s", config.SpanText(window)), "the alert looks back further than the budget")
	}
	return p
}
