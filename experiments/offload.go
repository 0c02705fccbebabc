package experiments

import (
	"fmt"
	"math"

	"slosim/internal/config"
)

// Host memory is reached over PCIe 5 x16 at 64 GB/s or PCIe 4 x16 at 32 GB/s, each
// way and per GPU (ENGINE §5.5). The default is what the older one leaves after its
// protocol: right or too low on every GPU.
const defaultPCIe = 25e9

// offload reads the second tier of the prefix cache. Blocks are counted for the
// whole replica; each of its GPUs loads its own share of one.
func (r *engineReader) offload() {
	const key = "offload"
	if !r.t.Has(key) {
		r.t.Know(key)
		return
	}
	before := r.l.doc.Failures()
	t := r.t.Sub(key, `offload = { memory = "400GB", bandwidth = "25GB/s" }`)
	memory := config.Read(t, "memory", config.Bytes, config.Required, config.Note[float64]("host memory per replica"), config.Example[float64](`"400GB"`), config.Above(0.0, 1e15))
	bandwidth := config.Read(t, "bandwidth", config.Bandwidth, config.Default(defaultPCIe, "assumption: PCIe 4 x16 less its protocol; PCIe 5 has twice that"), config.Above(0.0, 1e13))
	if !t.Has("bandwidth") {
		r.l.assume.add("Pool %s: KV comes back from host memory at 25 GB/s per GPU (PCIe 4 x16 less its protocol).", r.p.Name)
	}
	if !r.e.PrefixCache {
		r.t.Errorf(key, "", "remove offload, or prefix_caching = false", "offload keeps what the prefix cache evicts, and prefix_caching is false")
	}
	if !r.known || r.l.doc.Failures() > before {
		return
	}
	d := &r.p.Deployment
	perGPU := float64(d.LLM.KVBytesPerTokenPerGPU(d.TP, d.KVDtype)) * float64(r.e.BlockSize)
	blocks := math.Floor(memory / (perGPU * float64(d.TP)))
	if blocks < 1 {
		t.Errorf("memory", fmt.Sprintf("at least %s", config.Bytes.Format(perGPU*float64(d.TP))), "", "memory = %s holds no KV block", config.Bytes.Format(memory))
		return
	}
	r.e.OffloadBlocks = int32(min(blocks, 1<<30))
	r.e.OffloadBlockPs = int64(math.Round(perGPU / bandwidth * 1e12))
}

// graphs reads which steps run as CUDA graphs: those that do are padded to the next
// captured size, the others pay for their launches.
func (r *engineReader) graphs() {
	d := &r.p.Deployment
	eager := config.Read(r.t, "enforce_eager", config.Bool, config.Default(false, "small steps run as CUDA graphs"))
	most := config.Read(r.t, "cudagraph_max_tokens", config.WholeTokens, config.Default(int(d.GPU.Common.GraphMaxTokens), "vLLM's max_cudagraph_capture_size"), config.Example[int]("256"), config.Between(0, maxStepTokens))
	switch {
	case eager && r.t.Has("cudagraph_max_tokens"):
		r.t.Errorf("cudagraph_max_tokens", "", "remove one of the two", "enforce_eager leaves no CUDA graph to bound")
	case eager || most == 0 && r.known:
		d.GraphMaxTokens = -1
	case int32(most) != d.GPU.Common.GraphMaxTokens:
		d.GraphMaxTokens = int32(most)
	}
}
