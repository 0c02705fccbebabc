package models

import "testing"

func mustGPU(t testing.TB, name string) GPU {
	t.Helper()
	g, err := FindGPU(name)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mustLLM(t testing.TB, name string) LLM {
	t.Helper()
	m, err := FindLLM(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// deployment returns a BF16 deployment with the defaults of the catalogue.
func deployment(t testing.TB, llm, gpu string, tp int) Deployment {
	t.Helper()
	d := Deployment{
		LLM: mustLLM(t, llm), GPU: mustGPU(t, gpu), TP: tp,
		WeightDtype: BF16, KVDtype: BF16,
		MemoryUtilization: 0.92, MaxBatchedTokens: 8192,
		Host: DefaultHost(tp),
	}
	d.OverheadGiB = DefaultOverheadGiB(d.LLM, tp, d.MaxBatchedTokens)
	return d
}

func stepper(t testing.TB, d Deployment) *Stepper {
	t.Helper()
	s, err := NewStepper(d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// decodeBatch is rows decode rows that each hold ctx tokens.
func decodeBatch(rows int32, ctx int64) Batch {
	return Batch{Tokens: rows, Seqs: rows, DecodeSeqs: rows, DecodeCtx: int64(rows) * ctx}
}

// prefillBatch is one prompt of n tokens in one chunk.
func prefillBatch(n int32) Batch {
	return Batch{Tokens: n, Seqs: 1, PrefillTokens: n, PrefillArea: int64(n) * int64(n) / 2}
}
