package report

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var pagesDir = flag.String("pages", "", "write the fixtures' pages below this folder")

// TestPages writes the fixtures' reports for a look at them:
//
//	go test ./internal/report -run TestPages -pages /tmp/pages
func TestPages(t *testing.T) {
	if *pagesDir == "" {
		t.Skip("no -pages folder given")
	}
	Terminal(os.Stdout, promptGrowth(), metaFixture())
	if err := Write(filepath.Join(*pagesDir, "prompt-growth"), promptGrowth(), metaFixture()); err != nil {
		t.Fatal(err)
	}
}
