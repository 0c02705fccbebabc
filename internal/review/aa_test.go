//go:build aa

package review

import (
	"fmt"
	"testing"
)

// The full form of TestIndependentWorldsWithoutAChangePass, on 15,000 requests per
// replication: of 200 pairs without any difference at most 10 are called otherwise.
// go test -tags aa ./internal/review -run TwoHundredPairs -v
func TestTwoHundredPairsWithoutAChangePass(t *testing.T) {
	const pairs, most = 200, 10
	wrong := 0
	for i := range pairs {
		a := parse(t, launch, "replications=3", "duration=63m", "change.feature.at=10m", "change.feature.share=6%", fmt.Sprintf("seed=%d", 1000+2*i))
		b := a
		b.Seed++
		if r := run(t, a, b, launch, Options{}); r.Verdict.Call != Pass {
			wrong++
			t.Logf("seed %d: %+v", a.Seed, r.Verdict)
		}
	}
	t.Logf("%d of %d pairs", wrong, pairs)
	if wrong > most {
		t.Errorf("%d of %d pairs without any difference are called otherwise", wrong, pairs)
	}
}
