package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestShots takes pictures of the fixtures' pages, below -pages, for a look at
// them: light, dark, narrow, and the printed PDF.
func TestShots(t *testing.T) {
	if *pagesDir == "" {
		t.Skip("no -pages folder given")
	}
	chromium := browser(t)
	for name, f := range fixtures() {
		t.Run(name, func(t *testing.T) {
			ctx := tab(t, chromium)
			var bad complaints
			open(t, ctx, f, &bad)
			dir := filepath.Join(*pagesDir, name)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			save := func(file string, data []byte) {
				if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, view := range []struct {
				file, scheme string
				width        int64
			}{{"light.png", "light", 1280}, {"dark.png", "dark", 1280}, {"narrow.png", "light", 390}} {
				look(t, ctx, view.scheme, view.width)
				shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
				if err != nil {
					t.Fatal(err)
				}
				save(view.file, shot)
			}
			pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize()))
			if err != nil {
				t.Fatal(err)
			}
			save("page.pdf", pdf)
		})
	}
}
