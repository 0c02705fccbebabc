package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"slosim/models"
	"slosim/sim/clock"
	"slosim/workloads"
)

// A static batch is a closed form: prefill(ΣP), then max O − 1 decode steps at the
// batch's full size whose times grow with the context. Every event is exact.
func TestStaticBatchIsAClosedForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := toy{base: 2_000_000_000, token: rapid.Int64Range(0, 30_000_000).Draw(t, "token"), ctx: rapid.Int64Range(0, 200_000).Draw(t, "ctx")}
		n := rapid.Int32Range(1, 12).Draw(t, "n")
		r := NewStatic(Config{MaxBatchedTokens: 4096, MaxSeqs: n, MaxModelLen: 1000, BlockSize: 4, KVBlocks: 8000, Model: m})

		// The first request keeps the server busy until the others are there.
		one := models.Batch{Tokens: 1, Seqs: 1, PrefillTokens: 1}
		start := clock.Time(m.Step(one, 0).Total() / 1000)
		r.Submit(0, &workloads.Request{ID: 0, Prompt: 1, Output: 1})
		want := []Event{{Kind: Finished, ID: 0, At: start, Prefilled: start}}

		prefill, decode := models.Batch{Seqs: n}, models.Batch{Tokens: n, Seqs: n, DecodeSeqs: n}
		var batch []workloads.Request
		for i := range n {
			q := workloads.Request{ID: i + 1, Prompt: rapid.Int32Range(1, 300).Draw(t, "prompt"), Output: rapid.Int32Range(1, 300).Draw(t, "output")}
			batch = append(batch, q)
			prefill.Tokens += q.Prompt
			prefill.PrefillArea += int64(q.Prompt) * int64(q.Prompt) / 2
			decode.DecodeCtx += int64(q.Prompt + 1)
			r.Submit(clock.Time(i)+1, &q)
		}
		prefill.PrefillTokens = prefill.Tokens
		first := start + clock.Time(m.Step(prefill, 0).Total()/1000)
		a, b := m.Step(decode, 0).Total(), m.Slope(n, 0).Total()
		for i, q := range batch {
			k := int64(q.Output) - 1
			e := Event{Kind: Finished, ID: q.ID, At: first + clock.Time((a*k+b*(k*(k-1)/2))/1000), Ready: clock.Time(i) + 1, Started: start, Prefilled: first}
			want = append(want, e)
			if e.Kind, e.At = FirstToken, first; k > 0 {
				want = append(want, e)
			}
		}
		var got []Event
		for at, ok := r.Next(); ok; at, ok = r.Next() {
			got = r.Advance(at, got)
		}
		if d := gocmp.Diff(sorted(want), sorted(got)); d != "" {
			t.Fatalf("(-closed form +engine):\n%s", d)
		}
	})
}

// Of a static batch's row-steps, E[O]/E[max O] are of use: 1/H_B for exponential
// outputs (the maximum of B has mean H_B times theirs).
func TestStaticBatchUsesOneHarmonicthOfItsRows(t *testing.T) {
	const perToken, mean = 1000, 300.0
	for _, size := range []int{1, 4, 16, 64} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, uint64(size)))
			r := NewStatic(Config{MaxBatchedTokens: 4096, MaxSeqs: int32(size), MaxModelLen: 8000, BlockSize: 16, KVBlocks: 1 << 20, Model: toy{token: perToken}})
			made, harmonic := int64(0), 0.0
			for k := range size {
				harmonic += 1 / float64(k+1)
			}
			for i := range 200*size + 12_000 {
				q := workloads.Request{ID: int32(i), Prompt: 1, Output: 1 + int32(mean*rng.ExpFloat64())}
				made += int64(q.Output)
				r.Submit(0, &q)
			}
			var out []Event
			for at, ok := r.Next(); ok; at, ok = r.Next() {
				out = r.Advance(at, out[:0])
			}
			rows := r.Spent(clock.Never-1).Gemm / perToken
			if got, want := float64(made)/float64(rows), 1/harmonic; math.Abs(got/want-1) > 0.04 {
				t.Errorf("%.4f of the rows are of use, 1/H_%d = %.4f", got, size, want)
			} else {
				t.Logf("%.4f of the rows are of use, 1/H_%d = %.4f", got, size, want)
			}
		})
	}
}
