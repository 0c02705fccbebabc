package sim

import "fmt"

// enoughForP99 is how many requests a replication needs before the interval of its
// P99 holds the truth as often as it says: measured by internal/coverage on the M/M/1
// queue (86 % at 5,000, 95 % at 100,000), docs/coverage.md has the table.
const enoughForP99 = 100_000

// optimisticIntervals warns of quantiles whose interval over replications is likely
// to be too narrow.
func optimisticIntervals(r *Result) []string {
	if len(r.Seeds) < 2 {
		return nil
	}
	least, where, more := int64(enoughForP99), "", 0
	for _, ph := range r.Phases {
		for _, c := range ph.Classes {
			n := c.N / int64(len(r.Seeds))
			if c.Cohort != "all" || n == 0 || n >= enoughForP99 {
				continue
			}
			more++
			if n < least {
				least, where = n, fmt.Sprintf("%s in phase %q", c.Class, ph.Name)
			}
		}
	}
	if more == 0 {
		return nil
	}
	text := fmt.Sprintf("intervals of P99 are optimistic: %s has %s requests in a replication, fewer than %s, and requests that wait together are not independent", where, thousands(least), thousands(enoughForP99))
	if more > 1 {
		text += fmt.Sprintf(" (and %d more)", more-1)
	}
	return []string{text}
}
