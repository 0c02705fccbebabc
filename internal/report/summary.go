package report

import (
	"math"
	"strconv"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/stats"
)

// schema names the layout of summary.json. Its number grows when a key changes
// its meaning or goes; new keys may come without.
const schema = "slosim.summary/1"

// summary is summary.json. Times and spans are seconds, t_s counts from the
// start of the experiment, shares are 0..1. It holds no wall-clock time: two runs
// of the same experiment, seed and binary write the same bytes.
type summary struct {
	Schema       string               `json:"schema"`
	Experiment   summaryExperiment    `json:"experiment"`
	Seed         uint64               `json:"seed"`
	Seeds        []uint64             `json:"seeds"`
	Replications int                  `json:"replications"`
	Version      string               `json:"version"`
	Command      string               `json:"command"`
	Partial      bool                 `json:"partial"`
	EndS         amount               `json:"end_s"`
	Verdict      summaryVerdict       `json:"verdict"`
	Phases       []summaryPhase       `json:"phases"`
	SLOs         []summarySLO         `json:"slos"`
	SLAs         []summarySLA         `json:"slas,omitempty"`
	Held         []summaryHeld        `json:"held_changes,omitempty"`
	Stages       []summaryStageBudget `json:"stage_budgets,omitempty"`
	Pools        []summaryPool        `json:"pools"`
	Costs        []summaryCost        `json:"costs"`   // by pool and class
	Actions      []summaryAction      `json:"actions"` // of the control plane, first replication
	Findings     []summaryFinding     `json:"findings"`
	Warnings     []string             `json:"warnings"`
	NotModelled  []string             `json:"not_modelled"`
	Assumptions  []string             `json:"assumptions"`
	Simulated    summarySimulated     `json:"simulated"`
}

type summaryExperiment struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Question  string `json:"question"`
	Hash      string `json:"hash"`
	StartS    amount `json:"start_s"` // seconds from Monday 00:00
	DurationS amount `json:"duration_s"`
	WarmupS   amount `json:"warmup_s"`
}

type summaryVerdict struct {
	Status sim.Status `json:"status"`
	SLO    string     `json:"slo"`
	Reason string     `json:"reason"`
}

type summaryFinding struct {
	Title    string `json:"title"`
	Evidence string `json:"evidence"`
	Share    amount `json:"share"`

	Coincides bool `json:"coincides,omitempty"` // share is what went with it, by windows of time
}

// summarySimulated counts work over all replications, pre-roll included.
type summarySimulated struct {
	Requests int64 `json:"requests"`
	Steps    int64 `json:"steps"`
}

// amount is a number in JSON: nine significant digits, and null for NaN and
// infinities.
type amount float64

// MarshalJSON implements json.Marshaler.
func (a amount) MarshalJSON() ([]byte, error) {
	v := float64(a)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 8, 64), 64)
	if err != nil {
		return nil, err
	}
	return strconv.AppendFloat(nil, rounded, 'f', -1, 64), nil
}

// estimate is a number with its 95 % interval. V is null when there is no value;
// then beyond_s, if present, is the span that the value lies beyond (requests
// never answered). Lo and Hi are null when one replication gives no interval.
type estimate struct {
	V       amount  `json:"v"`
	Lo      amount  `json:"lo"`
	Hi      amount  `json:"hi"`
	N       int64   `json:"n"`
	R       int     `json:"r"`
	Thin    bool    `json:"thin,omitempty"`    // fewer observations than the statistic needs
	Batches int     `json:"batches,omitempty"` // of the only replication, that the interval is from
	BeyondS *amount `json:"beyond_s,omitempty"`
}

// estimate converts e; beyond is the span for a time that may be infinite, or 0.
func toEstimate(e stats.Estimate, beyond clock.Time) *estimate {
	if e.R == 0 {
		return nil
	}
	out := &estimate{V: amount(e.V), Lo: amount(e.Lo), Hi: amount(e.Hi), N: e.N, R: e.R, Thin: e.Thin, Batches: e.Batches}
	if e.R == 1 && e.Batches == 0 {
		out.Lo, out.Hi = amount(math.NaN()), amount(math.NaN())
	}
	if math.IsInf(e.V, 1) && beyond > 0 {
		span := amount(beyond.Seconds())
		out.BeyondS = &span
	}
	return out
}

// summaryJSON renders summary.json.
func summaryJSON(s *story) ([]byte, error) {
	r, e := s.r, s.r.Experiment
	out := summary{
		Schema: schema,
		Experiment: summaryExperiment{Name: e.Name, Title: e.Title, Question: e.Question, Hash: s.hash(),
			StartS: amount(e.Start.Seconds()), DurationS: amount(e.Duration.Seconds()), WarmupS: amount(e.Warmup.Seconds())},
		Seed: e.Seed, Seeds: orEmpty(r.Seeds), Replications: len(r.Seeds), Version: s.m.Version, Command: s.m.Command,
		Partial: r.Partial, EndS: amount(r.End.Seconds()),
		Verdict: summaryVerdict{r.Verdict.Status, r.Verdict.SLO, r.Verdict.Reason},
		Phases:  []summaryPhase{}, SLOs: []summarySLO{}, Pools: []summaryPool{}, Findings: []summaryFinding{},
		Warnings: orEmpty(r.Warnings), NotModelled: orEmpty(r.NotModelled), Assumptions: orEmpty(e.Assumptions),
		Simulated: summarySimulated{r.Requests, r.Steps},
		Stages:    s.summaryStageBudgets(), SLAs: s.summarySLAs(), Held: s.summaryHeld(),
	}
	for i := range r.Phases {
		out.Phases = append(out.Phases, s.summaryPhase(&r.Phases[i]))
	}
	for i := range r.SLOs {
		out.SLOs = append(out.SLOs, s.summarySLO(&r.SLOs[i]))
	}
	for i := range r.Pools {
		out.Pools = append(out.Pools, toPool(&r.Pools[i]))
	}
	out.Actions, out.Costs = s.summaryCluster()
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, summaryFinding{f.Title, f.Evidence, amount(f.Share), f.Coincides})
	}
	return readableJSON(out)
}

// hash identifies the resolved experiment; empty without provenance.
func (s *story) hash() string {
	if s.m.Provenance == nil {
		return ""
	}
	return s.m.Provenance.SHA256
}

func orEmpty[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}
