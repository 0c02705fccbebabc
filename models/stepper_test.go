package models

import (
	"math"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Kernel times of whole steps, composed by hand from the measured kernel tables
// (H100, BF16, locked clock), in ms: GEMMs of the layers, attention, all-reduce,
// and the sum with the LM head.
var composedSteps = []struct {
	llm                     string
	tp                      int
	name                    string
	batch                   Batch
	gemm, attn, comm, total float64
}{
	{"llama-3.1-8b", 1, "decode 1 at 2K", decodeBatch(1, 2048), 5.0, 0.5, 0, 5.7},
	{"llama-3.1-8b", 1, "decode 32 at 2K", decodeBatch(32, 2048), 5.7, 3.2, 0, 9.2},
	{"llama-3.1-8b", 1, "decode 64 at 2K", decodeBatch(64, 2048), 5.9, 6.0, 0, 12.1},
	{"llama-3.1-8b", 1, "decode 128 at 2K", decodeBatch(128, 2048), 5.8, 11.4, 0, 17.4},
	{"llama-3.1-8b", 1, "prefill 512", prefillBatch(512), 9.3, 0.7, 0, 10.2},
	{"llama-3.1-8b", 1, "prefill 2048", prefillBatch(2048), 36, 2.9, 0, 39.0},
	{"llama-3.1-8b", 1, "prefill 8192", prefillBatch(8192), 154, 29, 0, 183},
	{"llama-3.1-70b", 8, "decode 1 at 2K", decodeBatch(1, 2048), 7.5, 1.1, 0.85, 9.5},
	{"llama-3.1-70b", 8, "decode 32 at 2K", decodeBatch(32, 2048), 6.8, 1.5, 1.9, 10.3},
	{"llama-3.1-70b", 8, "decode 64 at 2K", decodeBatch(64, 2048), 7.2, 3.0, 2.4, 12.7},
	{"llama-3.1-70b", 8, "decode 128 at 2K", decodeBatch(128, 2048), 7.0, 4.7, 3.1, 14.9},
	{"llama-3.1-70b", 8, "decode 64 at 8K", decodeBatch(64, 8192), 7.2, 8.1, 2.4, 17.8},
	{"llama-3.1-70b", 8, "prefill 512", prefillBatch(512), 12.7, 1.5, 8.1, 22.4},
	{"llama-3.1-70b", 8, "prefill 2048", prefillBatch(2048), 42.9, 3.1, 28.5, 74.6},
	{"llama-3.1-70b", 8, "prefill 8192", prefillBatch(8192), 194, 17.7, 92.4, 304},
}

func TestKernelTimesMatchStepsComposedFromMeasuredTables(t *testing.T) {
	for _, c := range composedSteps {
		d := deployment(t, c.llm, "h100-sxm-80gb", c.tp)
		d.GPU.Common.KappaFixed = 1
		got := stepper(t, d).Step(c.batch, 0)
		check := func(part string, ps int64, wantMs, tolerance float64) {
			ms := float64(ps) / 1e9
			diff := ms/wantMs - 1
			if wantMs == 0 {
				diff = ms
			}
			if math.Abs(diff) > tolerance {
				t.Errorf("%s TP%d %s: %s %.2f ms, composed %.2f: %+.0f %%", c.llm, c.tp, c.name, part, ms, wantMs, 100*diff)
			}
		}
		check("GEMM", got.Gemm, c.gemm, 0.12)
		check("attention", got.Attn, c.attn, 0.31) // decode at 1–32 rows of one KV head is the fit's weakest corner
		check("all-reduce", got.Comm, c.comm, 0.02)
		check("total", got.Gemm+got.Attn+got.Comm+got.Head, c.total, 0.08)
	}
}

func TestUnloadedQwen14BMatchesItsMeasuredRun(t *testing.T) {
	rows := sharedData(t, "residency/sweep_rate__agg_2rps__vanilla.csv.gz")
	d := deployment(t, "qwen3-14b", "h100-sxm-80gb", 1)
	s := stepper(t, d)
	var ttft, tpot fitErrors
	lastEndS := 0.0
	for i, r := range rows {
		sentS := (r.num(t, "arrival_us") + r.num(t, "send_lag_us")) / 1e6
		endS := sentS + r.num(t, "e2e_us")/1e6
		tokens, outputs := r.num(t, "input_tokens"), r.num(t, "output_tokens")
		idle := sentS > lastEndS
		alone := idle && i+1 < len(rows) && rows[i+1].num(t, "arrival_us")/1e6 > endS
		lastEndS = max(lastEndS, endS)
		if idle {
			ps := d.Host.FrontFixedPs + int64(tokens)*d.Host.FrontPerTokenPs + s.Step(prefillBatch(int32(tokens)), 0).Total() + d.Host.PublishPerSeqPs
			ttft.add(float64(ps)/1e6, r.num(t, "ttft_us"))
		}
		if alone {
			ps := s.Step(decodeBatch(1, int64(tokens+outputs/2)), 0).Total()
			tpot.add(float64(ps)/1e6, (r.num(t, "e2e_us")-r.num(t, "ttft_us"))/(outputs-1))
		}
	}
	t.Logf("median error: TTFT %+.1f %% over %d requests into an idle engine, TPOT %+.1f %% over %d requests alone in it",
		ttft.medianPct(), len(ttft), tpot.medianPct(), len(tpot))
	if math.Abs(ttft.medianPct()) > 5 || math.Abs(tpot.medianPct()) > 3 {
		t.Error("the unloaded engine is off by more than 5 % in TTFT or 3 % in TPOT")
	}
}

// anyBatch draws a batch that an engine with this budget could form.
func anyBatch(t *rapid.T, budget int32) Batch {
	rows := rapid.Int32Range(0, min(256, budget-1)).Draw(t, "decode rows")
	chunk := rapid.Int32Range(0, budget-rows).Draw(t, "prefill tokens")
	b := Batch{Tokens: rows + chunk, Seqs: rows, DecodeSeqs: rows, PrefillTokens: chunk}
	if rows > 0 {
		b.DecodeCtx = int64(rows) * rapid.Int64Range(1, 100_000).Draw(t, "context")
	}
	if chunk > 0 {
		past := rapid.Int64Range(0, 100_000).Draw(t, "past")
		b.Seqs++
		b.PrefillArea = int64(chunk)*past + int64(chunk)*int64(chunk)/2
	} else if rows == 0 {
		return decodeBatch(1, 1)
	}
	return b
}

func TestStepGrowsByExactlySlopeAsContextGrows(t *testing.T) {
	s := stepper(t, deployment(t, "llama-3.3-70b", "h100-sxm-80gb", 8))
	rapid.Check(t, func(t *rapid.T) {
		b := anyBatch(t, 8192)
		bin := rapid.SampledFrom([]int{0, 23, 100, 132}).Draw(t, "bin")
		steps := rapid.Int64Range(1, 10_000).Draw(t, "steps")
		later := b
		later.DecodeCtx += steps * int64(b.DecodeSeqs)
		want := s.Step(b, bin)
		slope := s.Slope(b.DecodeSeqs, bin)
		want.Add(&slope, steps)
		if got := s.Step(later, bin); got != want {
			t.Fatalf("after %d steps %+v, want %+v", steps, got, want)
		}
		slope.Attn, slope.Compute, slope.Memory = 0, 0, 0
		if slope != (Cost{}) {
			t.Fatalf("slope has other parts than attention: %+v", slope)
		}
	})
}

func TestMoreWorkNeverTakesLess(t *testing.T) {
	s := stepper(t, deployment(t, "qwen3-14b", "h100-sxm-80gb", 4))
	rapid.Check(t, func(t *rapid.T) {
		small := anyBatch(t, 4096)
		big := small
		chunk := rapid.Int32Range(1, 4096).Draw(t, "more prefill")
		big.Tokens += chunk
		big.PrefillTokens += chunk
		big.PrefillArea += int64(chunk) * int64(chunk) / 2
		big.Seqs++
		a, b := s.Step(small, 0), s.Step(big, 0)
		if a.Gemm > b.Gemm || a.Attn > b.Attn || a.Comm > b.Comm || a.Small > b.Small || a.Head > b.Head || a.Host > b.Host || a.Compute > b.Compute || a.Memory > b.Memory {
			t.Fatalf("%+v costs %+v, but more, %+v, costs %+v", small, a, big, b)
		}
	})
}

func TestALowerClockSlowsComputeTermsAlone(t *testing.T) {
	s := stepper(t, deployment(t, "llama-3.3-70b", "h100-sxm-80gb", 8))
	full, half := s.Step(prefillBatch(8192), 132), s.Step(prefillBatch(8192), 66)
	if r := float64(half.Gemm) / float64(full.Gemm); r < 1.9 || r > 2 {
		t.Errorf("GEMMs of a long prefill take %.3f times as long at half the clock, want nearly 2", r)
	}
	if full.Comm != half.Comm || full.Small != half.Small || full.Compute != half.Compute || full.Memory != half.Memory {
		t.Error("all-reduce, small kernels or peak work depend on the clock")
	}
	full, half = s.Step(decodeBatch(32, 2000), 132), s.Step(decodeBatch(32, 2000), 66)
	if r := float64(half.Total()) / float64(full.Total()); r > 1.01 {
		t.Errorf("a memory-bound decode step takes %.3f times as long at half the clock", r)
	}
}

func TestGraphSizesArePaddedUpToAsInVLLM(t *testing.T) {
	s := stepper(t, deployment(t, "llama-3.1-8b", "h100-sxm-80gb", 1))
	gemm := func(n int32) int64 { return s.Step(decodeBatch(n, 1), 0).Gemm }
	for _, c := range [][2]int32{{3, 4}, {5, 8}, {9, 16}, {241, 248}, {249, 256}, {257, 272}, {497, 512}} {
		if gemm(c[0]) != gemm(c[1]) {
			t.Errorf("%d tokens are not padded to %d", c[0], c[1])
		}
	}
	if gemm(8) == gemm(9) || gemm(512) == gemm(513) {
		t.Error("8 and 9, or 512 and 513 tokens, cost the same")
	}
}

func TestInterpolatedRowsDifferFromExactOnesByLessThanTheirNoise(t *testing.T) {
	for _, gpu := range []string{"h100-sxm-80gb", "b200-sxm-180gb"} {
		d := deployment(t, "llama-3.1-8b", gpu, 8)
		d.MaxBatchedTokens = 5000
		r := newRank(d)
		table := newTable(&r, d.MaxBatchedTokens, 1)
		floorS := r.layers * r.common.EagerLayerUs * 1e-6
		for n := int32(513); n <= d.MaxBatchedTokens; n++ {
			exact, got := r.row(n, 1, floorS), table.at(n)
			total := exact.gemmPs + exact.commPs + exact.smallPs
			off := got.gemmPs + got.commPs + got.smallPs - total
			if math.Abs(float64(off))/float64(total) > 1e-3 || math.Abs(float64(got.headPs-exact.headPs)) > 1e-3*float64(exact.headPs) {
				t.Fatalf("%s, %d tokens: interpolated %+v, exact %+v", gpu, n, got, exact)
			}
		}
	}
}

func TestEqualDeploymentsShareTablesAndOthersDoNot(t *testing.T) {
	d := deployment(t, "llama-3.1-8b", "h100-sxm-80gb", 2)
	same, other := d, d
	same.Host, same.MemoryUtilization = Host{}, 0.5
	other.WeightDtype = FP8
	a, b, c := stepper(t, d), stepper(t, same), stepper(t, other)
	if a.tables != b.tables || a.tables == c.tables {
		t.Error("tables are shared by the wrong deployments")
	}
	costs := make([]Cost, 8)
	var wg sync.WaitGroup
	for i := range costs {
		wg.Go(func() { costs[i] = stepper(t, d).Step(decodeBatch(7, 99), 77) })
	}
	wg.Wait()
	for _, c := range costs {
		if c != costs[0] {
			t.Fatalf("goroutines saw %+v and %+v", c, costs[0])
		}
	}
}

func TestTheNumberOfSharedTablesIsBounded(t *testing.T) {
	d := deployment(t, "llama-3.1-8b", "h100-sxm-80gb", 1)
	for n := range int32(2 * maxShared) {
		d.MaxBatchedTokens = 100 + n
		stepper(t, d)
	}
	shared.Lock()
	defer shared.Unlock()
	if len(shared.order) != maxShared || len(shared.byKey) != maxShared {
		t.Errorf("%d and %d deployments keep their tables, want %d", len(shared.order), len(shared.byKey), maxShared)
	}
}

func TestStaticScalesSaveTheQuantisationPass(t *testing.T) {
	d := deployment(t, "llama-3.3-70b", "h100-sxm-80gb", 8)
	bf16 := stepper(t, d).Step(prefillBatch(4096), 0)
	d.WeightDtype = FP8
	dynamic := stepper(t, d).Step(prefillBatch(4096), 0)
	d.StaticScales = true
	static := stepper(t, d).Step(prefillBatch(4096), 0)
	if !(static.Gemm < dynamic.Gemm && dynamic.Gemm < bf16.Gemm) {
		t.Errorf("GEMMs: static %d, dynamic %d, bf16 %d ps", static.Gemm, dynamic.Gemm, bf16.Gemm)
	}
	if static.Head != bf16.Head {
		t.Error("the LM head follows the weight dtype, but it stays BF16")
	}
}

func TestPeakWorkIsTheArithmeticOfTheModel(t *testing.T) {
	d := deployment(t, "llama-3.1-8b", "h100-sxm-80gb", 1)
	c := stepper(t, d).Step(prefillBatch(2048), 0)
	attention, _, _ := d.LLM.attnParams(1)
	matrices := attention + 3*4096*14336
	flops := 2*2048*32*float64(matrices) + 2*4096*128256 + 4*32*128*32*2048*2048/2
	if got := float64(c.Compute) / 1e12 * 989e12; math.Abs(got/flops-1) > 1e-3 {
		t.Errorf("prefill: %.4g FLOPs, want %.4g", got, flops)
	}
	c = stepper(t, d).Step(decodeBatch(1, 8000), 0)
	bytes := float64(d.LLM.WeightBytes(BF16)) - 2*4096*128256 + 8000*131072 // without the embedding
	if got := float64(c.Memory) / 1e12 * 3.35e12; math.Abs(got/bytes-1) > 2e-3 {
		t.Errorf("decode: %.5g bytes, want %.5g", got, bytes)
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	s := stepper(t, deployment(t, "llama-3.3-70b", "h100-sxm-80gb", 8))
	b := decodeBatch(64, 2000)
	s.Step(b, 120)
	if n := testing.AllocsPerRun(100, func() { s.Step(b, 120) }); n != 0 {
		t.Errorf("%v allocations per step", n)
	}
}

func benchmarkStep(b *testing.B, batch Batch) {
	s := stepper(b, deployment(b, "llama-3.3-70b", "h100-sxm-80gb", 8))
	b.ReportAllocs()
	var sum int64
	for b.Loop() {
		batch.DecodeCtx += 64
		sum += s.Step(batch, 120).Total()
	}
	_ = sum
}

func BenchmarkStepDecode(b *testing.B) { benchmarkStep(b, decodeBatch(64, 2000)) }

func BenchmarkStepMixed(b *testing.B) {
	batch, chunk := decodeBatch(64, 2000), prefillBatch(5000)
	batch.Tokens += chunk.Tokens
	batch.Seqs++
	batch.PrefillTokens, batch.PrefillArea = chunk.PrefillTokens, chunk.PrefillArea
	benchmarkStep(b, batch)
}

func BenchmarkTable(b *testing.B) {
	d := deployment(b, "llama-3.3-70b", "h100-sxm-80gb", 8)
	r := newRank(d)
	for b.Loop() {
		newTable(&r, d.MaxBatchedTokens, 0.9)
	}
}

func TestTheShortWayOfAStepEqualsTheGeneralOne(t *testing.T) {
	s := stepper(t, deployment(t, "mixtral-8x7b", "h100-sxm-80gb", 4))
	general := *s
	general.general = true
	rapid.Check(t, func(t *rapid.T) {
		b := anyBatch(t, 8192)
		if a, g := s.Step(b, 0), general.Step(b, 0); a != g {
			t.Fatalf("%+v costs %+v, and in general %+v", b, a, g)
		}
	})
}
