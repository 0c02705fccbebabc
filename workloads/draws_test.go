package workloads

import (
	"testing"

	"pgregory.net/rapid"

	"slosim/sim/rng"
)

// Lengths from the table are those of the formula: at random draws, and around the edges
// of every cell and of every slot that has a cut.
func TestDrawsFromATableAreThoseOfTheFormula(t *testing.T) {
	for name, d := range map[string]Dist{
		"prompts":     {Kind: "lognormal", Mean: 2000, P99: 6400},
		"outputs":     {Kind: "exponential", Mean: 256, Max: 4095},
		"narrow":      {Kind: "normal", Mean: 500, SD: 3, Min: 490},
		"pareto":      {Kind: "pareto", Min: 100, Alpha: 1.5, Max: 1000},
		"uniform":     {Kind: "uniform", Min: 3, Max: 9},
		"short":       {Kind: "exponential", Mean: 0.4},
		"with a tail": {Kind: "lognormal", Mean: 300, P99: 900, Tail: Tail{From: .9, Alpha: 1.5}},
		"long":        {Kind: "lognormal", Mean: 30_000, P99: 90_000},
		"very long":   {Kind: "normal", Mean: 65_536, SD: 100},
		"too long":    {Kind: "uniform", Min: 1000, Max: 1_000_000},
	} {
		l, err := d.Compile()
		if err != nil {
			t.Fatal(err)
		}
		formula := l
		l.Expect(worthATable)
		s := rng.New(1, rng.PromptLength, name)
		same := func(draw uint64) {
			x := draw<<drawUp | draw&(1<<drawUp-1) // the last bits count for nothing
			var n [1]int32
			l.lengths([]uint64{x}, n[:])
			if got, want := n[0], formula.At(rng.Uniform(draw)); got != want {
				t.Fatalf("%s, draw %d: %d from the table, %d by the formula", name, draw, got, want)
			}
		}
		around := func(draw uint64) {
			for d := range uint64(3) {
				if x := draw + d - 1; x < 1<<rng.DrawBits {
					same(x)
				}
			}
		}
		for i := range int64(300_000) {
			same(s.Draw(i))
		}
		low, cuts, asked := uint64(0), 0, uint64(0)
		for _, g := range l.draws.segments {
			n := int(g.turn) - segmentBits
			for _, c := range l.draws.cells[g.first:][:1<<n] {
				around(low)
				if c == askAt {
					asked += cellWidth(n)
				}
				for k := range cellCuts {
					if cut := c >> (k * laneBits) & (1<<laneBits - 1); c != askAt && cut != noCut {
						around(low + cut*cellWidth(n)>>slotBits)
						around(low + (cut+1)*cellWidth(n)>>slotBits)
						cuts++
					}
				}
				low += cellWidth(n)
			}
		}
		same(1<<rng.DrawBits - 1)
		if low != 1<<rng.DrawBits {
			t.Errorf("%s: the cells end at draw %d", name, low)
		}
		t.Logf("%s: %d cells, %d cuts, %.2f %% left to the formula", name, len(l.draws.cells), cuts, 100*float64(asked)/(1<<rng.DrawBits))
	}
}

func TestUniformNumbersRiseWithTheDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Uint64Range(0, 1<<rng.DrawBits-2).Draw(t, "draw")
		if a, b := rng.Uniform(x), rng.Uniform(x+1); !(0 < a && a <= b && b < 1) {
			t.Fatalf("draws %d and %d stand for %v and %v", x, x+1, a, b)
		}
	})
}

func BenchmarkDrawTable(b *testing.B) {
	l, err := Dist{Kind: "lognormal", Mean: 2000, P99: 6400}.Compile()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		new(drawTable).fill(&l)
	}
}
