package report

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var (
	pageFile = flag.String("page", "", "with -pages: take pictures of this report.html instead of the fixtures'")
	crop     = flag.Int64("crop", 0, "with -pages: only the top so many pixels of each picture, and no PDF")
)

// TestShots takes pictures for a look at them: light, dark, narrow, and printed.
// The second line makes the README's picture, as light.png.
//
//	go test ./internal/report -run TestShots -pages /tmp/pages
//	go test ./internal/report -run TestShots -pages /tmp/pages -page out/prompt-growth/report.html -crop 1000
func TestShots(t *testing.T) {
	if *pagesDir == "" {
		t.Skip("no -pages folder given")
	}
	page := tab(t)
	if *pageFile != "" {
		path, err := filepath.Abs(*pageFile)
		if err != nil {
			t.Fatal(err)
		}
		ctx, _ := load(t, page, path, shots[0].view)
		shoot(t, ctx, *pagesDir)
		return
	}
	for name, f := range fixtures() {
		t.Run(name, func(t *testing.T) {
			ctx, _ := open(t, page, f, shots[0].view)
			shoot(t, ctx, filepath.Join(*pagesDir, name))
		})
	}
}

var shots = []struct {
	file string
	view view
}{{"light.png", view{"light", 1280}}, {"dark.png", view{"dark", 1280}}, {"narrow.png", view{"light", 390}}}

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
	for _, s := range shots {
		look(t, ctx, s.view)
		shot, err := picture(ctx, s.view)
		save(s.file, shot, err)
	}
	if *crop == 0 {
		pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize()))
		save("page.pdf", pdf, err)
	}
}

// picture takes the whole page, or its top in a window of that height.
func picture(ctx context.Context, v view) ([]byte, error) {
	if *crop == 0 {
		return chromedp.Run(ctx, chromedp.FullScreenshot(100))
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(v.width, *crop)); err != nil {
		return nil, err
	}
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}
