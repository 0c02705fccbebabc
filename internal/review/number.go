package review

import (
	"math"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"

	"slosim/sim/stats"
)

// Number is a figure in JSON: nine significant digits, null where there is none.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return []byte(strconv.FormatFloat(v, 'g', 9, 64)), nil
}

// Estimate is a mean over replications with its interval, which is [V, V] with one
// replication.
type Estimate struct {
	V  Number `json:"v"`
	Lo Number `json:"lo"`
	Hi Number `json:"hi"`
}

// Paired is one figure in both worlds and the paired difference, after − before.
type Paired struct {
	Before Estimate `json:"before"`
	After  Estimate `json:"after"`
	Diff   Estimate `json:"diff"`
}

func estimate(values []float64) Estimate {
	e := stats.Of(values, 0)
	return Estimate{Number(e.V), Number(e.Lo), Number(e.Hi)}
}

// pair compares one value per replication of either world.
func pair(before, after []float64) Paired {
	diff := make([]float64, min(len(before), len(after)))
	for i := range diff {
		if diff[i] = after[i] - before[i]; after[i] == before[i] {
			diff[i] = 0 // both may be infinite
		}
	}
	return Paired{estimate(before), estimate(after), estimate(diff)}
}

// lowerBound returns the lower confidence bound of the mean of paired differences at
// the one-sided level alpha, by Student's t; the value itself with one replication.
func lowerBound(diff []float64, alpha float64) float64 {
	e := stats.Of(diff, 0)
	if e.R < 2 || math.IsInf(e.V, 0) {
		return e.Lo
	}
	se := (e.Hi - e.V) / stats.T975(e.R-1)
	return e.V - se*distuv.StudentsT{Sigma: 1, Nu: float64(e.R - 1)}.Quantile(1-alpha)
}
