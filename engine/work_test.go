package engine

import (
	"testing"

	"slosim/models"
	"slosim/workloads"
)

// counted is a step model that counts what it is asked: once per change of a batch.
type counted struct {
	models.StepModel
	n int
}

func (c *counted) Step(b models.Batch, bin int) models.Cost {
	c.n++
	return c.StepModel.Step(b, bin)
}

// What a request makes the engine do (step costs, and looks from outside) does not
// follow the length of its output: at half of the rate that saturates the replica
// (BenchmarkOutputLength in sim has them), 4,096 tokens may cost no more than twice what
// 16 cost.
func TestWorkDoesNotFollowOutputLength(t *testing.T) {
	work := func(tokens int32, perSec float64) float64 {
		cfg := chatConfig(t)
		m := &counted{StepModel: cfg.Model}
		cfg.Model = m
		v := NewVLLM(&cfg)
		load := newChat(perSec)
		const n = 3000
		looks := 0
		var out []Event
		for i := range n {
			at, _ := load.next()
			for next, ok := v.Next(); ok && next <= at; next, ok = v.Next() {
				out = v.Advance(next, out[:0])
				looks++
			}
			v.Submit(at, &workloads.Request{ID: int32(i), Prompt: 2000, Output: tokens})
		}
		return float64(m.n+looks) / n
	}
	short, long := work(16, 6.1), work(4096, .89)
	t.Logf("step costs and looks per request: %.2f at 16 tokens, %.2f at 4096", short, long)
	if long > 2*short {
		t.Errorf("%.2f step costs and looks per request of 4096 output tokens, %.2f of 16", long, short)
	}
}
