package experiments

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"slosim/sim"
)

// clusterRuns are the shipped experiments on the cluster, shortened.
var clusterRuns = []struct {
	name string
	sets []string
}{
	{"isolation-pool", nil}, {"tiers", nil}, {"n-minus-1", nil}, {"cold-start-burst", nil}, {"rolling-upgrade", nil},
	{"tp-too-wide", nil}, {"hot-aisle", []string{"duration=40m"}}, {"stale-metrics-herd", []string{"duration=4m", "warmup=1m"}},
}

// runOnce simulates one replication of an experiment.
func runOnce(t *testing.T, name string, sets ...string) *sim.Result {
	t.Helper()
	e, _ := load(t, name, append(sets, "replications=1")...)
	r, err := sim.Run(context.Background(), e, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestClusterExperimentsAreGolden: each of them still says what it said.
func TestClusterExperimentsAreGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates about 0.8 M requests")
	}
	var b strings.Builder
	for _, x := range clusterRuns {
		r := runOnce(t, x.name, x.sets...)
		fmt.Fprintf(&b, "### %s %s\n", x.name, strings.Join(x.sets, " "))
		for _, s := range r.SLOs {
			fmt.Fprintf(&b, "%s: %s, %d good, %d bad\n", s.Name, s.Status, s.Good, s.Bad)
		}
		for _, p := range r.Phases {
			for _, c := range p.Classes {
				fmt.Fprintf(&b, "%s, %s, %s: TTFT P50 %.4g s, P99 %.4g s, TPOT P50 %.4g s", p.Name, c.Class, c.Cohort, c.TTFT.P50.V, c.TTFT.P99.V, c.TPOT.P50.V)
				for k, n := range c.Outcomes.Refused {
					if n > 0 {
						fmt.Fprintf(&b, ", %s %d", sim.RefusalNames[k], n)
					}
				}
				fmt.Fprintln(&b)
			}
		}
		for _, p := range r.Pools {
			fmt.Fprintf(&b, "pool %s: %.4g serve, %.4g paid, %.4g GPU hours, prefix hits %.3g, clock %.4g MHz, %.3g kWh, %.3g unused\n", p.Name, p.Serving.V, p.Paid.V, p.GPUHours, p.PrefixHit.V, p.ClockMHz.V, p.EnergyKWh, p.Unused)
		}
		for _, f := range r.Findings {
			if f.Share > 0 {
				fmt.Fprintf(&b, "finding %.3g: %s\n", f.Share, f.Title)
			}
		}
		for _, c := range r.Costs {
			if c.USD > 0 {
				fmt.Fprintf(&b, "%s in %s: $%.4g per 1,000 requests, $%.4g per 1 M tokens in, $%.4g out\n", c.Class, c.Pool, 1000*c.USDPerRequest, c.USDPerMIn, c.USDPerMOut)
			}
		}
		for _, a := range r.Actions {
			fmt.Fprintf(&b, "%.0f s: %s\n", a.At.Seconds(), a.Text)
		}
		fmt.Fprintln(&b)
	}
	golden(t, "testdata/cluster-runs.txt", b.String())
}

// p99 is the P99 of a class's TTFT in the last phase.
func p99(r *sim.Result, class, cohort string) float64 {
	for _, c := range r.Phases[len(r.Phases)-1].Classes {
		if c.Class == class && c.Cohort == cohort {
			return c.TTFT.P99.V
		}
	}
	return -1
}

// TestClusterExperimentsTeachTheirLesson: what the README says of each holds, with
// the command that it gives.
func TestClusterExperimentsTeachTheirLesson(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates about 0.8 M requests")
	}
	with := p99(runOnce(t, "isolation-pool"), "chat", "existing")
	without := p99(runOnce(t, "isolation-pool", "pool.main.max_prompt=0", "pool.main.replicas=4", "pool.long.min_prompt=131072", "pool.long.replicas=1"), "chat", "existing")
	if !(with < 1 && without > 2) {
		t.Errorf("isolation: P99 of existing prompts %.2f s with and %.2f s without", with, without)
	}
	burst := runOnce(t, "cold-start-burst")
	warm := runOnce(t, "cold-start-burst", "pool.main.autoscale.warm=6")
	ahead := runOnce(t, "cold-start-burst", "pool.main.autoscale.metric=rate", "pool.main.autoscale.target=6", "pool.main.autoscale.lead=3m")
	if !(burst.SLOs[0].Bad > 4*warm.SLOs[0].Bad && burst.SLOs[0].Bad > 5*ahead.SLOs[0].Bad && warm.Pools[0].GPUHours > 1.5*burst.Pools[0].GPUHours) {
		t.Errorf("cold start: %d bad, %d with a warm pool, %d with a forecast; %.0f and %.0f GPU hours", burst.SLOs[0].Bad, warm.SLOs[0].Bad, ahead.SLOs[0].Bad, burst.Pools[0].GPUHours, warm.Pools[0].GPUHours)
	}
	one, all := runOnce(t, "n-minus-1"), runOnce(t, "n-minus-1", "fault=[]")
	zone := runOnce(t, "n-minus-1", `fault=[{ name = "zone", at = "30m", for = "30m", zone = 1 }]`)
	slow := runOnce(t, "n-minus-1", `fault=[{ name = "hot spot", at = "30m", for = "30m", slow = 1.5 }]`)
	if !(all.SLOs[0].Bad < one.SLOs[0].Bad && one.SLOs[0].Bad < zone.SLOs[0].Bad && slow.SLOs[0].Bad > all.SLOs[0].Bad) {
		t.Errorf("bad TTFTs: %d with all, %d with one down, %d without a zone, %d with a slow one", all.SLOs[0].Bad, one.SLOs[0].Bad, zone.SLOs[0].Bad, slow.SLOs[0].Bad)
	}
	sharp := runOnce(t, "rolling-upgrade", "rollout.upgrade.drain=0s")
	calm := runOnce(t, "rolling-upgrade", "rollout=[]")
	if o, c := sharp.Phases[0].Classes[0].Outcomes, runOnce(t, "rolling-upgrade"); o.Failed == 0 || o.Retries == 0 || c.Pools[0].PrefixHit.V >= calm.Pools[0].PrefixHit.V {
		t.Errorf("upgrade: without draining %+v; prefix hits %.3f with and %.3f without an upgrade", o, c.Pools[0].PrefixHit.V, calm.Pools[0].PrefixHit.V)
	}
	wide := runOnce(t, "tp-too-wide").Phases[0].Classes
	if !(wide[1].TPOT.P50.V > 0.9*wide[0].TPOT.P50.V && wide[3].TTFT.P50.V > 2*wide[2].TTFT.P50.V) {
		t.Errorf("TP: TPOT %.2g and %.2g s on NVLink, TTFT %.2g and %.2g s on PCIe", wide[0].TPOT.P50.V, wide[1].TPOT.P50.V, wide[2].TTFT.P50.V, wide[3].TTFT.P50.V)
	}
	heat := runOnce(t, "hot-aisle", "duration=40m").Pools
	if !(heat[1].ClockMinMHz < heat[0].ClockMinMHz-100 && heat[2].PowerW.V < heat[0].PowerW.V) {
		t.Errorf("clocks at worst %.0f, %.0f MHz; power %.0f, %.0f W", heat[0].ClockMinMHz, heat[1].ClockMinMHz, heat[0].PowerW.V, heat[2].PowerW.V)
	}
	herd := runOnce(t, "stale-metrics-herd", "duration=4m", "warmup=1m")
	if a, b, c := p99(herd, "counted", "all"), p99(herd, "polled", "all"), p99(herd, "stale", "all"); !(2*a < b && 2*b < c) {
		t.Errorf("P99 counted %.2f, polled %.2f, stale %.2f s", a, b, c)
	}
}
