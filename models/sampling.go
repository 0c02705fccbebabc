package models

// How an engine draws tokens when not greedily. Both sort the vocabulary of every
// sequence (vLLM's sampler without FlashInfer); top-k masks by rank besides.
const (
	SamplingTopP = "top-p"
	SamplingTopK = "top-k"
)

// Samplings returns the ways of drawing tokens beside the greedy one.
func Samplings() []string { return []string{SamplingTopP, SamplingTopK} }

// sortSeconds returns what a way of sampling costs per logit and sequence.
func (c *Common) sortSeconds(sampling string) float64 {
	switch sampling {
	case SamplingTopP:
		return c.TopPSortNs * 1e-9
	case SamplingTopK:
		return c.TopKSortNs * 1e-9
	}
	return 0
}
