package report

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// requireBrowser makes a missing browser a failure: CI sets it.
const requireBrowser = "SIM_REQUIRE_BROWSER"

// settle is how long a page gets to follow a change of its window.
const settle = 250 * time.Millisecond

// browser starts headless Chromium without a network, for tab to open pages in.
// Without a binary the test is skipped, unless the environment demands one.
func browser(t *testing.T) context.Context {
	t.Helper()
	binary := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			binary = path
			break
		}
	}
	if binary == "" {
		if os.Getenv(requireBrowser) == "1" {
			t.Fatalf("no Chromium found in PATH, and %s=1 demands the browser test (Debian: apt-get install chromium)", requireBrowser)
		}
		t.Skip("no Chromium found in PATH: the page is not tried in a browser (Debian: apt-get install chromium)")
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(binary), chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"), chromedp.Flag("disable-dev-shm-usage", true))
	t.Cleanup(stopAllocator)
	ctx, stop := chromedp.NewContext(allocator)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("%s does not start: %v", binary, err)
	}
	return ctx
}

// tab opens a new tab, bounded in time.
func tab(t *testing.T, browser context.Context) context.Context {
	t.Helper()
	ctx, stop := chromedp.NewContext(browser)
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// complaints collects what a page must not do: log an error, throw, open a
// dialogue, or ask for anything but itself.
type complaints struct {
	sync.Mutex
	texts []string
}

func (c *complaints) add(format string, args ...any) {
	c.Lock()
	defer c.Unlock()
	c.texts = append(c.texts, fmt.Sprintf(format, args...))
}

func (c *complaints) watch(t *testing.T, ctx context.Context, url string) {
	t.Helper()
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			c.add("exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
		case *runtime.EventConsoleAPICalled:
			var args []string
			for _, a := range e.Args {
				args = append(args, string(a.Value)+a.Description)
			}
			c.add("console.%s: %s", e.Type, strings.Join(args, " "))
		case *log.EventEntryAdded:
			c.add("log %s: %s", e.Entry.Level, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if e.Request.URL != url {
				c.add("request: %s", e.Request.URL)
			}
		case *cdpage.EventJavascriptDialogOpening:
			c.add("dialogue: %s", e.Message)
			go func() {
				_, _ = chromedp.Call(ctx, cdpage.HandleJavaScriptDialog, cdpage.HandleJavaScriptDialogParams{})
			}()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// open writes a fixture's page and loads it.
func open(t *testing.T, ctx context.Context, f fixture, c *complaints) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, f.result, f.meta); err != nil {
		t.Fatal(err)
	}
	load(t, ctx, filepath.Join(dir, "report.html"), c)
}

// load opens a page from its file and waits until it has drawn.
func load(t *testing.T, ctx context.Context, path string, c *complaints) {
	t.Helper()
	url := "file://" + path
	c.watch(t, ctx, url)
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	err := chromedp.Do(ctx, chromedp.Navigate(url), chromedp.WaitReady(`html[data-charts]`))
	if err != nil {
		t.Fatal(err)
	}
}

// drawnScript counts the charts on the page and those that drew nothing: a chart
// draws when its SVG holds a line of some length.
const drawnScript = `(() => {
  const all = [...document.querySelectorAll(".chart")];
  const empty = all.filter(e => {
    const chart = echarts.getInstanceByDom(e);
    const paths = [...e.querySelectorAll("svg path")].filter(p => (p.getAttribute("d") || "").length > 60);
    return !chart || paths.length === 0 || e.getBoundingClientRect().width < 100;
  }).map(e => e.id);
  return {charts: all.length, blocks: document.querySelectorAll("script.chart-data").length, empty: empty.join(" "),
          overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth};
})()`

// look sets the colour scheme and the window's width, and lets the page follow.
func look(t *testing.T, ctx context.Context, scheme string, width int64) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Sleep(settle)); err != nil {
		t.Fatal(err)
	}
}

type drawn struct {
	Charts, Blocks int
	Empty          string
	Overflow       int
}

// interactScript uses the page as a reader does: it zooms by a preset, opens a
// data table, and points at every chart.
const interactScript = `(async () => {
  const rest = ms => new Promise(r => setTimeout(r, ms));
  const all = [...document.querySelectorAll(".chart")].map(e => echarts.getInstanceByDom(e));
  const run = all.filter(c => c.group === "run");
  document.querySelectorAll(".zooms button")[1].click();
  await rest(300);
  const spans = new Set(run.map(c => { const z = c.getOption().dataZoom[0]; return z.startValue + ".." + z.endValue; }));
  const before = document.querySelectorAll(".zooms button")[1].dataset;
  const right = run.every(c => { const z = c.getOption().dataZoom[0]; return z.startValue == before.from && z.endValue == before.to; });
  document.querySelector("details.data").open = true;
  await rest(100);
  const tips = [];
  for (const c of all) {
    c.dispatchAction({type: "showTip", seriesIndex: 0, dataIndex: 1});
    await rest(20);
    tips.push(c.getDom().querySelector(".tip td") !== null);
  }
  return {spans: spans.size, right, rows: document.querySelectorAll("details.data tbody tr").length,
          tips: tips.filter(x => x).length, charts: all.length, images: document.images.length};
})()`

type interacted struct {
	Spans, Rows, Tips, Charts, Images int
	Right                             bool
}

// TestBrowserActsOnAllCharts checks zoom, table and tooltips on the hostile fixture,
// whose names reach all three.
func TestBrowserActsOnAllCharts(t *testing.T) {
	ctx := tab(t, browser(t))
	var bad complaints
	f := fixtures()["hostile"]
	open(t, ctx, f, &bad)
	look(t, ctx, "light", 1280)
	got, err := chromedp.Run(ctx, chromedp.Evaluate[interacted](interactScript, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	want := interacted{Spans: 1, Right: true, Rows: len(f.result.Series.T), Tips: f.charts, Charts: f.charts}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, text := range bad.texts {
		t.Error(text)
	}
}

// TestBrowserPrintsEveryChart checks that the printed page keeps its charts, within
// the sheet's width and in the light colours.
func TestBrowserPrintsEveryChart(t *testing.T) {
	ctx := tab(t, browser(t))
	var bad complaints
	f := fixtures()["prompt-growth"]
	open(t, ctx, f, &bad)
	look(t, ctx, "dark", 700)
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print",
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Sleep(settle)); err != nil {
		t.Fatal(err)
	}
	d, err := chromedp.Run(ctx, chromedp.Evaluate[drawn](drawnScript))
	if err != nil {
		t.Fatal(err)
	}
	if d.Charts != f.charts || d.Empty != "" || d.Overflow > 0 {
		t.Errorf("on paper: %+v, want %d charts, none empty", d, f.charts)
	}
	ink, err := chromedp.Run(ctx, chromedp.Evaluate[string](`getComputedStyle(document.documentElement).getPropertyValue("--bg")`))
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(ink) != "#ffffff" {
		t.Errorf("the background on paper is %q, want #ffffff", ink)
	}
	pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize()))
	if err != nil {
		t.Fatal(err)
	}
	if len(pdf) < 50_000 {
		t.Errorf("the PDF has %d bytes: it cannot hold the charts", len(pdf))
	}
}

// TestBrowserDrawsEveryChart opens each fixture's page in a real browser: every
// chart draws, in both themes and on a phone's width, with no error and no
// request, and nothing in a hostile name runs.
func TestBrowserDrawsEveryChart(t *testing.T) {
	chromium := browser(t)
	for name, f := range fixtures() {
		t.Run(name, func(t *testing.T) {
			ctx := tab(t, chromium)
			var bad complaints
			open(t, ctx, f, &bad)
			for _, view := range []struct {
				scheme string
				width  int64
			}{{"light", 1280}, {"dark", 1280}, {"light", 390}} {
				look(t, ctx, view.scheme, view.width)
				d, err := chromedp.Run(ctx, chromedp.Evaluate[drawn](drawnScript))
				if err != nil {
					t.Fatal(err)
				}
				if d.Charts != f.charts || d.Blocks != f.charts || d.Empty != "" {
					t.Errorf("%s %d px: %d charts of %d blocks, want %d; empty: %q", view.scheme, view.width, d.Charts, d.Blocks, f.charts, d.Empty)
				}
				if d.Overflow > 0 {
					t.Errorf("%s %d px: the page is %d px wider than the window", view.scheme, view.width, d.Overflow)
				}
			}
			for _, text := range bad.texts {
				t.Error(text)
			}
		})
	}
}

// TestBrowserOpensAReport checks a page that a run has written, in CI the main
// experiment's: SIM_REPORT=out/prompt-growth/report.html.
func TestBrowserOpensAReport(t *testing.T) {
	name := os.Getenv("SIM_REPORT")
	if name == "" {
		t.Skip("SIM_REPORT names no report.html")
	}
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("SIM_REPORT: %v (relative paths count from internal/report)", err)
	}
	ctx := tab(t, browser(t))
	var bad complaints
	load(t, ctx, path, &bad)
	look(t, ctx, "light", 1280)
	d, err := chromedp.Run(ctx, chromedp.Evaluate[drawn](drawnScript))
	if err != nil {
		t.Fatal(err)
	}
	if d.Charts == 0 || d.Charts != d.Blocks || d.Empty != "" || d.Overflow > 0 {
		t.Errorf("%+v: want charts, one per block, none empty, within the window", d)
	}
	for _, text := range bad.texts {
		t.Error(text)
	}
}
