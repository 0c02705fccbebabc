package experiments

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slosim/internal/config"
	"slosim/sim/clock"
)

const soldSLA = "\n[[sla]]\nname = \"enterprise\"\nslo = \"chat TTFT\"\npromise = \"99%\"\nfee_usd = 5000\ncredits = [{ below = \"99%\", credit = \"10%\" }]\n"

// soldBases are experiments in which the keys of SLAs, adaptive thresholds and gated
// changes count.
func soldBases(replace func(old, new string) string) []string {
	slo := func(keys string) string { return replace(someSLO, someSLO+"\n"+keys) }
	return []string{
		base + soldSLA,
		base + soldSLA + "exempt = [\"cancelled\"]\nmaintenance = [{ at = \"1h\", length = \"10m\" }]\n",
		slo(`adaptive = { by = "budget", min = "1s", max = "3s" }`),
		slo(`adaptive = { by = "feedback", min = "1s", max = "3s", bearable = "2s" }`),
		strings.Replace(replace(someRate, someRate+"\ntier = \"enterprise\""), "[[slo]]\nname = \"chat TTFT\"\nclass = \"chat\"", "[[slo]]\nname = \"chat TTFT\"\ntier = \"enterprise\"", 1),
		replace(someShare, someShare+"\ngated_by = \"chat TTFT\""),
	}
}

// soldBreaks are the ways to break them: text to replace in the base, tables to add.
var soldBreaks = []struct{ what, old, new, more string }{
	{"an SLA on an unknown SLO", someSLO, someSLO, strings.Replace(soldSLA, "chat TTFT", "chat TTTF", 1)},
	{"an SLA without a price", someSLO, someSLO, strings.Replace(soldSLA, "fee_usd = 5000\n", "", 1)},
	{"an SLA without credits", someSLO, someSLO, soldSLA[:strings.Index(soldSLA, "credits")]},
	{"credits that do not fall", someSLO, someSLO, strings.Replace(soldSLA, `credits = [`, `credits = [{ below = "95%", credit = "20%" }, `, 1)},
	{"credits before the promise is broken", someSLO, someSLO, strings.Replace(soldSLA, `promise = "99%"`, `promise = "98%"`, 1)},
	{"a promise of all", someSLO, someSLO, strings.Replace(soldSLA, `promise = "99%"`, `promise = "100%"`, 1)},
	{"an exemption that there is not", someSLO, someSLO, soldSLA + "exempt = [\"canceled\", \"shed\", \"shed\"]\n"},
	{"maintenance without an end", someSLO, someSLO, soldSLA + "maintenance = [{ at = \"1h\", length = \"2h\", every = \"1h\" }]\n"},
	{"two SLAs of one name", someSLO, someSLO, soldSLA + soldSLA},
	{"a gate on an unknown SLO", someShare, someShare + "\ngated_by = \"chat TTF\"", ""},
	{"essential without a gate", someShare, someShare + "\nessential = true", ""},
	{"a gated rate that excites itself", "rate = \"2/s\"\nprompt", "rate = { mean = \"2/s\", hawkes = { branching = 0.2, decay = \"1s\" } }\nprompt", "\n[[change]]\nname = \"more\"\nclass = \"chat\"\nat = \"100m\"\nrate = \"2x\"\ngated_by = \"chat TTFT\"\n"},
	{"a controller of nothing", someSLO, someSLO + "\nadaptive = { min = \"1s\", max = \"3s\" }", ""},
	{"bounds upside down", someSLO, someSLO + "\nadaptive = { by = \"budget\", min = \"3s\", max = \"1s\" }", ""},
	{"a threshold out of bounds", someSLO, someSLO + "\nadaptive = { by = \"budget\", min = \"3s\", max = \"5s\" }", ""},
	{"traffic without rates", someSLO, someSLO + "\nadaptive = { by = \"traffic\", min = \"1s\", max = \"3s\", low = \"20%\" }", ""},
	{"marks without a middle", someSLO, someSLO + "\nadaptive = { by = \"budget\", min = \"1s\", max = \"3s\", low = \"80%\", high = \"20%\" }", ""},
	{"feedback of nobody", someSLO, someSLO + "\nadaptive = { by = \"feedback\", min = \"1s\", max = \"3s\", voices = \"0%\" }", ""},
	{"feedback keys by budget", someSLO, someSLO + "\nadaptive = { by = \"budget\", min = \"1s\", max = \"3s\", bearable = \"2s\" }", ""},
	{"a notice that outlasts a look", someSLO, someSLO + "\nadaptive = { by = \"budget\", min = \"1s\", max = \"3s\", every = \"10m\", notice = \"20m\" }", ""},
	{"looks between minutes", someSLO, someSLO + "\nadaptive = { by = \"budget\", min = \"1s\", max = \"3s\", every = \"90s\" }", ""},
	{"an adaptive availability", "metric = \"ttft\"\nthreshold = \"2s\"", "metric = \"availability\"\nadaptive = { by = \"budget\", min = \"1s\", max = \"3s\" }", ""},
	{"an objective of a class and a tier", someSLO, someSLO + "\ntier = \"enterprise\"", ""},
	{"an objective of an unknown tier", "name = \"chat TTFT\"\nclass = \"chat\"", "name = \"chat TTFT\"\ntier = \"enterprise\"", ""},
	{"a share by traffic and a rate by budget", someSLO, someSLO + "\nadaptive = { by = \"budget\", min = \"1s\", max = \"3s\", low = \"2/s\" }", ""},
}

// TestBadPromises shows every error about them as a person sees it.
func TestBadPromises(t *testing.T) {
	file := filepath.Join("testdata", "sold.toml")
	defer os.Remove(file)
	var b strings.Builder
	for _, c := range soldBreaks {
		if !strings.Contains(base, c.old) {
			t.Errorf("%s: nothing to replace", c.what)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(base, c.old, c.new, 1)+c.more), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := Load(file)
		switch {
		case err == nil:
			t.Errorf("%s: no error", c.what)
			continue
		case !config.IsInput(err):
			t.Errorf("%s: %v is no error of the input", c.what, err)
		}
		fmt.Fprintf(&b, "### %s\n%s\n\n", c.what, err)
	}
	golden(t, filepath.Join("testdata", "errors-sold.txt"), b.String())
}

// A promise that is tighter than the internal objective is possible, and warned of.
func TestALooseInternalObjectiveIsWarnedOf(t *testing.T) {
	text := strings.Replace(soldSLA, `promise = "99%"`, `promise = "99.5%"`, 1)
	_, p, err := Parse("x.toml", ".", base+text)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, w := range p.Warnings {
		found = found || strings.Contains(w.Msg, "the SLO can be kept and the SLA broken")
	}
	if !found {
		t.Errorf("%v", p.Warnings)
	}
}

// TestBudgetLoopSaysWhatItSaid: the launch waits for the new shift, the SLAs pay what
// their tables say, and each controller moves its threshold.
func TestBudgetLoopSaysWhatItSaid(t *testing.T) {
	r := runOnce(t, "budget-loop")
	var b strings.Builder
	for _, s := range r.SLOs {
		fmt.Fprintf(&b, "%s: %s, %d good, %d bad, %d adjustments", s.Name, s.Status, s.Good, s.Bad, len(s.Adjusted))
		if s.Adaptive != nil {
			fmt.Fprintf(&b, ", %.4g s in the mean", s.InForce.V)
		}
		fmt.Fprintln(&b)
	}
	for _, a := range r.SLAs {
		fmt.Fprintf(&b, "%s: %.6g attained, $%.2f of $%.2f, exempt %v; %s\n", a.Name, a.Periods[0].Attained.V, a.Payout.V, a.Bill.V, a.Excused, a.Basis)
	}
	for _, h := range r.Held {
		fmt.Fprintf(&b, "%s: held %d, never %d, starts at %.0f s\n", h.Change, h.Held, h.Never, h.Start.V)
	}
	for _, a := range r.Actions {
		if !strings.HasPrefix(a.Text, "threshold") {
			fmt.Fprintf(&b, "%s %s\n", a.At.Label(8*clock.Hour), a.Text)
		}
	}
	golden(t, filepath.Join("testdata", "budget-loop.txt"), b.String())
	if r.Held[0].Start.V != 6*3600 || r.Held[0].Held != 1 {
		t.Errorf("%+v", r.Held[0])
	}
}

// An objective of a tier is one of each of its tenants, with a ledger of its own.
func TestAnObjectiveOfATierIsOneOfEachTenant(t *testing.T) {
	text := strings.Replace(base, someRate, someRate+"\ntier = \"enterprise\"", 1)
	text += "\n[[traffic]]\nclass = \"acme\"\ntier = \"enterprise\"\nrate = \"1/s\"\nprompt = 500\noutput = 100\n" +
		"\n[[traffic]]\nclass = \"free\"\nrate = \"1/s\"\nprompt = 500\noutput = 100\n" +
		"\n[[slo]]\nname = \"answers\"\ntier = \"enterprise\"\nmetric = \"availability\"\nobjective = \"99.9%\"\n"
	e, _, err := Parse("x.toml", ".", text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range e.SLOs[1:] {
		got = append(got, o.Name+" of "+o.Class)
	}
	if s := strings.Join(got, "; "); s != "answers, chat of chat; answers, acme of acme" {
		t.Error(s)
	}
}
