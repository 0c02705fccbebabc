package openslo

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"slosim/internal/config"
	"slosim/internal/promrules"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

// maxDocuments bounds a file.
const maxDocuments = 10_000

// Read reads the SLOs of a file of OpenSLO v1 documents, with notes on what they
// say that a simulation does not follow. All errors come at once.
func Read(r io.Reader, name string) ([]SLO, []string, error) {
	p := parser{file: name, services: map[string]string{}, indicators: map[string]indicatorSpec{}, policies: map[string]spec{}, conditions: map[string]conditionRef{}}
	decoder := yaml.NewDecoder(r)
	var docs []placed
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: this is no YAML: %w", name, err)
		}
		if len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
			continue
		}
		d := placed{line: node.Content[0].Line}
		if err := node.Decode(&d.document); err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %w", name, d.line, err)
		}
		if docs = append(docs, d); len(docs) > maxDocuments {
			return nil, nil, fmt.Errorf("%s: more than %d documents", name, maxDocuments)
		}
	}
	for _, d := range docs {
		p.index(d)
	}
	var out []SLO
	for _, d := range docs {
		if d.Kind == "SLO" {
			out = append(out, p.slos(d)...)
		}
	}
	if len(out) == 0 && len(p.errs) == 0 {
		p.fail(placed{line: 1}, "there is no document of kind SLO")
	}
	return out, p.notes, errors.Join(p.errs...)
}

type placed struct {
	document
	line int
}

// parser keeps what documents refer to by name.
type parser struct {
	file       string
	services   map[string]string // name → display name
	indicators map[string]indicatorSpec
	policies   map[string]spec
	conditions map[string]conditionRef
	errs       []error
	notes      []string
}

func (p *parser) fail(d placed, format string, args ...any) {
	what := ""
	if d.Metadata.Name != "" {
		what = fmt.Sprintf(" %s %q:", d.Kind, d.Metadata.Name)
	}
	p.errs = append(p.errs, fmt.Errorf("%s:%d:%s %s", p.file, d.line, what, fmt.Sprintf(format, args...)))
}

func (p *parser) note(d placed, format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf("%s:%d: %s: %s", p.file, d.line, d.Metadata.Name, fmt.Sprintf(format, args...)))
}

func (p *parser) index(d placed) {
	if d.APIVersion != apiVersion {
		p.fail(d, "apiVersion is %q; this reads %q", d.APIVersion, apiVersion)
		return
	}
	switch d.Kind {
	case "Service":
		p.services[d.Metadata.Name] = cmp.Or(d.Metadata.DisplayName, d.Metadata.Name)
	case "SLI":
		p.indicators[d.Metadata.Name] = indicatorSpec{d.Spec.RatioMetric, d.Spec.ThresholdMetric}
	case "AlertPolicy":
		p.policies[d.Metadata.Name] = d.Spec
	case "AlertCondition":
		p.conditions[d.Metadata.Name] = conditionRef{Kind: d.Kind, Metadata: d.Metadata, Spec: d.Spec}
	case "SLO", "DataSource", "AlertNotificationTarget":
	default:
		p.fail(d, "kind %q is none of OpenSLO v1: Service, SLO, SLI, AlertPolicy, AlertCondition, DataSource, AlertNotificationTarget", d.Kind)
	}
}

// slos reads the objectives of an SLO document; several of them become several
// SLOs.
func (p *parser) slos(d placed) []SLO {
	if d.APIVersion != apiVersion {
		return nil
	}
	if len(d.Spec.Objectives) == 0 {
		p.fail(d, "spec.objectives is empty; give it one with a target, for example: target: 0.99")
		return nil
	}
	base := SLO{Method: cmp.Or(d.Spec.BudgetingMethod, Occurrences)}
	base.Name = cmp.Or(d.Metadata.DisplayName, d.Metadata.Name)
	base.Class = cmp.Or(p.services[d.Spec.Service], d.Spec.Service)
	switch base.Method {
	case Occurrences:
	case Timeslices:
		p.note(d, "Timeslices: the simulation counts requests; the budget in bad minutes stands beside it in the report")
	default:
		p.fail(d, "budgetingMethod is %q; allowed: Occurrences, Timeslices", base.Method)
	}
	p.timeWindow(d, &base)
	var out []SLO
	for i, o := range d.Spec.Objectives {
		s := base
		if len(d.Spec.Objectives) > 1 {
			s.Name = cmp.Or(o.DisplayName, fmt.Sprintf("%s %d", base.Name, i+1))
		}
		p.target(d, &s, o)
		p.metric(d, &s, o)
		p.annotated(d, &s)
		p.alerts(d, &s)
		out = append(out, s)
	}
	return out
}

func (p *parser) timeWindow(d placed, s *SLO) {
	if len(d.Spec.TimeWindow) != 1 {
		p.fail(d, "spec.timeWindow has %d entries; exactly one is wanted, for example: - duration: 30d", len(d.Spec.TimeWindow))
		return
	}
	w := d.Spec.TimeWindow[0]
	s.Rolling, s.Window = w.IsRolling, p.span(d, "timeWindow.duration", w.Duration)
}

// span reads OpenSLO's durations: a whole number and m, h, d, w, M, Q or Y.
func (p *parser) span(d placed, what, text string) clock.Duration {
	units := map[string]clock.Duration{"ms": clock.Millisecond, "s": clock.Second, "m": clock.Minute, "h": clock.Hour, "d": clock.Day, "w": clock.Week, "M": 30 * clock.Day, "Q": 91 * clock.Day, "Y": 365 * clock.Day}
	number := strings.TrimRight(text, "smhdwMQY")
	n, err := strconv.Atoi(number)
	unit := units[strings.TrimPrefix(text, number)]
	if err != nil || n < 0 || unit == 0 || n > int(366*clock.Day/unit)+1 {
		p.fail(d, "%s is %q; wanted is a whole number and m, h, d, w, M, Q or Y, for example: 30d", what, text)
		return 0
	}
	return clock.Duration(n) * unit
}

func (p *parser) target(d placed, s *SLO, o objective) {
	switch {
	case o.Target != nil:
		s.Target = *o.Target
	case o.TargetPercent != nil:
		s.Target = *o.TargetPercent / 100
	}
	if s.Target <= 0 || s.Target >= 1 {
		p.fail(d, "the target is %g; it lies between 0 and 1 (or give targetPercent between 0 and 100)", s.Target)
	}
	if s.Method == Timeslices {
		if o.TimeSliceTarget == nil || *o.TimeSliceTarget <= 0 || *o.TimeSliceTarget > 1 {
			p.fail(d, "Timeslices needs a timeSliceTarget between 0 and 1")
		} else {
			s.SliceTarget = *o.TimeSliceTarget
		}
		s.SliceWindow = p.span(d, "timeSliceWindow", cmp.Or(o.TimeSliceWindow, "1m"))
	}
}

// vllmName finds a histogram in a query; edge, the largest bucket it counts up to.
var (
	vllmName = regexp.MustCompile(`vllm:[a-z_]+?_seconds`)
	edge     = regexp.MustCompile(`le="([0-9.eE+-]+)"`)
)

// metric finds out what the indicator measures.
func (p *parser) metric(d placed, s *SLO, o objective) {
	spec := indicatorSpec{}
	switch {
	case d.Spec.Indicator != nil:
		spec = d.Spec.Indicator.Spec
	case d.Spec.IndicatorRef != "":
		found, ok := p.indicators[d.Spec.IndicatorRef]
		if !ok {
			p.fail(d, "indicatorRef %q names no SLI of this file", d.Spec.IndicatorRef)
			return
		}
		spec = found
	default:
		p.fail(d, "there is no indicator")
		return
	}
	text := ""
	switch {
	case spec.ThresholdMetric != nil:
		s.Threshold = true
		text = queries(spec.ThresholdMetric)
		if o.Value == nil || o.Op != "lte" && o.Op != "lt" {
			p.fail(d, "a thresholdMetric needs op: lte and a value in seconds")
			return
		}
		s.Objective.Threshold = clock.FromSeconds(*o.Value)
	case spec.RatioMetric != nil:
		text = queries(spec.RatioMetric.Good, spec.RatioMetric.Bad)
	default:
		p.fail(d, "the indicator has neither ratioMetric nor thresholdMetric")
		return
	}
	if m := d.Metadata.Annotations[keyMetric]; m != "" {
		if s.Metric = slo.Metric(m); !slices.Contains(slo.Metrics, s.Metric) {
			p.fail(d, "annotation %s is %q; allowed: %v", keyMetric, m, slo.Metrics)
		}
		return
	}
	m, ok := promrules.MetricOf(vllmName.FindString(text))
	switch {
	case ok:
		s.Metric = m
		if !s.Threshold {
			found := edge.FindStringSubmatch(text)
			v, err := strconv.ParseFloat(strings.Join(found[min(1, len(found)):], ""), 64)
			if err != nil {
				p.fail(d, "the query on good events names no bucket (le=\"2.5\"): what is its threshold?")
				return
			}
			s.Objective.Threshold = clock.FromSeconds(v)
		}
	case s.Threshold:
		p.fail(d, "its query names no histogram of vLLM; say what it measures in an annotation, for example: %s: ttft", keyMetric)
	default:
		s.Metric = slo.Availability
		p.note(d, "the ratio names no histogram of vLLM: taken as availability; an annotation %s: ttft says otherwise", keyMetric)
	}
}

// queries joins the texts of metric sources.
func queries(refs ...*metricRef) string {
	var parts []string
	for _, r := range refs {
		if r == nil {
			continue
		}
		keys := make([]string, 0, len(r.MetricSource.Spec))
		for k := range r.MetricSource.Spec {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			parts = append(parts, r.MetricSource.Spec[k])
		}
	}
	return strings.Join(parts, "\n")
}

// annotated reads back what only our own documents say.
func (p *parser) annotated(d placed, s *SLO) {
	a := d.Metadata.Annotations
	words := func(key string) []string {
		if a[key] == "" {
			return nil
		}
		return strings.Split(a[key], ",")
	}
	s.Only, s.Exclude, s.Skip = words(keyOnly), words(keyExclude), words(keySkip)
	num := func(key, text string) float64 {
		v, err := strconv.ParseFloat(cmp.Or(text, "0"), 64)
		if err != nil {
			p.fail(d, "annotation %s is %q, no number", key, a[key])
		}
		return v
	}
	s.MinPrompt, s.MaxPrompt = int32(num(keyMinPrompt, a[keyMinPrompt])), int32(num(keyMaxPrompt, a[keyMaxPrompt]))
	s.Spent, s.MinEvents = num(keySpent, a[keySpent]), int64(num(keyMinEvents, a[keyMinEvents]))
	fields := func(key string) map[string]string {
		out := map[string]string{}
		for _, f := range strings.Fields(a[key]) {
			k, v, _ := strings.Cut(f, "=")
			out[k] = v
		}
		return out
	}
	if f := fields(keyPolicy); len(f) > 0 {
		s.Policy = slo.Policy{Warn: num(keyPolicy, f["warn"]), Freeze: num(keyPolicy, f["freeze"]), Stop: num(keyPolicy, f["stop"])}
	}
	span := func(key, text string) clock.Duration {
		if text == "" {
			return 0
		}
		v, err := config.Span.Parse(text)
		if err != nil {
			p.fail(d, "annotation %s: %q %v", key, text, err)
		}
		return v
	}
	if text := a[keyThreshold]; text != "" {
		s.Objective.Threshold = span(keyThreshold, text)
	}
	s.Adaptive = p.adaptive(fields(keyAdaptive), span, num)
	if f := fields(keyAll); len(f) > 0 {
		s.All = slo.Limits{TTFT: span(keyAll, f["ttft"]), TPOT: span(keyAll, f["tpot"]), E2E: span(keyAll, f["e2e"])}
	}
}

// alerts reads the burn-rate conditions.
func (p *parser) alerts(d placed, s *SLO) {
	if d.Metadata.Annotations[keyStandard] == "true" {
		return
	}
	for _, ref := range d.Spec.AlertPolicies {
		policy := ref.Spec
		if ref.Ref != "" {
			found, ok := p.policies[ref.Ref]
			if !ok {
				p.fail(d, "alertPolicyRef %q names no AlertPolicy of this file", ref.Ref)
				continue
			}
			policy = found
		}
		for _, c := range policy.Conditions {
			if c.Ref != "" {
				found, ok := p.conditions[c.Ref]
				if !ok {
					p.fail(d, "conditionRef %q names no AlertCondition of this file", c.Ref)
					continue
				}
				c = found
			}
			p.pair(d, s, c)
		}
	}
}

func (p *parser) pair(d placed, s *SLO, c conditionRef) {
	if c.Spec.Condition == nil || c.Spec.Condition.Kind != "burnrate" {
		p.note(d, "alert condition %s is no burn rate: left out", c.Metadata.Name)
		return
	}
	long := p.span(d, "lookbackWindow", c.Spec.Condition.LookbackWindow)
	short := max(clock.Minute, long/12/clock.Minute*clock.Minute) // the usual short window
	if text := c.Metadata.Annotations[keyShort]; text != "" {
		short = p.span(d, keyShort, text)
	}
	severity := "page"
	if strings.EqualFold(c.Spec.Severity, "ticket") {
		severity = "ticket"
	}
	s.Alerts = append(s.Alerts, slo.Pair{Long: long, Short: short, Factor: c.Spec.Condition.Threshold, Severity: severity})
}
