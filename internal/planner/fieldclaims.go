package planner

import (
	"context"
	"fmt"
	"io"
	"strings"

	"slosim/experiments"
	"slosim/internal/report"
	"slosim/sim"
	"slosim/sim/stats"
)

// FieldClaims are figures that the field repeats, each with what simulation says.
type FieldClaims struct{ tables []report.Grid }

// service is one service that a claim is tried on.
type service struct {
	model, gpu, pool string // pool: further lines of [[pool]]
	tp               int
	rate             float64
	prompt, output   float64
	tail             bool // lengths with P99 = 4 × mean, instead of all equal
	minutes, warmup  int
}

func (s service) experiment() (sim.Experiment, error) {
	length := func(m float64) string {
		if !s.tail {
			return fmt.Sprintf("%g", m)
		}
		return fmt.Sprintf(`{ dist = "lognormal", mean = %g, p99 = %g }`, m, 4*m)
	}
	text := fmt.Sprintf("duration = \"%dm\"\nwarmup = \"%dm\"\nreplications = 5\nseed = 21\n[[pool]]\nname = \"main\"\nmodel = %q\ngpu = %q\ntensor_parallel = %d\n%s\n"+
		"[[traffic]]\nclass = \"all\"\nrate = \"%.9g/s\"\nprompt = %s\noutput = %s\n", s.minutes, s.warmup, s.model, s.gpu, s.tp, s.pool, s.rate, length(s.prompt), length(s.output))
	for _, o := range []string{"ttft 2s", "tpot 50ms"} {
		metric, limit, _ := strings.Cut(o, " ")
		text += fmt.Sprintf("[[slo]]\nname = %q\nclass = \"all\"\nmetric = %q\nthreshold = %q\nobjective = \"99%%\"\n", strings.ToUpper(metric), metric, limit)
	}
	e, _, err := experiments.Parse("claim.toml", ".", text)
	return e, err
}

type claimsLab struct {
	*lab
	ctx context.Context
}

func (l *claimsLab) points(stage string, list []service) ([]*Point, error) {
	var all []sim.Experiment
	for _, s := range list {
		e, err := s.experiment()
		if err != nil {
			return nil, fmt.Errorf("%s at tensor_parallel %d: %w", s.model, s.tp, err)
		}
		all = append(all, e)
	}
	points, err := l.run(l.ctx, stage, all)
	for _, p := range points {
		if err == nil {
			err = p.Err
		}
	}
	return points, err
}

// TryFieldClaims simulates every one of them.
func TryFieldClaims(ctx context.Context, o Options) (*FieldClaims, error) {
	l := &claimsLab{newLab(o), ctx}
	f := &FieldClaims{}
	for _, do := range []func(*claimsLab) (report.Grid, error){sevenB, seventyB, fp8KV, utilisationRule, thermalTPOT, linearPrefill, widerTP} {
		g, err := do(l)
		if err != nil {
			return nil, err
		}
		f.tables = append(f.tables, g)
	}
	return f, nil
}

var shapes = [][2]float64{{200, 64}, {500, 128}, {1000, 256}, {2000, 256}, {8000, 256}}

func rateClaim(l *claimsLab, title, model string, tp int, rate float64) (report.Grid, error) {
	g := report.Grid{Caption: title, Head: []string{"prompt + output", "at that rate", "saturation", "load", "TTFT P99", "TPOT P95", "claim"}, Left: 1}
	var list []service
	for _, s := range shapes {
		list = append(list, service{model: model, gpu: "h100-sxm-80gb", tp: tp, rate: rate, prompt: s[0], output: s[1], tail: true, minutes: 4, warmup: 3})
	}
	points, err := l.points(title, list)
	if err != nil {
		return g, err
	}
	good := 0
	for i, p := range points {
		ok, binding := p.holds()
		text := "holds"
		if !ok {
			text = "fails: " + binding
		} else {
			good++
		}
		g.Rows = append(g.Rows, []string{fmt.Sprintf("%g + %g tokens", shapes[i][0], shapes[i][1]), report.Number(rate) + "/s", perSecond(p.of(func(r *sim.Result) float64 { return r.Pools[0].SaturationRate })),
			report.Percent(p.of(peakLoad).V), interval(p.of(ttft(p99))), interval(p.of(tpot(p95))), text})
	}
	g.Notes = []string{fmt.Sprintf("Holds in %d of %d shapes (TTFT ≤ 2 s and TPOT ≤ 50 ms for 99 %%): a rate without lengths is no capacity.", good, len(points))}
	return g, nil
}

func perSecond(e stats.Estimate) string { return report.Number(e.V) + "/s" }

func sevenB(l *claimsLab) (report.Grid, error) {
	return rateClaim(l, "“A 7B model does 50 QPS on one card” (simulated: llama-3.1-8b, one H100)", "llama-3.1-8b", 1, 50)
}

func seventyB(l *claimsLab) (report.Grid, error) {
	return rateClaim(l, "“70B at TP8 tops out at 20 QPS” (simulated: llama-3.3-70b, 8 × H100; it tops out there if 20/s is near saturation)", "llama-3.3-70b", 8, 20)
}

func fp8KV(l *claimsLab) (report.Grid, error) {
	g := report.Grid{Caption: "“KV quantisation carries 20 % more concurrency” (FP8 against BF16, one replica overloaded)", Head: []string{"service", "KV tokens", "running at once", "requests/s served"}, Left: 1,
		Notes: []string{"Concurrency is what memory holds, and one byte instead of two doubles it. What is served grows by less: more requests at once make each step longer. A fifth is near the throughput, not the concurrency."}}
	base := []service{
		{model: "llama-3.1-8b", gpu: "h100-sxm-80gb", tp: 1, rate: 60, prompt: 1000, output: 256},
		{model: "llama-3.1-8b", gpu: "h100-sxm-80gb", tp: 1, rate: 12, prompt: 8000, output: 512},
		{model: "llama-3.3-70b", gpu: "h100-sxm-80gb", tp: 4, rate: 12, prompt: 2000, output: 512},
	}
	var list []service
	for _, s := range base {
		s.tail, s.minutes, s.warmup = true, 4, 3
		q := s
		q.pool = `kv_dtype = "fp8"`
		list = append(list, s, q)
	}
	points, err := l.points("FP8 KV", list)
	if err != nil {
		return g, err
	}
	for i, s := range base {
		a, b := points[2*i], points[2*i+1]
		ratio := func(f func(*sim.Result) float64) string { return signed(b.of(f).V/a.of(f).V - 1) }
		g.Rows = append(g.Rows, []string{fmt.Sprintf("%s, TP%d, %g + %g tokens", s.model, s.tp, s.prompt, s.output), ratio(func(r *sim.Result) float64 { return float64(r.Pools[0].KVTokens) }), ratio(running), ratio(served)})
	}
	return g, nil
}

func utilisationRule(l *claimsLab) (report.Grid, error) {
	g := report.Grid{Caption: "“70–80 % utilisation is latency-friendly; at 95 % P99 has exploded” (load of one replica)", Head: []string{"service", "load", "TTFT P99", "TPOT P95", "SLOs"}, Left: 1,
		Notes: []string{"Utilisation is load: rate ÷ saturation. TPOT gives way long before TTFT explodes; which load is safe depends on lengths and objectives. `sim curve` draws it for an experiment."}}
	base := []service{{model: "llama-3.1-8b", tp: 1, prompt: 500, output: 256}, {model: "llama-3.1-8b", tp: 1, prompt: 4000, output: 128}, {model: "llama-3.3-70b", tp: 8, prompt: 2000, output: 256}}
	for i := range base {
		base[i].gpu, base[i].tail, base[i].minutes, base[i].warmup, base[i].rate = "h100-sxm-80gb", true, 4, 3, 5
	}
	probe, err := l.points("utilisation rule", base)
	if err != nil {
		return g, err
	}
	loads := []float64{.3, .7, .8, .95}
	var list []service
	for i, s := range base {
		for _, load := range loads {
			s.rate = load * probe[i].Runs[0].Pools[0].SaturationRate
			list = append(list, s)
		}
	}
	points, err := l.points("utilisation rule", list)
	if err != nil {
		return g, err
	}
	for i, p := range points {
		s := base[i/len(loads)]
		text := "met"
		if ok, binding := p.holds(); !ok {
			text = "missed: " + binding
		}
		g.Rows = append(g.Rows, []string{fmt.Sprintf("%s, TP%d, %g + %g tokens", s.model, s.tp, s.prompt, s.output), report.Percent(loads[i%len(loads)]), interval(p.of(ttft(p99))), interval(p.of(tpot(p95))), text})
	}
	return g, nil
}

func thermalTPOT(l *claimsLab) (report.Grid, error) {
	g := report.Grid{Caption: "“TPOT is 8 % worse after 30 minutes; the clock falls from 1980 to 1830 MHz” (from cold, one H100 of llama-3.1-8b)", Head: []string{"mix, inlet air", "TPOT P50, minutes 1–5", "minutes 30–40", "change", "clock at the end", "hottest"}, Left: 1,
		Notes: []string{"The power cap lowers the clock at once, heat only after minutes. Decode reads memory and hardly follows the clock; what slows down is prefill, and through it every step that carries one."}}
	var list []service
	var names []string
	for _, m := range []service{{rate: 6, prompt: 4000, output: 100}, {rate: 8, prompt: 500, output: 500}} {
		for _, air := range []int{25, 48} {
			m.model, m.gpu, m.tp, m.tail, m.minutes, m.warmup = "llama-3.1-8b", "h100-sxm-80gb", 1, true, 40, 0
			m.pool = fmt.Sprintf("thermal = { ambient = %d }", air)
			list = append(list, m)
			names = append(names, fmt.Sprintf("%g + %g tokens at %g/s, %d °C", m.prompt, m.output, m.rate, air))
		}
	}
	points, err := l.points("heat", list)
	if err != nil {
		return g, err
	}
	between := func(series func(*sim.Result) []float64, from, to float64) func(*sim.Result) float64 {
		return func(r *sim.Result) float64 {
			s := series(r)
			var part []float64
			for i, t := range r.Series.T {
				if m := float64(t) / 60e9; m >= from && m < to {
					part = append(part, s[i])
				}
			}
			return average(part, 0)
		}
	}
	tpotOf := func(r *sim.Result) []float64 { return r.Series.Classes[0].TPOTP50 }
	for i, p := range points {
		early, late := p.of(between(tpotOf, 1, 5)), p.of(between(tpotOf, 30, 40))
		change := p.of(func(r *sim.Result) float64 { return between(tpotOf, 30, 40)(r)/between(tpotOf, 1, 5)(r) - 1 })
		g.Rows = append(g.Rows, []string{names[i], interval(early), interval(late), fmt.Sprintf("%s [%s, %s]", signed(change.V), signed(change.Lo), signed(change.Hi)),
			fmt.Sprintf("%.0f MHz", p.of(between(func(r *sim.Result) []float64 { return r.Series.Pools[0].ClockMHz }, 35, 40)).V), fmt.Sprintf("%.0f °C", p.of(func(r *sim.Result) float64 { return r.Pools[0].TempMaxC }).V)})
	}
	return g, nil
}

// lone is a service at ease: so few requests that none meets another.
func lone(model, gpu string, tp int, prompt float64) service {
	return service{model: model, gpu: gpu, tp: tp, rate: .02, prompt: prompt, output: 64, minutes: 60, pool: "thermal = { enabled = false }"}
}

func linearPrefill(l *claimsLab) (report.Grid, error) {
	g := report.Grid{Caption: "“Prefill is linear in prompt length” (lone requests, TTFT)", Head: []string{"service", "2K", "20K", "ratio", "linear would be"}, Left: 1,
		Notes: []string{"Two things pull apart: attention grows with the square of the length, and short prompts carry fixed costs (host, network of the all-reduce). The first makes it more than linear, the second less; which wins depends on model and TP."}}
	type one struct {
		model string
		tp    int
	}
	services := []one{{"llama-3.1-8b", 1}, {"llama-3.3-70b", 4}, {"llama-3.3-70b", 8}}
	var list []service
	for _, s := range services {
		list = append(list, lone(s.model, "h100-sxm-80gb", s.tp, 2000), lone(s.model, "h100-sxm-80gb", s.tp, 20000))
	}
	points, err := l.points("prefill", list)
	if err != nil {
		return g, err
	}
	for i, s := range services {
		a, b := points[2*i].of(ttft(p50)).V, points[2*i+1].of(ttft(p50)).V
		g.Rows = append(g.Rows, []string{fmt.Sprintf("%s, TP%d, H100", s.model, s.tp), seconds(a), seconds(b), report.Number(b / a), "10"})
	}
	return g, nil
}

func widerTP(l *claimsLab) (report.Grid, error) {
	g := report.Grid{Caption: "“Wider TP can be slower” (lone requests of 500 and 8000 tokens)", Head: []string{"service", "TTFT, 500", "TTFT, 8000", "TPOT"}, Left: 1,
		Notes: []string{"Slower than the row above it where the all-reduce costs more than the halved work saves: without NVLink, and for small models."}}
	var list []service
	var names []string
	for _, s := range []struct {
		model, gpu string
		tps        []int
	}{{"llama-3.1-8b", "h100-sxm-80gb", []int{1, 2, 4, 8}}, {"llama-3.3-70b", "h100-sxm-80gb", []int{4, 8}}, {"llama-3.1-8b", "l40s", []int{1, 2, 4}}} {
		for _, tp := range s.tps {
			short, long := lone(s.model, s.gpu, tp, 500), lone(s.model, s.gpu, tp, 8000)
			if _, err := short.experiment(); err != nil {
				continue // does not fit, or the catalogue has no collectives for it
			}
			list, names = append(list, short, long), append(names, fmt.Sprintf("%s, TP%d, %s", s.model, tp, s.gpu))
		}
	}
	points, err := l.points("tensor parallelism", list)
	if err != nil {
		return g, err
	}
	for i, name := range names {
		a, b := points[2*i], points[2*i+1]
		g.Rows = append(g.Rows, []string{name, seconds(a.of(ttft(p50)).V), seconds(b.of(ttft(p50)).V), seconds(a.of(tpot(p50)).V)})
	}
	return g, nil
}

// Markdown writes docs/claims.md.
func (f *FieldClaims) Markdown(w io.Writer) {
	fmt.Fprint(w, "# Claims of the field, simulated\n\nGenerated by `sim validate --claims docs/claims.md`. Every figure is simulated with the catalogue's models and GPUs (how far those are off: [validation.md](validation.md));\n"+
		"in brackets the 95 % interval over five seeds. vLLM, BF16, Poisson arrivals, lengths with a P99 of four times the mean unless requests are lone.\n\n")
	for _, g := range f.tables {
		title := g.Caption
		g.Caption = ""
		fmt.Fprintf(w, "## %s\n\n", title)
		g.Markdown(w)
	}
}
