package models

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Coefficients of GPUs that nobody measured. Efficiencies are shares of peak
// rates, so another GPU's can be taken as they are; latencies stay what they
// are, and what rests on a link scales with its speed.

func mustFind(name string, gpus []GPU) GPU {
	i := slices.IndexFunc(gpus, func(g GPU) bool { return g.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("models: the catalogue has no measured GPU %q", name))
	}
	return gpus[i]
}

// borrow gives g the kernels of the GPU it is Like and the collectives of the
// one that its links are like.
func borrow(g GPU, measured []GPU) GPU {
	like := mustFind(g.Like, measured)
	links := like
	if g.LinkLike != "" {
		links = mustFind(g.LinkLike, measured)
	}
	g.GEMM, g.Attention, g.MoE, g.MLA = like.GEMM, like.Attention, like.MoE, like.MLA
	if g.PeakFP8TFLOPS == 0 {
		g.GEMM.FP8, g.MoE.FP8, g.MLA.FP8 = GEMM{}, MoEKernel{}, MLAKernel{}
		g.MoE.MXFP8 = MoEKernel{}
	}
	g.Sources = maps.Clone(g.Sources)
	for key := range like.Sources {
		switch part, _, _ := strings.Cut(key, "."); part {
		case "gemm", "attention", "moe", "mla":
			g.Sources[key] = "assumption: unfitted, ±30 %: the efficiencies of " + like.Name + " at this GPU's peak rates"
		}
	}
	own := g.AllReduce
	g.AllReduce = AllReduces{
		TP2: links.AllReduce.TP2.faster(g.linkGBs(2) / links.linkGBs(2)),
		TP4: links.AllReduce.TP4.faster(g.linkGBs(4) / links.linkGBs(4)),
		TP8: links.AllReduce.TP8.faster(g.linkGBs(8) / links.linkGBs(8)),
	}
	if g.Topology == pairsTopology { // beyond a pair somebody measured
		g.AllReduce.TP4, g.AllReduce.TP8 = own.TP4, own.TP8
	}
	g.AllToAll = AllToAll{AlphaUs: links.AllToAll.AlphaUs, BusGBs: links.AllToAll.BusGBs * g.linkGBs(8) / links.linkGBs(8)}
	for _, key := range []string{"all_reduce.tp2", "all_reduce.tp4", "all_reduce.tp8", "all_to_all"} {
		if g.Sources[key] == "" {
			g.Sources[key] = "assumption: unfitted: as " + links.Name + ", scaled by the speed of the links"
		}
	}
	return g
}

// linkGBs returns the speed of the links that an exchange between n GPUs rests
// on: those of PCIe unless the links connect so many.
func (g GPU) linkGBs(n int) float64 {
	if g.Topology == meshTopology || g.Topology == pairsTopology && n <= 2 {
		return g.NVLinkGBs
	}
	return g.PCIeGBs
}

// faster returns the all-reduce over links that are this many times as fast:
// what goes beyond the latency of a small message is divided by it.
func (a AllReduce) faster(factor float64) AllReduce {
	a.MAPEPct = 0
	a.BusGBs *= factor
	for i := range a.KnotsUs {
		floor := a.KnotsUs[0]
		a.KnotsUs[i] = math.Round((floor+(a.KnotsUs[i]-floor)/factor)*10) / 10
	}
	return a
}

// lend fills latent attention where its tables have no row of the GPU, from an
// H100. Deployment.Notes says so where it counts.
func lend(g *GPU, measured []GPU) {
	if g.MLA.BF16 != (MLAKernel{}) {
		return
	}
	g.MLA = mustFind("h100-sxm-80gb", measured).MLA
	g.MLA.BF16.DecodeMAPEPct, g.MLA.FP8.DecodeMAPEPct = 0, 0
	if g.PeakFP8TFLOPS == 0 {
		g.MLA.FP8 = MLAKernel{}
	}
	g.Sources = maps.Clone(g.Sources)
	for _, key := range []string{"mla.bf16", "mla.fp8"} {
		g.Sources[key] = "assumption: unfitted, ±30 %: the efficiencies of h100-sxm-80gb at this GPU's peak rates"
	}
}
