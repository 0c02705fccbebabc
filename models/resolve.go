package models

import "fmt"

// Which coefficients a dtype runs with on a GPU. Each function also returns a
// note that is empty where they were fitted to measurements of just that, and
// else says what stands in.

// gemm returns the coefficients of matrix products with weights of a dtype.
func (g GPU) gemm(dtype string) (GEMM, arithmetic, string) {
	a := g.arithmetic(dtype)
	if c, ok := g.GEMM.of(a.dtype); ok {
		return c, a, g.standIn("GEMMs", dtype, a.dtype)
	}
	// Tensor-core formats without a table run at the efficiencies of FP8, or BF16.
	if c, ok := g.GEMM.of(FP8); ok {
		return c, a, g.standIn("GEMMs", dtype, FP8)
	}
	return g.GEMM.BF16, a, g.standIn("GEMMs", dtype, BF16)
}

// moe returns the coefficients of expert layers. A row of a weight-only format
// was measured with its unpacking, so it goes before the format's arithmetic.
func (g GPU) moe(dtype, kernel string) (MoEKernel, arithmetic, string) {
	a := g.arithmetic(dtype)
	if c := g.MoE.named(kernel); kernel != "" && dtype == MXFP4 && c != (MoEKernel{}) {
		if kernel == ExpertMXFP8 {
			return c, arithmetic{FP8, g.PeakFP8TFLOPS * 1e12, 1}, ""
		}
		return c, arithmetic{BF16, g.peakBF16(), 2}, ""
	}
	if c, ok := g.MoE.of(dtype); ok {
		if dtype == MXFP4 {
			a = arithmetic{BF16, g.peakBF16(), 2} // measured as w4a16
		}
		return c, a, g.standIn("expert layers", dtype, dtype)
	}
	if c, ok := g.MoE.of(a.dtype); ok {
		return c, a, g.standIn("expert layers", dtype, a.dtype)
	}
	if c, ok := g.MoE.of(FP8); ok && a.dtype != BF16 {
		return c, a, g.standIn("expert layers", dtype, FP8)
	}
	return g.MoE.BF16, a, g.standIn("expert layers", dtype, BF16)
}

// mla returns the coefficients of latent attention.
func (g GPU) mla(dtype string) (MLAKernel, arithmetic, string) {
	a := g.arithmetic(dtype)
	if c, ok := g.MLA.of(a.dtype); ok {
		return c, a, g.standIn("latent attention", dtype, a.dtype)
	}
	if c, ok := g.MLA.of(FP8); ok && a.dtype != BF16 {
		return c, a, g.standIn("latent attention", dtype, FP8)
	}
	return g.MLA.BF16, a, g.standIn("latent attention", dtype, BF16)
}

// attention returns the coefficients of attention over a KV cache of a dtype.
func (g GPU) attention(dtype string) (Attention, string) {
	if c, ok := g.Attention.of(dtype); ok {
		return c, g.standIn("attention", dtype, dtype)
	}
	if c, ok := g.Attention.of(FP8); ok && dtype != BF16 {
		return c, g.standIn("attention", dtype, FP8)
	}
	return g.Attention.BF16, g.standIn("attention", dtype, BF16)
}

// standIn words that kernels of one dtype stand in for those of another.
func (g GPU) standIn(what, dtype, used string) string {
	if dtype == used {
		return ""
	}
	if g.arithmetic(dtype).dtype == BF16 && dtype != BF16 {
		return fmt.Sprintf("no kernel table for %s of %s on %s: weight-only, with the efficiencies of %s", what, dtype, g.Name, used)
	}
	return fmt.Sprintf("no kernel table for %s of %s on %s: the efficiencies of %s stand in", what, dtype, g.Name, used)
}

// Notes returns, in plain words, what of the step time was not fitted to
// measurements of this GPU and these number formats; none means that all was.
func (d Deployment) Notes() []string {
	var notes []string
	g := d.GPU
	if !g.Measured() {
		notes = append(notes, fmt.Sprintf("%s is unfitted, ±30 %%: no kernel was measured on it, so the efficiencies of %s are taken at its peak rates", g.Name, g.Like))
	}
	add := func(note string) {
		if note != "" {
			notes = append(notes, note)
		}
	}
	linear := d.WeightDtype
	if linear == MXFP4 && d.LLM.isMoE() {
		linear = BF16
	}
	if _, _, note := g.gemm(linear); !d.LLM.isMLA() || d.LLM.denseLayers() > 0 {
		add(note)
	}
	if d.LLM.isMLA() {
		_, _, note := g.mla(linear)
		add(note)
		if g.MLA.BF16.borrowed() {
			add(fmt.Sprintf("no kernel table for latent attention on %s: the efficiencies of another GPU stand in", g.Name))
		}
	} else {
		_, note := g.attention(d.KVDtype)
		add(note)
	}
	if d.LLM.isMoE() {
		_, _, note := g.moe(d.WeightDtype, d.ExpertKernel)
		add(note)
		if d.ExpertKernel == ExpertMarlin && g.MoE.Marlin != (MoEKernel{}) && g.MoE.Marlin.MAPEPct == 0 {
			add(fmt.Sprintf("no kernel table for Marlin's expert layers on %s: another GPU's efficiencies stand in", g.Name))
		}
	}
	if d.TP > g.NodeGPUs {
		add(fmt.Sprintf("all-reduce over %d GPUs crosses nodes of %d: estimated from the network's bandwidth, not measured", d.TP, g.NodeGPUs))
	}
	return notes
}

// borrowed says that no row of this GPU was measured (see lend).
func (k MLAKernel) borrowed() bool { return k.DecodeMAPEPct == 0 }

// Fitted says whether everything of the step time was fitted to measurements of
// this GPU and these number formats.
func (d Deployment) Fitted() bool { return len(d.Notes()) == 0 }
