package report

import (
	"math"

	"slosim/sim"
	"slosim/sim/clock"
	"slosim/sim/slo"
	"slosim/sim/stats"
)

type summaryPhase struct {
	Name    string         `json:"name"`
	FromS   amount         `json:"from_s"`
	ToS     amount         `json:"to_s"`
	Classes []summaryClass `json:"classes"`
}

type summaryClass struct {
	Class        string              `json:"class"`
	Cohort       string              `json:"cohort"`
	N            int64               `json:"n"`
	Outcomes     summaryOutcomes     `json:"outcomes"`
	TTFT         summaryDistribution `json:"ttft_s"`
	Answered     summaryDistribution `json:"ttft_answered_s"` // of the answered requests only
	TTFTByPrompt []summaryBand       `json:"ttft_by_prompt"`  // of the answered requests, by prompt length
	TPOT         summaryDistribution `json:"tpot_s"`
	E2E          summaryDistribution `json:"e2e_s"`
	Stages       summaryStages       `json:"stages_s"`
	PromptTokens summaryDistribution `json:"prompt_tokens"`
	OutputTokens summaryDistribution `json:"output_tokens"`
}

// thinP99 is the number of requests per replication below which a P99 is marked.
const thinP99 = 1000

// summaryBand is TTFT of one range of prompt lengths: over the last one's edge up
// to UpTo, which is null for the last.
type summaryBand struct {
	UpTo amount    `json:"up_to_tokens"`
	N    int64     `json:"n"`
	P50  *estimate `json:"p50_s"` // null = no request
	P99  *estimate `json:"p99_s"`
}

type summaryOutcomes struct {
	OK       int64 `json:"ok"`
	Rejected int64 `json:"rejected"`
	TimedOut int64 `json:"timed_out"`
	Failed   int64 `json:"failed"`
	Late     int64 `json:"undecided_late"`
	Young    int64 `json:"undecided_young"`
	Retries  int64 `json:"retries"`
	Lost     int64 `json:"given_up"`

	Refused []summaryRefusal `json:"rejected_by_reason,omitempty"` // of rejected
}

type summaryDistribution struct {
	Mean     *estimate `json:"mean"`
	P50      *estimate `json:"p50"`
	P90      *estimate `json:"p90"`
	P95      *estimate `json:"p95"`
	P99      *estimate `json:"p99"`
	P999     *estimate `json:"p999"`
	Max      amount    `json:"max"`
	Exact    bool      `json:"exact"`
	RelError amount    `json:"rel_error"`
}

type summaryStages struct {
	Network *estimate `json:"network"`
	Queue   *estimate `json:"queue"`
	Prefill *estimate `json:"prefill"`
	Decode  *estimate `json:"decode"`
	Publish *estimate `json:"publish"`
}

type summarySLO struct {
	Name             string            `json:"name"`
	Class            string            `json:"class"`
	Only             []string          `json:"only,omitempty"`
	Exclude          []string          `json:"exclude,omitempty"`
	Metric           slo.Metric        `json:"metric"`
	ThresholdS       amount            `json:"threshold_s"`
	Target           amount            `json:"target"`
	WindowS          amount            `json:"window_s"`
	Status           sim.Status        `json:"status"`
	Reason           string            `json:"reason"`
	MoreReplications int               `json:"more_replications,omitempty"`
	Judged           string            `json:"judged_phase"` // that status and attained are about
	Attained         *estimate         `json:"attained"`
	Good             int64             `json:"good"`
	Bad              int64             `json:"bad"`
	IdleFloor        *estimate         `json:"idle_floor"`
	IdleFloorTokens  int32             `json:"idle_floor_prompt_tokens"`
	BadBy            []summaryBlame    `json:"bad_by"`
	BadText          string            `json:"bad_text"`
	Phases           []summarySLOPhase `json:"phases"`
	Budget           summaryBudget     `json:"budget"`
	Alerts           []summaryAlert    `json:"alerts"`
	All              *summaryLimits    `json:"all,omitempty"` // thresholds of goodput
	MinPrompt        int32             `json:"min_prompt,omitempty"`
	MaxPrompt        int32             `json:"max_prompt,omitempty"` // exclusive
	Rolling          bool              `json:"rolling,omitempty"`
	Policy           []summaryPolicy   `json:"policy,omitempty"` // first replication
	Weeks            []summaryWeek     `json:"weeks,omitempty"`
	Adaptive         *summaryAdaptive  `json:"adaptive,omitempty"`
}

type summaryBlame struct {
	Cohort string `json:"cohort"`
	Stage  string `json:"stage"`
	Share  amount `json:"share"`
	Count  int64  `json:"count"`
}

type summarySLOPhase struct {
	Phase    string    `json:"phase"`
	Good     int64     `json:"good"`
	Bad      int64     `json:"bad"`
	BadShare *estimate `json:"bad_share"`
}

type summaryBudget struct {
	Total          amount        `json:"total"`           // bad events allowed in the window
	WindowRequests amount        `json:"window_requests"` // expected in the window
	SpentAtStart   amount        `json:"spent_at_start"`
	Spent          *estimate     `json:"spent"`
	Projected      *estimate     `json:"projected"`
	Unstable       bool          `json:"unstable"`
	Needs          string        `json:"needs,omitempty"`
	WeekAlarm      bool          `json:"week_alarm"`
	BadMinutes     *estimate     `json:"bad_minutes"`
	AllowedMinutes amount        `json:"allowed_minutes"`
	Marks          []summaryMark `json:"marks"`
}

type summaryMark struct {
	Pct       amount  `json:"pct"`
	TS        *amount `json:"t_s"` // null = not reached
	Lo        *amount `json:"lo"`
	Hi        *amount `json:"hi"`
	Simulated bool    `json:"simulated"` // false = projected
	When      string  `json:"when,omitempty"`
}

type summaryAlert struct {
	Name      string  `json:"name"`
	Severity  string  `json:"severity"`
	FiredS    amount  `json:"fired_s"`
	ResolvedS *amount `json:"resolved_s"` // null = still firing at the end
}

// summaryITL is a pool's inter-token latency in a phase, over all tokens.
type summaryITL struct {
	Phase string    `json:"phase"`
	P50   *estimate `json:"p50"`
	P90   *estimate `json:"p90"`
	P99   *estimate `json:"p99"`
	P999  *estimate `json:"p999"`
	Max   amount    `json:"max"`
}

func summaryITLs(list []sim.PhaseITL) []summaryITL {
	out := []summaryITL{}
	for _, x := range list {
		out = append(out, summaryITL{x.Phase, toEstimate(x.P50, 0), toEstimate(x.P90, 0), toEstimate(x.P99, 0), toEstimate(x.P999, 0), amount(x.Max)})
	}
	return out
}

type summaryPool struct {
	Name           string        `json:"name"`
	Replicas       int           `json:"replicas"`
	GPUs           int           `json:"gpus"`
	KVBlocks       int32         `json:"kv_blocks"`
	KVTokens       int64         `json:"kv_tokens"`
	KVPeak         amount        `json:"kv_peak"`
	Preemptions    *estimate     `json:"preemptions"`
	LostTokens     *estimate     `json:"lost_tokens"`
	Busy           *estimate     `json:"busy"`
	PrefixHit      *estimate     `json:"prefix_hit"`
	PrefixLoaded   *estimate     `json:"prefix_loaded"` // the part of prefix_hit that came back from host memory
	LinkUse        *estimate     `json:"link_use"`
	ITL            []summaryITL  `json:"itl_s"`
	Load           []summaryLoad `json:"load"`
	SaturationPerS amount        `json:"saturation_per_s"`
	PeakLoad       amount        `json:"peak_load"`
	ClockMHz       *estimate     `json:"clock_mhz"`
	ClockMinMHz    amount        `json:"clock_min_mhz"`
	PowerW         *estimate     `json:"power_w"`
	TempC          *estimate     `json:"temp_c"`
	TempMaxC       amount        `json:"temp_max_c"`
	GPUHours       amount        `json:"gpu_hours"`
	USD            amount        `json:"usd"`
	USDPerMonth    amount        `json:"per_month_usd"`
	EnergyKWh      amount        `json:"energy_kwh"`
	IdleGPUHours   amount        `json:"idle_gpu_hours"` // of gpu_hours: no step ran
	IdleUSD        amount        `json:"idle_usd"`
	Unused         amount        `json:"unused_share"` // of the paid capacity, by its mean load
	Serving        *estimate     `json:"serving"`      // replicas, mean over time
	Paid           *estimate     `json:"paid"`
	StepShares     stepShares    `json:"step_shares"`
}

type stepShares struct {
	Gemm        amount `json:"gemm"`
	Attention   amount `json:"attention"`
	Collectives amount `json:"collectives"`
	SmallOps    amount `json:"small_ops"`
	Head        amount `json:"head"`
	Host        amount `json:"host"`
}

type summaryLoad struct {
	Phase          string `json:"phase"`
	MeanPerS       amount `json:"mean_per_s"`
	PeakPerS       amount `json:"peak_per_s"`
	SaturationPerS amount `json:"saturation_per_s"`
	Peak           amount `json:"peak"` // peak rate ÷ saturation
}

func (s *story) summaryPhase(p *sim.Phase) summaryPhase {
	out := summaryPhase{p.Name, amount(p.From.Seconds()), amount(p.To.Seconds()), []summaryClass{}}
	for i := range p.Classes {
		c := &p.Classes[i]
		times := func(d *sim.Distribution) summaryDistribution { return toDistribution(d, s.r.End) }
		bands := []summaryBand{}
		for _, b := range c.ByLength {
			b.P99.Thin = b.N < int64(thinP99*b.P99.R)
			bands = append(bands, summaryBand{amount(b.UpTo), b.N, toEstimate(b.P50, 0), toEstimate(b.P99, 0)})
		}
		out.Classes = append(out.Classes, summaryClass{
			Class: c.Class, Cohort: c.Cohort, N: c.N, Outcomes: summaryOutcomesOf(c.Outcomes),
			TTFT: times(&c.TTFT), Answered: times(&c.Answered), TTFTByPrompt: bands, TPOT: times(&c.TPOT), E2E: times(&c.E2E),
			Stages: summaryStages{toEstimate(c.Stages.Network, 0), toEstimate(c.Stages.Queue, 0), toEstimate(c.Stages.Prefill, 0),
				toEstimate(c.Stages.Decode, 0), toEstimate(c.Stages.Publish, 0)},
			PromptTokens: toDistribution(&c.Prompt, 0), OutputTokens: toDistribution(&c.Output, 0),
		})
	}
	return out
}

func toDistribution(d *sim.Distribution, beyond clock.Time) summaryDistribution {
	to := func(e stats.Estimate) *estimate { return toEstimate(e, beyond) }
	return summaryDistribution{Mean: to(d.Mean), P50: to(d.P50), P90: to(d.P90), P95: to(d.P95), P99: to(d.P99), P999: to(d.P999),
		Max: amount(d.Max), Exact: d.Exact, RelError: amount(d.RelError)}
}

func (s *story) summarySLO(o *sim.SLO) summarySLO {
	out := summarySLO{
		Name: o.Name, Class: o.Class, Only: o.Only, Exclude: o.Exclude, Metric: o.Metric,
		ThresholdS: amount(o.Threshold.Seconds()), Target: amount(o.Target), WindowS: amount(o.Window.Seconds()),
		Status: o.Status, Judged: o.Judged, Reason: o.Reason, MoreReplications: o.MoreReps,
		Attained: toEstimate(o.Attained, 0), Good: o.Good, Bad: o.Bad,
		IdleFloor: toEstimate(o.IdleFloor, 0), IdleFloorTokens: o.IdleLength,
		BadBy: []summaryBlame{}, BadText: o.BlameText, Phases: []summarySLOPhase{}, Alerts: []summaryAlert{},
		Budget: s.summaryBudget(o), All: toLimits(o.All), MinPrompt: o.MinPrompt, MaxPrompt: o.MaxPrompt, Rolling: o.Rolling,
		Policy: s.summaryPolicies(o), Weeks: summaryWeeks(o), Adaptive: toAdaptive(o),
	}
	for _, b := range o.Blame {
		out.BadBy = append(out.BadBy, summaryBlame{b.Cohort, b.Stage, amount(b.Share), b.Count})
	}
	for i, p := range o.Phases {
		if i < len(s.r.Phases) {
			out.Phases = append(out.Phases, summarySLOPhase{s.r.Phases[i].Name, p.Good, p.Bad, toEstimate(p.BadShare, 0)})
		}
	}
	for _, a := range o.Alerts {
		alert := summaryAlert{Name: a.Name, Severity: a.Severity, FiredS: amount(a.Fired.Seconds())}
		if a.Resolved != clock.Never {
			alert.ResolvedS = toAmount(a.Resolved)
		}
		out.Alerts = append(out.Alerts, alert)
	}
	return out
}

func (s *story) summaryBudget(o *sim.SLO) summaryBudget {
	b := &o.Budget
	out := summaryBudget{
		Total: amount(b.Total), WindowRequests: amount(b.WindowN), SpentAtStart: amount(o.Spent),
		Spent: toEstimate(b.Spent, 0), Projected: toEstimate(b.Projected, 0), Unstable: b.Unstable, Needs: b.Needs,
		WeekAlarm: b.WeekAlarm, BadMinutes: toEstimate(b.BadMinutes, 0), AllowedMinutes: amount(b.AllowedMinutes),
		Marks: []summaryMark{},
	}
	for _, m := range b.Marks {
		mark := summaryMark{Pct: amount(m.Percent), Simulated: m.InSpan}
		if m.Reached {
			mark.TS, mark.Lo, mark.Hi, mark.When = toAmount(m.At), toAmount(m.Lo), toAmount(m.Hi), s.when(m.At)
		}
		if goneBefore(o, m.Percent) {
			mark.When = "before the run"
		}
		out.Marks = append(out.Marks, mark)
	}
	return out
}

// unknownIfZero is a load or a price, which is null where the traffic has no
// closed form or the pool no price.
func unknownIfZero(v float64) amount {
	if v == 0 {
		return amount(math.NaN())
	}
	return amount(v)
}

func toAmount(t clock.Time) *amount {
	v := amount(t.Seconds())
	return &v
}

func toPool(p *sim.PoolResult) summaryPool {
	out := summaryPool{
		Name: p.Name, Replicas: p.Replicas, GPUs: p.GPUs, KVBlocks: p.KVBlocks, KVTokens: p.KVTokens, KVPeak: amount(p.KVPeak),
		Preemptions: toEstimate(p.Preemptions, 0), LostTokens: toEstimate(p.LostTokens, 0), Busy: toEstimate(p.Busy, 0), PrefixHit: toEstimate(p.PrefixHit, 0), PrefixLoaded: toEstimate(p.PrefixLoaded, 0), LinkUse: toEstimate(p.LinkUse, 0), ITL: summaryITLs(p.ITL),
		Load: []summaryLoad{}, SaturationPerS: unknownIfZero(p.SaturationRate), PeakLoad: unknownIfZero(p.PeakLoad),
		ClockMHz: toEstimate(p.ClockMHz, 0), ClockMinMHz: amount(p.ClockMinMHz), PowerW: toEstimate(p.PowerW, 0),
		TempC: toEstimate(p.TempC, 0), TempMaxC: amount(p.TempMaxC), GPUHours: amount(p.GPUHours),
		USD: unknownIfZero(p.USD), USDPerMonth: unknownIfZero(p.USDPerMonth), EnergyKWh: amount(p.EnergyKWh),
		IdleGPUHours: amount(p.IdleGPUHours), IdleUSD: unknownIfZero(p.IdleUSD), Unused: amount(p.Unused), Serving: toEstimate(p.Serving, 0), Paid: toEstimate(p.Paid, 0),
		StepShares: stepShares{amount(p.Split.Gemm), amount(p.Split.Attn), amount(p.Split.Comm), amount(p.Split.Small), amount(p.Split.Head), amount(p.Split.Host)},
	}
	for _, l := range p.Load {
		out.Load = append(out.Load, summaryLoad{l.Phase, unknownIfZero(l.MeanRate), unknownIfZero(l.PeakRate), unknownIfZero(l.Saturation), unknownIfZero(l.PeakRate / l.Saturation)})
	}
	return out
}
