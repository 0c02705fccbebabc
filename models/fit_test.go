package models

import (
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/gonum/optimize"
)

// go test ./models -run KernelFit -fit fits every kernel coefficient of the
// catalogue to the measured tables and writes it to gpus.toml. Without the flag
// the tests of kernels_data_test.go check that the catalogue holds those errors.
var fit = flag.Bool("fit", false, "fit the kernel coefficients to the measured tables and write them to gpus.toml")

// sample is one measured kernel; held ones are left out of the fit.
type sample struct {
	seconds   float64
	predicted func(coefficients any) float64
	held      bool
	use       bool // counts; else only reported
}

// holdOut marks every fifth shape, in the order of the table.
type holdOut struct {
	seen map[string]int
}

func (h *holdOut) held(format string, args ...any) bool {
	if h.seen == nil {
		h.seen = map[string]int{}
	}
	key := fmt.Sprintf(format, args...)
	i, ok := h.seen[key]
	if !ok {
		i = len(h.seen)
		h.seen[key] = i
	}
	return i%5 == 4
}

// errorsOf returns relative errors of the samples: left out, and all.
func errorsOf(samples []sample, c any) (held, all fitErrors) {
	for _, s := range samples {
		if !s.use {
			continue
		}
		all.add(s.predicted(c), s.seconds)
		if s.held {
			held = append(held, all[len(all)-1])
		}
	}
	return held, all
}

// fitted returns the coefficients that minimise the mean absolute log error of
// the samples that are not left out, starting from start. Fields that are zero
// there stay zero.
func fitted[T any](samples []sample, start T) T {
	v := reflect.ValueOf(&start).Elem()
	var fields []int
	var from []float64
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Float64 && f.Float() != 0 && !strings.Contains(v.Type().Field(i).Name, "MAPE") {
			fields = append(fields, i)
			from = append(from, f.Float())
		}
	}
	at := func(y []float64) T {
		c := start
		v := reflect.ValueOf(&c).Elem()
		for i, f := range fields {
			x := from[i] * math.Exp(y[i])
			if strings.HasSuffix(v.Type().Field(f).Name, "Eff") {
				x = min(1, x)
			}
			v.Field(f).SetFloat(x)
		}
		return c
	}
	loss := func(y []float64) float64 {
		c, sum, n := at(y), 0.0, 0.0
		for _, s := range samples {
			if s.use && !s.held {
				sum += min(1, math.Abs(math.Log(s.predicted(c)/s.seconds)))
				n++
			}
		}
		return sum / n
	}
	best, bestLoss := make([]float64, len(fields)), math.Inf(1)
	for _, size := range []float64{0.1, 0.4, 0.05} {
		settings := &optimize.Settings{FuncEvaluations: 900}
		r, _ := optimize.Minimize(optimize.Problem{Func: loss}, best, settings, &optimize.NelderMead{SimplexSize: size})
		if r != nil && r.F < bestLoss {
			best, bestLoss = r.X, r.F
		}
	}
	return at(best)
}

// entry writes coefficients as an inline table of the catalogue.
func entry(c any) string {
	v := reflect.ValueOf(c)
	var parts []string
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			continue
		}
		x, digits := v.Field(i).Float(), 3
		tag := v.Type().Field(i).Tag.Get("toml")
		switch {
		case strings.Contains(tag, "mape"):
			parts = append(parts, fmt.Sprintf("%s = %.1f", tag, x))
			continue
		case x < 1e-3: // nothing
			continue
		case x >= 100:
			digits = 4
		}
		text := fmt.Sprintf("%.*g", digits, x)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		parts = append(parts, tag+" = "+text)
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// record writes coefficients to the catalogue's file.
func rewrite(t *testing.T, gpu, table, dtype, value string) {
	t.Helper()
	text, err := os.ReadFile("gpus.toml")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?s)(name = "` + gpu + `".*?\[gpu\.` + table + `\]\n.*?)(` + dtype + ` = )\{[^}]*\}`)
	if !line.Match(text) {
		t.Fatalf("gpus.toml has no [gpu.%s] %s of %s", table, dtype, gpu)
	}
	out := line.ReplaceAll(text, []byte("${1}${2}"+value))
	if err := os.WriteFile("gpus.toml", out, 0o644); err != nil {
		t.Fatal(err)
	}
}

// quiet returns the coefficients without their errors, for a copy of a table.
func startGEMM(dtype string) GEMM {
	c := GEMM{LaunchUs: 4, ComputeEff: 0.8, MemoryEff: 0.85, P: 3, Wave: 0.3, ExtraK: 100, MemoryWave: 0.05}
	if dtype == BF16 {
		c.MPower = 0.02
	} else {
		c.QuantPs = 2
	}
	return c
}

func TestKernelFit(t *testing.T) {
	if !*fit {
		t.Skip("fits only with -fit")
	}
	for _, k := range kernelTables {
		gpu := mustGPU(t, k.gpu)
		for _, dtype := range []string{BF16, FP8, NVFP4} {
			if _, ok := gpu.GEMM.of(dtype); !ok {
				continue
			}
			s := k.gemmSamples(t, gpu, dtype)
			c := fitted(s, startGEMM(dtype))
			held, all := errorsOf(s, c)
			c.MAPEPct = held.mapePct()
			t.Logf("%s gemm %s: left out %.2f %%, all %.2f %%: %s", k.gpu, dtype, held.mapePct(), all.mapePct(), entry(c))
			rewrite(t, k.gpu, "gemm", dtype, entry(c))
		}
		for _, dtype := range []string{BF16, FP8} {
			c, ok := gpu.Attention.of(dtype)
			if !ok {
				continue
			}
			prefill, decode := k.prefillSamples(t, gpu, dtype), k.decodeSamples(t, gpu, dtype)
			p := fitted(prefill, Attention{PrefillUs: 13, PrefillEff: 0.7, PrefillPasses: 2})
			d := fitted(decode, Attention{DecodeUs: 11, DecodeEff: 0.9, DecodePerSeqNs: 5, DecodePerKVHeadNs: 15, DecodeOccupancy: 0.7})
			c = Attention{
				PrefillUs: p.PrefillUs, PrefillEff: p.PrefillEff, PrefillPasses: p.PrefillPasses,
				DecodeUs: d.DecodeUs, DecodeEff: d.DecodeEff, DecodePerSeqNs: d.DecodePerSeqNs, DecodePerKVHeadNs: d.DecodePerKVHeadNs, DecodeOccupancy: d.DecodeOccupancy,
			}
			ph, pa := errorsOf(prefill, c)
			dh, da := errorsOf(decode, c)
			c.PrefillMAPEPct, c.DecodeMAPEPct = ph.mapePct(), dh.mapePct()
			t.Logf("%s attention %s: prefill left out %.2f, all %.2f %%; decode %.2f, %.2f %%: %s", k.gpu, dtype, ph.mapePct(), pa.mapePct(), dh.mapePct(), da.mapePct(), entry(c))
			rewrite(t, k.gpu, "attention", dtype, entry(c))
		}
	}
}
