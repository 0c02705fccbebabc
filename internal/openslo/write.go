package openslo

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"slosim/internal/config"
	"slosim/internal/promrules"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// SLO is an objective with what only OpenSLO says of it.
type SLO struct {
	slo.Objective
	Method      string         // "Occurrences" or "Timeslices"
	SliceTarget float64        // of Timeslices: share of good events that makes a slice good
	SliceWindow clock.Duration // its length
	Threshold   bool           // measured by a thresholdMetric, not by a ratioMetric
}

// Budgeting methods of OpenSLO.
const (
	Occurrences = "Occurrences"
	Timeslices  = "Timeslices"
)

// Keys of our annotations.
const (
	keyMetric    = "sim/metric"
	keyThreshold = "sim/threshold"
	keyAll       = "sim/all"
	keyOnly      = "sim/only"
	keyExclude   = "sim/exclude"
	keySkip      = "sim/skip"
	keyMinPrompt = "sim/min-prompt"
	keyMaxPrompt = "sim/max-prompt"
	keySpent     = "sim/spent"
	keyPolicy    = "sim/policy"
	keyMinEvents = "sim/min-events"
	keyShort     = "sim/short-window"
	keyStandard  = "sim/standard-alerts"
)

// Write writes one Service per class and one SLO per objective. The selector, a
// part of a PromQL selector such as model_name="chat", may be empty.
func Write(w io.Writer, list []SLO, selector string) error {
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	seen := map[string]bool{}
	for i := range list {
		if class := list[i].Class; !seen[class] {
			seen[class] = true
			d := document{APIVersion: apiVersion, Kind: "Service", Metadata: metadata{Name: Name(class), DisplayName: class}, Spec: spec{Description: "Traffic class " + class}}
			if err := encoder.Encode(d); err != nil {
				return fmt.Errorf("openslo: %w", err)
			}
		}
		if err := encoder.Encode(list[i].document(selector)); err != nil {
			return fmt.Errorf("openslo: %w", err)
		}
	}
	return encoder.Close()
}

// Name makes an RFC 1123 label of a name, as OpenSLO wants: lower case letters,
// digits and hyphens, at most 63 characters.
func Name(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := b.String()
	if len(name) > 63 {
		name = name[:63]
	}
	if name = strings.Trim(name, "-"); name == "" {
		return "unnamed"
	}
	return name
}

func (s *SLO) document(selector string) document {
	return document{
		APIVersion: apiVersion, Kind: "SLO",
		Metadata: metadata{Name: Name(s.Name), DisplayName: s.Name, Annotations: s.annotations()},
		Spec: spec{
			Description: s.describe(), Service: Name(s.Class), Indicator: s.indicator(selector),
			TimeWindow: []window{s.window()}, BudgetingMethod: s.Method,
			Objectives: []objective{s.objective()}, AlertPolicies: s.policies(),
		},
	}
}

// describe says in words what is promised.
func (s *SLO) describe() string {
	goal := string(s.Metric)
	switch {
	case s.Metric == slo.Goodput:
		goal = s.All.Text(config.SpanText)
	case s.Metric != slo.Availability:
		goal += " of at most " + config.SpanText(s.Objective.Threshold)
	}
	return fmt.Sprintf("%s of %s: %s", strings.Trim(config.Share.Format(s.Target), `"`), s.Class, goal)
}

func (s *SLO) annotations() map[string]string {
	out := map[string]string{keyMetric: string(s.Metric)}
	put := func(key, value string, given bool) {
		if given {
			out[key] = value
		}
	}
	put(keyThreshold, config.SpanText(s.Objective.Threshold), s.Objective.Threshold > 0)
	put(keyAll, fmt.Sprintf("ttft=%s tpot=%s e2e=%s", config.SpanText(s.All.TTFT), config.SpanText(s.All.TPOT), config.SpanText(s.All.E2E)), s.Metric == slo.Goodput)
	put(keyOnly, strings.Join(s.Only, ","), len(s.Only) > 0)
	put(keyExclude, strings.Join(s.Exclude, ","), len(s.Exclude) > 0)
	put(keySkip, strings.Join(s.Skip, ","), len(s.Skip) > 0)
	put(keyMinPrompt, strconv.Itoa(int(s.MinPrompt)), s.MinPrompt > 0)
	put(keyMaxPrompt, strconv.Itoa(int(s.MaxPrompt)), s.MaxPrompt > 0)
	put(keySpent, number(s.Spent), s.Spent > 0)
	put(keyPolicy, fmt.Sprintf("warn=%s freeze=%s stop=%s", number(s.Policy.Warn), number(s.Policy.Freeze), number(s.Policy.Stop)), s.Policy != slo.Policy{})
	put(keyMinEvents, strconv.FormatInt(s.MinEvents, 10), s.MinEvents > 0)
	if s.Adaptive != nil {
		out[keyAdaptive] = adaptiveText(s.Adaptive)
	}
	put(keyStandard, "true", len(s.Alerts) == 0)
	return out
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func query(q string) *metricRef {
	return &metricRef{MetricSource: source{Type: "Prometheus", Spec: map[string]string{"query": q}}}
}

// indicator measures by vLLM's metrics where they can; else the query is the name
// of what a gateway would have to count.
func (s *SLO) indicator(selector string) *indicator {
	in := &indicator{Metadata: metadata{Name: Name(s.Name) + "-sli"}}
	h, known := promrules.HistogramOf(s.Metric)
	if s.Threshold && known {
		in.Spec.ThresholdMetric = query(fmt.Sprintf("histogram_quantile(%s, sum by (le) (rate(%s_bucket%s[5m])))", number(s.Target), h.Name, braced(selector)))
		return in
	}
	good, all, _, ok := promrules.Ratio(&s.Objective, selector, "5m")
	if !ok {
		class := fmt.Sprintf("{class=%q}", s.Class)
		good, all = "sum(rate(sim_good_events_total"+class+"[5m]))", "sum(rate(sim_events_total"+class+"[5m]))"
	}
	in.Spec.RatioMetric = &ratio{Counter: true, Good: query(good), Total: query(all)}
	return in
}

func braced(selector string) string {
	if selector == "" {
		return ""
	}
	return "{" + selector + "}"
}

func (s *SLO) window() window {
	w := window{Duration: promrules.Span(s.Window), IsRolling: s.Rolling}
	if !s.Rolling { // a simulated calendar has weekdays, no dates: the first Monday of 2024
		w.Calendar = &calendar{StartTime: "2024-01-01 00:00:00", TimeZone: "UTC"}
	}
	return w
}

func (s *SLO) objective() objective {
	target := s.Target
	o := objective{DisplayName: s.Name, Target: &target}
	if s.Threshold {
		value := s.Objective.Threshold.Seconds()
		o.Op, o.Value = "lte", &value
	}
	if s.Method == Timeslices {
		slice := s.SliceTarget
		o.TimeSliceTarget, o.TimeSliceWindow = &slice, promrules.Span(s.SliceWindow)
	}
	return o
}

// policies writes each pair as a policy of its own: OpenSLO v1 allows one
// condition per policy and one window per condition, so the short window is an
// annotation of the condition.
func (s *SLO) policies() []policyRef {
	var out []policyRef
	for i, p := range s.Pairs() {
		name := fmt.Sprintf("%s-burn-%d", Name(s.Name), i+1)
		c := conditionRef{
			Kind:     "AlertCondition",
			Metadata: metadata{Name: name + "-condition", Annotations: map[string]string{keyShort: promrules.Span(p.Short)}},
			Spec: spec{Severity: p.Severity, Condition: &condition{
				Kind: "burnrate", Op: "gte", Threshold: p.Factor, LookbackWindow: promrules.Span(p.Long), AlertAfter: "0m",
			}},
		}
		out = append(out, policyRef{Kind: "AlertPolicy", Metadata: metadata{Name: name, DisplayName: p.Name()},
			Spec: spec{AlertWhenBreaching: true, Conditions: []conditionRef{c}, NotificationTargets: []any{}}})
	}
	return out
}
