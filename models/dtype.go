package models

import "slices"

// Number formats of weights and KV cache.
const (
	BF16  = "bf16"
	FP8   = "fp8"
	INT8  = "int8"
	INT4  = "int4"
	MXFP4 = "mxfp4"
	NVFP4 = "nvfp4"
)

// Dtypes returns the number formats of weights and KV cache, widest first.
func Dtypes() []string { return []string{BF16, FP8, INT8, INT4, MXFP4, NVFP4} }

func isDtype(dtype string) bool { return slices.Contains(Dtypes(), dtype) }

// unit is what one element takes, in 1/256 byte, its share of the scales
// included: int4 has 16 bits of scale and 4 of zero point per 128 elements (AWQ
// and GPTQ, group 128), mxfp4 8 bits per 32 (OCP MX), nvfp4 8 bits per 16.
// Scales per channel or per tensor (int8, fp8) are left out.
func unit(dtype string) int64 {
	switch dtype {
	case FP8, INT8:
		return 256
	case INT4:
		return 133
	case MXFP4:
		return 136
	case NVFP4:
		return 144
	}
	return 512
}

// dtypeBytes returns the bytes of one element. Dtypes are checked by Validate.
func dtypeBytes(dtype string) float64 { return float64(unit(dtype)) / 256 }

// sizeOf returns the bytes of n elements.
func sizeOf(n int64, dtype string) int64 { return n * unit(dtype) / 256 }

// arithmetic is how a GPU multiplies by weights of a dtype: in that format where
// its tensor cores have it, else weight-only, that is in BF16 after unpacking.
type arithmetic struct {
	dtype string  // of the multiplication
	peak  float64 // FLOP/s, dense
	input float64 // bytes of an activation element
}

func (g GPU) arithmetic(dtype string) arithmetic {
	switch {
	case dtype == FP8 && g.PeakFP8TFLOPS > 0:
		return arithmetic{FP8, g.PeakFP8TFLOPS * 1e12, 1}
	case dtype == INT8 && g.PeakINT8TOPS > 0:
		return arithmetic{INT8, g.PeakINT8TOPS * 1e12, 1}
	case (dtype == NVFP4 || dtype == MXFP4) && g.PeakFP4TFLOPS > 0:
		return arithmetic{dtype, g.PeakFP4TFLOPS * 1e12, dtypeBytes(dtype)}
	}
	return arithmetic{BF16, g.PeakBF16TFLOPS * 1e12, 2}
}
