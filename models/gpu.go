package models

// GPU is one accelerator: its data sheet, and the kernel coefficients measured
// on it. Each figure's source is in Sources under the figure's TOML key.
type GPU struct {
	Name      string
	MemoryMiB int // as torch sees it

	PeakBF16TFLOPS float64 // dense
	PeakFP8TFLOPS  float64 // dense; 0 = not supported
	BandwidthGBs   float64 // HBM, GB/s
	NVLinkGBs      float64 // one direction per GPU

	TDPW        float64
	MaxClockMHz int
	MaxTempC    float64 // software thermal slowdown starts here

	// Kernels and thermal coefficients follow (see the catalogue).
	Sources map[string]string
}
