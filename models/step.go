package models

// Batch is everything a step model needs to know of one engine step. All fields
// are sums over the scheduled requests, so an engine keeps them incrementally.
type Batch struct {
	Tokens        int32 // scheduled tokens: decode rows + prefill tokens
	Seqs          int32 // scheduled requests
	DecodeSeqs    int32 // rows that decode one token
	PrefillTokens int32 // tokens of prefill chunks
	DecodeCtx     int64 // sum of the decode rows' context, the new token included
	PrefillArea   int64 // sum over chunks of floor(n·past + n·n/2), in token pairs
}

// Cost is what one step takes, by part, in picoseconds; the step time is Total.
// Compute and Memory are no parts of it: they are the same work at the GPU's
// peak rates (dense FLOP/s of the dtype, HBM bytes/s), for utilisation and power.
type Cost struct {
	Gemm, Attn, Comm, Small, Head, Host int64

	Compute, Memory int64
}

// Total returns the step time in picoseconds.
func (c Cost) Total() int64 { return c.Gemm + c.Attn + c.Comm + c.Small + c.Head + c.Host }

// Add adds n times x to c.
func (c *Cost) Add(x *Cost, n int64) {
	c.Gemm += x.Gemm * n
	c.Attn += x.Attn * n
	c.Comm += x.Comm * n
	c.Small += x.Small * n
	c.Head += x.Head * n
	c.Host += x.Host * n
	c.Compute += x.Compute * n
	c.Memory += x.Memory * n
}

// AddOnce adds x to c.
func (c *Cost) AddOnce(x *Cost) {
	c.Gemm += x.Gemm
	c.Attn += x.Attn
	c.Comm += x.Comm
	c.Small += x.Small
	c.Head += x.Head
	c.Host += x.Host
	c.Compute += x.Compute
	c.Memory += x.Memory
}

// AddSince adds to c by how much a growing cost has grown: now − before.
func (c *Cost) AddSince(now, before *Cost) {
	c.Gemm += now.Gemm - before.Gemm
	c.Attn += now.Attn - before.Attn
	c.Comm += now.Comm - before.Comm
	c.Small += now.Small - before.Small
	c.Head += now.Head - before.Head
	c.Host += now.Host - before.Host
	c.Compute += now.Compute - before.Compute
	c.Memory += now.Memory - before.Memory
}

// Growth is by how much a decode step costs more than the one before it: of its parts
// only attention grows with the context.
type Growth struct {
	Attn            int64 // ps
	Compute, Memory int64 // ps at peak rates
}

// AddGrowth adds n times x to c.
func (c *Cost) AddGrowth(x *Growth, n int64) {
	c.Attn += x.Attn * n
	c.Compute += x.Compute * n
	c.Memory += x.Memory * n
}

// ClockStepMHz is the width of a clock bin: bin b stands for b·15 MHz, the step
// in which NVIDIA's SM clocks move. Bin 0 means that no thermal model runs.
const ClockStepMHz = 15

// StepModel tells what a step costs. Implementations are safe for concurrent
// use and answer in O(1).
type StepModel interface {
	// Step returns the cost of a batch at a clock bin.
	Step(b Batch, clockBin int) Cost
	// Slope returns by how much each further step of an unchanged decode batch
	// costs more than the one before it (each row's context grows by one): attention,
	// Compute and Memory, no other part.
	Slope(decodeSeqs int32, clockBin int) Cost
}

// Host holds the constants of a serving engine outside the GPU's kernels. Times
// are in picoseconds, so that they add to steps without rounding.
type Host struct {
	Async bool // the scheduler runs one step ahead of the GPU (a queue of two steps)

	FrontFixedPs    int64 // a0: API, tokeniser and IPC, per request
	FrontPerTokenPs int64 // a1: per prompt token
	StepFixedPs     int64 // h0: per step, not hidden behind the GPU
	StepPerSeqPs    int64 // h1: per scheduled request and step
	StepTPPs        int64 // h_tp: per step, for the multi-process workers of this TP degree
	EagerLayerPs    int64 // least time of a layer in a step with prefill, where the host launches each kernel; 0 = none beyond the catalogue's
	SyncFixedPs     int64 // cpu0: per step, exposed only without async scheduling
	SyncPerSeqPs    int64 // cpu1: per scheduled request and step, likewise
	PublishPerSeqPs int64 // c_pub: delay of a token's publication, per request in its step
	// StreamPerTokenPs is what a serial front end takes to detokenise and send one
	// token: tokens queue behind it, so that it caps what clients see at one token
	// per so long. 0 = it keeps up. Not with engine kind vllm.
	StreamPerTokenPs int64
}

// StepPs returns the host part of one step of seqs requests.
func (h *Host) StepPs(seqs int32) int64 {
	t := h.StepFixedPs + h.StepTPPs + h.StepPerSeqPs*int64(seqs)
	if !h.Async {
		t += h.SyncFixedPs + h.SyncPerSeqPs*int64(seqs)
	}
	return t
}
