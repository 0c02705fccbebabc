package experiments

import (
	"fmt"
	"strings"

	"slosim/internal/config"
	"slosim/sim"
)

// describeSold writes what was sold, what moves, and what waits.
func describeSold(e *sim.Experiment, line func(what, format string, args ...any)) {
	for _, o := range e.SLOs {
		if a := o.Adaptive; a != nil {
			line("adaptive", "%s: by %s, from %s to %s, looked at every %s", o.Name, a.By, config.SpanText(a.Min), config.SpanText(a.Max), config.SpanText(a.Every))
		}
	}
	for _, a := range e.SLAs {
		var credits []string
		for _, c := range a.Credits {
			credits = append(credits, fmt.Sprintf("%s below %s", plainShare(c.Share), plainShare(c.Below)))
		}
		text := fmt.Sprintf("%s: %s of %q in every %s, else credits of %s", a.Name, plainShare(a.Target), a.SLO, config.SpanText(a.Period), strings.Join(credits, ", "))
		if len(a.Exempt) > 0 {
			text += "; exempt: " + strings.Join(a.Exempt, ", ")
		}
		line("sla", "%s", text)
	}
	for _, h := range e.Holds {
		text := "is frozen"
		if h.Essential {
			text = "is gone"
		}
		line("gate", "%s waits while the budget of %s %s", h.Change, strings.Join(h.SLOs, " or "), text)
	}
}
