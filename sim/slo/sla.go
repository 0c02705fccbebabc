package slo

import "slosim/sim/clock"

// Exemptions of an SLA: bad events that do not count against it.
const (
	OverLimit = "over_limit" // rejected beyond the class's own limits
	Shed      = "shed"       // rejected by a rule of the degradation policy
	TooLong   = "too_long"   // prompt longer than the model takes
	Cancelled = "cancelled"  // cancelled by the client before the promise was broken
)

// Exemptions in the order of reports.
var Exemptions = []string{OverLimit, Shed, TooLong, Cancelled}

// SLA is what was sold: a share of good events in each period, and what is paid back
// when it is less. Its events are those of an objective.
type SLA struct {
	Name   string
	SLO    string         // whose events it counts
	Target float64        // promised share of good events
	Period clock.Duration // from t = 0 on; a month of the bill

	Credits []Credit // by falling Below: the last one that applies counts

	FeeUSD     float64 // of a period
	USDPerMIn  float64 // per million prompt tokens served
	USDPerMOut float64 // per million output tokens

	Exempt      []string      `json:",omitempty"` // of Exemptions
	Maintenance []Maintenance `json:",omitempty"`
}

// Credit is a line of the table of breaches: Share of the period's bill is paid back
// when less than Below of its events are good.
type Credit struct{ Below, Share float64 }

// Maintenance is a planned window whose events do not count.
type Maintenance struct {
	At, For clock.Duration
	Every   clock.Duration // 0 = once
}

// CreditOf returns the share of the bill that is paid back for an attained share.
func (s *SLA) CreditOf(attained float64) float64 {
	share := 0.0
	for _, c := range s.Credits {
		if attained < c.Below {
			share = c.Share
		}
	}
	return share
}

// Maintained tells whether a minute lies in planned maintenance.
func (s *SLA) Maintained(minute int) bool {
	for _, m := range s.Maintenance {
		d := clock.Duration(minute)*clock.Minute - m.At
		if d >= 0 && m.Every > 0 {
			d %= m.Every
		}
		if d >= 0 && d < m.For {
			return true
		}
	}
	return false
}
