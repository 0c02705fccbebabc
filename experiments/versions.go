package experiments

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"slosim/internal/config"
)

// mainVersion is vLLM as its reference was read: main of 2026-08-17.
const mainVersion = "main"

// Releases whose defaults are known: 0.11 (2025-10) to 0.27 (2026-08).
const oldestMinor, newestMinor = 11, 27

// vllmSwitch is a default of vLLM that has changed.
type vllmSwitch struct {
	since int    // minor release of 0.x that has the new default
	what  string // for notes
}

// The switches. 0.14: its release notes. 0.19: the first release (2026-04-03)
// after commit dc78c2c933 of 2026-03-24. 0.21: its log says that CUDA-graph memory
// is profiled since v0.21.0, and the default came with that (2026-04-21). The last
// one (4988df2eb8 of 2026-08-11) is younger than the releases known here.
var (
	asyncSwitch  = vllmSwitch{14, "on since 0.14, off before"}
	gateSwitch   = vllmSwitch{19, "scheduler_reserve_full_isl, on since 0.19 (2026-03-24), absent before"}
	memorySwitch = vllmSwitch{21, "0.92 since 0.21 (2026-04-21), 0.90 before"}
	bigGPUSwitch = vllmSwitch{newestMinor + 1, "vLLM's API server on GPUs of 160 GiB and more: 16384 since 2026-08-11, 8192 before"}
)

// vllmVersion is a release of vLLM.
type vllmVersion struct {
	name  string
	minor int
}

// has tells whether the release has a switch's new default.
func (v vllmVersion) has(s vllmSwitch) bool { return v.minor >= s.since }

// version is a release as people write it: "0.11", "0.15.1", "v0.24.0", "main".
var version = config.Unit[vllmVersion]{
	Name:    "a release of vLLM",
	Allowed: fmt.Sprintf(`"0.%d" to "0.%d", patch releases too, or %q (2026-08-17), in quotes`, oldestMinor, newestMinor, mainVersion),
	Example: `"0.15"`, Parse: parseVersion,
	Format: func(v vllmVersion) string { return fmt.Sprintf("%q", v.name) },
}

func parseVersion(v any) (vllmVersion, error) {
	text, ok := v.(string)
	if f, isFloat := v.(float64); isFloat { // as a number: 0.2 can only be 0.20
		text, ok = fmt.Sprintf("%.2f", f), math.Abs(f*100-math.Round(f*100)) < 1e-9
	}
	if !ok {
		return vllmVersion{}, errors.New("is no release")
	}
	if text == mainVersion {
		return vllmVersion{mainVersion, bigGPUSwitch.since}, nil
	}
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	numbers := make([]int, 3)
	for i, part := range parts {
		if i > 2 || !digits(part, &numbers[i]) {
			return vllmVersion{}, errors.New("is no release")
		}
	}
	minor := numbers[1]
	if len(parts) < 2 || numbers[0] != 0 || minor < oldestMinor || minor > newestMinor {
		return vllmVersion{}, errors.New("is a release whose defaults are not known here")
	}
	return vllmVersion{text, minor}, nil
}

// digits reads a number of up to three digits.
func digits(text string, into *int) bool {
	if len(text) < 1 || len(text) > 3 {
		return false
	}
	for _, r := range text {
		if r < '0' || r > '9' {
			return false
		}
		*into = *into*10 + int(r-'0')
	}
	return true
}
