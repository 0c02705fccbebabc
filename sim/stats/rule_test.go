package stats

import "testing"

// Of 1 to 10: the P95 is 9.55 between 9 and 10, the step 10, loadgen's sorted[9];
// the P50 is 5.5, 5 and sorted[5].
func TestRulesOfOtherToolsByHand(t *testing.T) {
	for _, c := range []struct {
		rule     Rule
		p50, p95 float64
	}{{Linear, 5.5, 9.55}, {StepCDF, 5, 10}, {Floor, 6, 10}} {
		var s Sample
		for v := range int64(10) {
			s.Add(10 - v)
		}
		got := s.QuantilesBy(c.rule, .5, .95)
		if d := got[1] - c.p95; got[0] != c.p50 || d > 1e-12 || d < -1e-12 {
			t.Errorf("%q: %v, want %g and %g", c.rule, got, c.p50, c.p95)
		}
		s.AddInf()
		if s.QuantilesBy(c.rule, 1)[0] < 1e300 || s.FiniteQuantilesBy(c.rule, 1)[0] != 10 {
			t.Errorf("%q: what never came about", c.rule)
		}
	}
}
