package measured

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file whose rows come in two units is refused; rows that only differ are not.
func TestMixedUnitsAreRefused(t *testing.T) {
	write := func(scale func(i int) float64) string {
		text := "arrival_s,prompt,output,ttft_ms,e2e_ms\n"
		for i := range 200 {
			k := scale(i)
			text += fmt.Sprintf("%d,%d,%d,%g,%g\n", i, 500+i, 50+i%7, (80+float64(i%30))*k, (900+float64(i%90)*5)*k)
		}
		path := filepath.Join(t.TempDir(), "m.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if _, err := ReadFile(write(func(int) float64 { return 1 })); err != nil {
		t.Fatal(err)
	}
	_, err := ReadFile(write(func(i int) float64 { return []float64{1, .001}[i%2] }))
	if err == nil || !strings.Contains(err.Error(), "units") {
		t.Error(err)
	}
}
