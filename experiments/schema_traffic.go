package experiments

import (
	"maps"
	"slices"

	"slosim/internal/config"
)

// Keys of a length; of a part of a mixture without parts of its own.
var (
	partKeys   = []string{"dist", "mean", "sd", "p50", "p90", "p95", "p99", "p999", "alpha", "min", "max", "points", "file", "tail"}
	lengthKeys = append(slices.Clone(partKeys), "parts")
)

// Keys of a rate; of one that is added to it without what concerns the process.
var (
	shapeKeys = []string{"mean", "shape", "peak", "peak_to_trough", "hours", "windows", "weekdays", "growth", "ramps", "ladder", "bursts", "random_bursts", "regimes"}
	rateKeys  = append(slices.Clone(shapeKeys), "add", "burstiness", "hawkes", "arrivals", "requests")
)

// withTraffic adds the keys of [[traffic]] and [[change]].
func withTraffic(s config.Schema) config.Schema {
	maps.Copy(s, config.Schema{
		"traffic": {"class", "stream", "rate", "users", "think", "trace", "max_in_flight", "session", "timeout", "patience", "retry", "limit", "prompt", "output", "correlation", "priority", "tier", "slo_template", "stage_budget", "system_prompt", "prefix_hit"},
		"change":  {"name", "class", "at", "ramp", "canary", "every", "rollback", "share", "rate", "prompt", "output", "output_cap", "system_prompt", "prefix_hit", "gated_by", "essential"},

		"traffic.rate":        rateKeys,
		"traffic.rate.add":    shapeKeys,
		"traffic.rate.hawkes": {"branching", "decay"},

		"traffic.stage_budget": stageKeys[:],
		"traffic.session":      {"turns", "think", "max_context"},
		"traffic.limit":        {"requests", "tokens", "burst", "in_flight", "max_prompt", "weight"},
		"traffic.retry":        {"times", "backoff", "factor", "limit", "jitter"},
		"traffic.trace":        {"file", "format", "arrival", "prompt", "output", "unit", "block", "skip_bad", "where", "speed", "rate", "loop"},
		"traffic.trace.where":  {"column", "is"},
	})
	for _, rate := range []string{"traffic.rate", "traffic.rate.add"} {
		s[rate+".ramps"] = []string{"at", "length", "factor"}
		s[rate+".ladder"] = []string{"at", "step", "every", "steps"}
		s[rate+".bursts"] = []string{"at", "length", "every", "factor"}
		s[rate+".random_bursts"] = []string{"rate", "length", "factor"}
		s[rate+".regimes"] = []string{"factor", "length"}
		addLength(s, rate+".random_bursts.length")
		addLength(s, rate+".random_bursts.factor")
	}
	for _, class := range []string{"traffic", "change"} {
		s[class+".system_prompt"] = []string{"tokens", "variants", "skew"}
		s[class+".prefix_hit"] = []string{"ratio", "tokens"}
		for _, key := range []string{"prompt", "output", "prefix_hit.tokens"} {
			addLength(s, class+"."+key)
		}
	}
	for _, key := range []string{"think", "patience", "session.turns", "session.think"} {
		addLength(s, "traffic."+key)
	}
	return s
}

// addLength adds the keys of a length at a path.
func addLength(s config.Schema, path string) {
	s[path] = lengthKeys
	s[path+".tail"] = []string{"from", "alpha"}
	s[path+".parts"] = append([]string{"share"}, partKeys...)
	s[path+".parts.tail"] = s[path+".tail"]
}
