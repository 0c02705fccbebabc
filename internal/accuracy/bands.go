package accuracy

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"slosim/internal/measured"
)

// Band is how far predictions were off for an engine on a GPU: the 90 % quantile
// of the absolute error over the rows that nothing was fitted on. It is computed
// by sim accuracy --update, never typed.
type Band struct {
	Engine string  `json:"engine"`
	GPU    string  `json:"gpu"`
	Runs   int     `json:"runs"`
	TTFT   float64 `json:"ttft"` // 0 = no row
	TPOT   float64 `json:"tpot"`
}

// leastRuns is how many runs a band needs.
const leastRuns = 5

// bandQuantile of the absolute errors.
const bandQuantile = 0.9

// Bands computes the bands of all engines and GPUs in rows.
func Bands(rows []Row) []Band {
	var bands []Band
	var good []Row
	for _, r := range rows {
		if r.Error != nil && !r.Fitted && !r.Saturated {
			good = append(good, r)
		}
	}
	for _, g := range splitBy(good, func(r *Row) string { return r.Engine + "\x00" + r.GPU }) {
		b := Band{Engine: g[0].Engine, GPU: g[0].GPU}
		runs := map[string]bool{}
		pick := func(metrics ...string) float64 {
			var mine []Row
			for _, r := range g {
				if slices.Contains(metrics, r.Metric) {
					runs[r.Source+r.Run+r.Phase] = true
					mine = append(mine, r)
				}
			}
			if len(mine) == 0 {
				return 0
			}
			return measured.Quantile(absErrors(mine), bandQuantile)
		}
		// In closed loops TTFT hangs on the client's bursts: where requests are known
		// one by one, only those count.
		whole := g
		if exact := slices.DeleteFunc(slices.Clone(g), func(r Row) bool { return r.NoiseLo == nil }); len(exact) > 0 {
			g = exact
		}
		b.TTFT = pick(measured.TTFTMean, measured.TTFTP50)
		g = whole
		b.TPOT = pick(measured.TPOTMean, measured.ITLP50)
		if b.Runs = len(runs); b.Runs >= leastRuns {
			bands = append(bands, b)
		}
	}
	slices.SortFunc(bands, func(a, b Band) int { return strings.Compare(a.Engine+"\x00"+a.GPU, b.Engine+"\x00"+b.GPU) })
	return bands
}

//go:embed bands.json
var shippedBands []byte

// ShippedBands are the bands of the validation that this binary was built with.
var ShippedBands = sync.OnceValue(func() []Band {
	bands := []Band{}
	if err := json.Unmarshal(shippedBands, &bands); err != nil {
		panic("accuracy: bands.json: " + err.Error())
	}
	return bands
})

// BandOf returns the band of an engine on a GPU; ok is false when there is none.
func BandOf(bands []Band, engine, gpu string) (Band, bool) {
	for _, b := range bands {
		if b.Engine == engine && b.GPU == gpu {
			return b, true
		}
	}
	return Band{}, false
}
