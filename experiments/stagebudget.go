package experiments

import (
	"slosim/internal/config"
	"slosim/sim"
	"slosim/sim/clock"
)

// stageKeys are the stages of a request's life, in its order and that of
// sim.StageNames.
var stageKeys = [5]string{"network", "queue", "prefill", "decode", "stream"}

const msec = clock.Millisecond

// stageTemplates are stage budgets by scenario. Sourced are, from the field's
// practice, the 20 ms of the network, the sums for chat (TTFT P99 below 2 s) and
// code completion (below 500 ms), and that batch work has none; how a sum is cut
// into stages, and rag and agent, are assumptions.
var stageTemplates = map[string][5]clock.Duration{
	"chat":            {20 * msec, 980 * msec, 800 * msec, 50 * msec, 200 * msec},
	"code-completion": {20 * msec, 150 * msec, 280 * msec, 25 * msec, 50 * msec},
	"rag":             {20 * msec, 1500 * msec, 3280 * msec, 50 * msec, 200 * msec},
	"agent":           {20 * msec, 500 * msec, 1400 * msec, 30 * msec, 80 * msec},
	"batch":           {},
}

var templateNames = []string{"chat", "code-completion", "rag", "agent", "batch"}

// stageBudget reads a class's thresholds per stage.
func (l *loader) stageBudget(t *config.Table, class string) {
	b := sim.StageBudget{Class: class}
	var limits [5]clock.Duration
	note := func(int) string { return "no budget" }
	if t.Has("slo_template") {
		b.Template = config.Read(t, "slo_template", config.OneOf(templateNames...), config.Required)
		limits = stageTemplates[b.Template]
		note = func(k int) string {
			switch {
			case b.Template == "batch":
				return "batch: throughput only"
			case k == 0:
				return "interactive P99 of the network, field practice"
			}
			return "assumption: template " + b.Template
		}
		if b.Template != "batch" && b.Template != "" {
			l.assume.add("The stage budgets of template %q: how its time to the first token is cut into stages has no source; set stage_budget to yours.", b.Template)
		}
	} else {
		t.Know("slo_template")
		if !t.Has("stage_budget") {
			t.Know("stage_budget")
			return
		}
	}
	sub := t.Sub("stage_budget", `stage_budget = { network = "20ms", queue = "1s", prefill = "800ms", decode = "50ms", stream = "200ms" }`)
	any := b.Template != ""
	for k, key := range stageKeys {
		b.Limits[k] = config.Read(sub, key, config.Span, config.Default(limits[k], note(k)), config.Example[clock.Duration](`"800ms"`), config.Between(0, clock.Day))
		any = any || b.Limits[k] > 0
	}
	if any {
		l.e.StageBudgets = append(l.e.StageBudgets, b)
	}
}
