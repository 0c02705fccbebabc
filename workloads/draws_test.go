package workloads

import (
	"testing"

	"pgregory.net/rapid"

	"slosim/sim/rng"
)

// Lengths from the table are those of the formula: at random draws, and one draw
// before, at and after every cut.
func TestDrawsFromATableAreThoseOfTheFormula(t *testing.T) {
	for name, d := range map[string]Dist{
		"prompts":     {Kind: "lognormal", Mean: 2000, P99: 6400},
		"outputs":     {Kind: "exponential", Mean: 256, Max: 4095},
		"narrow":      {Kind: "normal", Mean: 500, SD: 3, Min: 490},
		"pareto":      {Kind: "pareto", Min: 100, Alpha: 1.5, Max: 1000},
		"uniform":     {Kind: "uniform", Min: 3, Max: 9},
		"short":       {Kind: "exponential", Mean: 0.4},
		"with a tail": {Kind: "lognormal", Mean: 300, P99: 900, Tail: Tail{From: .9, Alpha: 1.5}},
	} {
		l, err := d.Compile()
		if err != nil {
			t.Fatal(err)
		}
		formula := l
		l.Expect(worthATable)
		s := rng.New(1, rng.PromptLength, name)
		same := func(x uint64) {
			if got, want := l.length(x), formula.At(rng.Uniform(x)); got != want {
				t.Fatalf("%s, draw %d: %d from the table, %d by the formula", name, x, got, want)
			}
		}
		for i := range int64(300_000) {
			same(s.Draw(i))
		}
		asked := 0
		for _, c := range l.draws.cells[:1<<cellBits] {
			if c.length == 0 {
				asked++
			}
		}
		for _, cut := range l.draws.cuts[:len(l.draws.cuts)-fewCuts] {
			same(cut - 1)
			same(cut)
			same(cut + 1)
		}
		same(0)
		same(1<<rng.DrawBits - 1)
		t.Logf("%s: %d cuts, %d of %d cells left to the formula", name, len(l.draws.cuts), asked, 1<<cellBits)
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
