package review

import (
	"context"
	"strings"
	"testing"

	"slosim/sim"
)

// Where one thing alone is to blame, the ablation of that thing ranks first.
func TestAblationsFindTheKnownCause(t *testing.T) {
	change := strings.Index(launch, "[[change]]")
	slos := strings.Index(launch, "[[slo]]")
	with := func(text string) string { return launch[:change] + text + launch[slos:] }
	for _, c := range []struct {
		cause, text string
		sets        []string
	}{
		{"unlimited KV memory", with("[[change]]\nname = \"feature\"\nclass = \"chat\"\nat = \"2m\"\nshare = \"50%\"\noutput = { dist = \"lognormal\", mean = 1500, p99 = 4000 }\n"),
			[]string{"pool.main.engine.kv_blocks=3000", "pool.main.engine.max_model_len=32000"}},
		{"no prefill interference", launch, []string{"change.feature.share=5%", "pool.main.replicas=4", "slo.all.threshold=60s", "slo.existing.threshold=500ms"}},
		{"no bursts", with("[[change]]\nname = \"feature\"\nclass = \"chat\"\nat = \"2m\"\nrate = \"1.5x\"\n"),
			[]string{`traffic.chat.rate={ mean = "4/s", bursts = [{ at = "4m", length = "20s", factor = 15 }] }`, "slo.existing.exclude=[]"}},
		{"no thermal limit", with("[[change]]\nname = \"feature\"\nclass = \"chat\"\nat = \"2m\"\nrate = \"4.6x\"\n"),
			[]string{"pool.main.thermal.ambient=60", "slo.existing.exclude=[]"}},
		{"free all-reduce", with("[[change]]\nname = \"feature\"\nclass = \"chat\"\nat = \"2m\"\nrate = \"8x\"\n"),
			[]string{"pool.main.gpu=l40s", "pool.main.replicas=1", "pool.main.model=llama-3.1-8b", "traffic.chat.rate=0.5/s", "slo.existing.exclude=[]"}},
		{"instant cold start", with("[[change]]\nname = \"feature\"\nclass = \"chat\"\nat = \"2m\"\nrate = \"7x\"\n"),
			[]string{`pool.main.autoscale={ target = 12, min = 2, max = 12, start_up = "3m" }`, "slo.existing.exclude=[]"}},
		{"no failures", with("[[change]]\nname = \"feature\"\nclass = \"chat\"\nat = \"2m\"\nrate = \"2x\"\n") + "\n[[fault]]\nname = \"one\"\nat = \"3m\"\nreplicas = 1\n",
			[]string{"slo.existing.exclude=[]", "traffic.chat.rate=7.2/s"}},
	} {
		e := parse(t, c.text, append([]string{"replications=1"}, c.sets...)...)
		l := newLab(Options{})
		after, before := &world{e: e}, &world{e: Without(e)}
		for _, w := range []*world{after, before} {
			var err error
			if w.reps, err = l.all(context.Background(), w.e, 0, 1); err != nil {
				t.Fatal(err)
			}
		}
		s := &search{lab: l, before: before, after: after, review: compareWorlds(before, after, DefaultMaterial, familyWise)}
		for k := range e.SLOs {
			if after.status(k) == sim.Missed {
				s.broken = append(s.broken, k)
			}
		}
		if len(s.broken) == 0 {
			t.Errorf("%s: nothing breaks: %+v", c.cause, s.review.SLOs)
			continue
		}
		s.causes(context.Background())
		first := ""
		for _, x := range s.review.Causes {
			if t.Logf("%s: %-26s bad %.4f explains %.3f", c.cause, x.Name, x.Bad, x.Explains); x.Kind == "ablation" && first == "" {
				first = x.Name
			}
		}
		if first != c.cause {
			t.Errorf("the cause is %q, ranked first is %q; not tried: %v", c.cause, first, s.review.NotTried)
		}
	}
}
