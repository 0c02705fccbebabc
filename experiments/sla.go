package experiments

import (
	"fmt"
	"slices"
	"strings"

	"slosim/internal/config"
	"slosim/sim/clock"
	"slosim/sim/slo"
)

const maxMoney = 1e12 // USD

// sla reads one [[sla]] table.
func (l *loader) sla(t *config.Table) slo.SLA {
	a := slo.SLA{Name: name(t, "name", `"enterprise"`)}
	a.SLO = config.Read(t, "slo", config.Text, config.Required, config.Note[string]("whose events it counts"), config.Example[string](`"chat TTFT"`))
	o := l.sloNamed(t, "slo", a.SLO)
	a.Target = config.Read(t, "promise", config.Share, config.Required, config.Note[float64]("share of good events that was sold"), config.Example[float64](`"99%"`),
		config.Where(func(v float64) bool { return v > 0 && v < 1 }, "cannot be promised", "more than 0%, less than 100%", "a promise of 100 % is broken by one event"))
	a.Period = config.Read(t, "period", config.Span, config.Default(30*clock.Day, "a month of the bill, from t = 0 on"), config.Example[clock.Duration](`"30d"`), config.Between(clock.Hour, maxSpan),
		config.Where(func(d clock.Duration) bool { return d%clock.Minute == 0 }, "is no whole number of minutes", "whole minutes", ""))
	money := func(key, note string) float64 {
		return config.Read(t, key, config.Float, config.Default(0.0, note), config.Example[float64]("5000"), config.Between(0.0, maxMoney))
	}
	a.FeeUSD = money("fee_usd", "no fixed fee")
	a.USDPerMIn = money("usd_per_mtok_in", "prompts cost the customer nothing")
	a.USDPerMOut = money("usd_per_mtok_out", "outputs cost the customer nothing")
	if a.FeeUSD+a.USDPerMIn+a.USDPerMOut == 0 {
		t.Errorf("fee_usd", "fee_usd, usd_per_mtok_in, usd_per_mtok_out", "for example: fee_usd = 5000", "the bill is empty: there is nothing to pay back")
	}
	l.credits(t, &a)
	a.Exempt = config.Read(t, "exempt", config.Texts, config.Default([]string(nil), "every bad event counts"), config.Example[[]string](`["cancelled"]`))
	for i, n := range a.Exempt {
		if !slices.Contains(slo.Exemptions, n) {
			unknown(t, "exempt", n, "there is no such exemption", slo.Exemptions)
		} else if slices.Contains(a.Exempt[:i], n) {
			t.Errorf("exempt", "", "name each once", "%q is named twice", n)
		}
	}
	for _, m := range t.List("maintenance", `maintenance = [{ at = "2h", length = "30m", every = "7d" }]`) {
		a.Maintenance = append(a.Maintenance, maintenance(m))
	}
	if o != nil && a.Target > o.Target {
		t.Warnf("promise", fmt.Sprintf("promise at most %s, or tighten the objective", config.Share.Format(o.Target)),
			"SLA %q promises %s, more than the %s of the internal objective %q: the SLO can be kept and the SLA broken", a.Name, plainShare(a.Target), plainShare(o.Target), o.Name)
	}
	return a
}

func plainShare(v float64) string { return strings.Trim(config.Share.Format(v), `"`) }

// credits reads the table of breaches.
func (l *loader) credits(t *config.Table, a *slo.SLA) {
	list := t.List("credits", `credits = [{ below = "99.9%", credit = "10%" }, { below = "99%", credit = "25%" }]`)
	if len(list) == 0 {
		t.Errorf("credits", "", `for example: credits = [{ below = "99.9%", credit = "10%" }]`, "an SLA without credits promises nothing: credits is missing or empty")
	}
	for i, c := range list {
		x := slo.Credit{
			Below: config.Read(c, "below", config.Share, config.Required, config.Note[float64]("of the period's events are good"), config.Example[float64](`"99.9%"`), config.Above(0.0, 1)),
			Share: config.Read(c, "credit", config.Share, config.Required, config.Note[float64]("of the period's bill is paid back"), config.Example[float64](`"10%"`), config.Between(0.0, 1)),
		}
		switch {
		case i == 0 && a.Target > 0 && x.Below > a.Target:
			c.Errorf("below", "at most the promise, "+plainShare(a.Target), "", "credits are due before the promise is broken: below = %s, promise = %s", plainShare(x.Below), plainShare(a.Target))
		case i > 0 && x.Below > 0 && x.Below >= a.Credits[i-1].Below:
			c.Errorf("below", "less than the line before, "+plainShare(a.Credits[i-1].Below), "write the mildest breach first", "the lines of credits do not fall")
		case i > 0 && x.Share < a.Credits[i-1].Share:
			c.Errorf("credit", "at least the line before, "+plainShare(a.Credits[i-1].Share), "", "a worse breach pays back less")
		}
		a.Credits = append(a.Credits, x)
	}
}

func maintenance(t *config.Table) slo.Maintenance {
	m := slo.Maintenance{
		At:    config.Read(t, "at", config.Span, config.Required, config.Note[clock.Duration]("from t = 0"), config.Example[clock.Duration](`"2h"`), config.Between(0, maxSpan)),
		For:   config.Read(t, "length", config.Span, config.Required, config.Example[clock.Duration](`"30m"`), config.Between(clock.Minute, maxSpan)),
		Every: config.Read(t, "every", config.Span, config.Default(clock.Duration(0), "once"), config.Example[clock.Duration](`"7d"`), config.Between(0, maxSpan)),
	}
	if m.Every > 0 && m.Every <= m.For {
		t.Errorf("every", "more than length, "+config.SpanText(m.For), "", "maintenance without an end")
	}
	return m
}

// sloNamed finds the objective that a key names; nil after an error.
func (l *loader) sloNamed(t *config.Table, key, name string) *slo.Objective {
	var names []string
	for i := range l.e.SLOs {
		if l.e.SLOs[i].Name == name {
			return &l.e.SLOs[i]
		}
		names = append(names, l.e.SLOs[i].Name)
	}
	if name != "" {
		unknown(t, key, name, "no [[slo]] has this name", names)
	}
	return nil
}
