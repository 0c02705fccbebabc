package measured

import (
	"cmp"
	"slices"
	"strings"
)

// dtype normalises a number format: "bfloat16" and "FP16" are bf16 to a step's
// cost, an unknown word stays as it is.
func dtype(text string) string {
	t := strings.ToLower(strings.TrimSpace(text))
	switch {
	case t == "" || strings.Contains(t, "bf16") || strings.Contains(t, "bfloat16") || strings.Contains(t, "fp16") || strings.Contains(t, "float16"):
		return "bf16"
	case t == "fp4" || t == "nvfp4":
		return "nvfp4"
	case strings.HasPrefix(t, "fp8"):
		return "fp8"
	case strings.HasPrefix(t, "int4"):
		return "int4"
	}
	return t
}

// order sorts the requests by arrival; equal arrivals keep their order.
func (r *Run) order() {
	slices.SortStableFunc(r.Load.Requests, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
}
