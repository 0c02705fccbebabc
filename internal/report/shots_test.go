package report

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var pageFile = flag.String("page", "", "with -pages: take pictures of this report.html instead of the fixtures'")

// TestShots takes pictures for a look at them: light, dark, narrow, and printed.
//
//	go test ./internal/report -run TestShots -pages /tmp/pages
//	go test ./internal/report -run TestShots -pages /tmp/pages -page out/prompt-growth/report.html
func TestShots(t *testing.T) {
	if *pagesDir == "" {
		t.Skip("no -pages folder given")
	}
	chromium := browser(t)
	if *pageFile != "" {
		path, err := filepath.Abs(*pageFile)
		if err != nil {
			t.Fatal(err)
		}
		ctx := tab(t, chromium)
		load(t, ctx, path, new(complaints))
		shoot(t, ctx, *pagesDir)
		return
	}
	for name, f := range fixtures() {
		t.Run(name, func(t *testing.T) {
			ctx := tab(t, chromium)
			var bad complaints
			open(t, ctx, f, &bad)
			shoot(t, ctx, filepath.Join(*pagesDir, name))
		})
	}
}

// shoot writes the pictures of an open page into dir.
func shoot(t *testing.T, ctx context.Context, dir string) {
	t.Helper()
	save := func(file string, data []byte, err error) {
		t.Helper()
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, view := range []struct {
		file, scheme string
		width        int64
	}{{"light.png", "light", 1280}, {"dark.png", "dark", 1280}, {"narrow.png", "light", 390}} {
		look(t, ctx, view.scheme, view.width)
		shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		save(view.file, shot, err)
	}
	pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize()))
	save("page.pdf", pdf, err)
}
