package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"slosim/sim"
)

// drawnScript counts the charts on the page and those that drew nothing: a chart
// draws when its SVG holds a line of some length.
const drawnScript = `(() => {
  const all = [...document.querySelectorAll(".chart")];
  const empty = all.filter(e => {
    const chart = echarts.getInstanceByDom(e);
    const paths = [...e.querySelectorAll("svg path")].filter(p => (p.getAttribute("d") || "").length > 60);
    return !chart || paths.length === 0 || e.getBoundingClientRect().width < 100;
  }).map(e => e.id);
  const style = getComputedStyle(document.documentElement);
  const named = new Set([...document.querySelectorAll("svg [fill^='var('], svg [stroke^='var(']")].flatMap(e =>
    [e.getAttribute("fill"), e.getAttribute("stroke")].flatMap(v => /^var\((.*)\)$/.exec(v || "")?.[1] || [])));
  const line = document.querySelector("svg path[stroke='var(--p99)']");
  return {unknown: [...named].filter(n => style.getPropertyValue(n) === "").join(" "), p99: line ? getComputedStyle(line).stroke : "",
          charts: all.length, blocks: document.querySelectorAll("script.chart-data").length, empty: empty.join(" "),
          overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth};
})()`

type drawn struct {
	Charts, Blocks int
	Empty          string
	Unknown        string // colours that the style sheet does not have
	P99            string // the colour of a line as the reader sees it
	Overflow       int
}

// interactScript uses the page as a reader does: it zooms by a preset, opens data
// tables, points at one chart for all that share the hover, and at each alone.
const interactScript = `(async () => {
  const until = async what => {
    for (const end = performance.now() + 5000; !what() && performance.now() < end;) await new Promise(r => setTimeout(r, 4));
  };
  const all = [...document.querySelectorAll(".chart")].map(e => echarts.getInstanceByDom(e));
  const run = all.filter(c => c.group === "run");
  const button = document.querySelectorAll(".zooms button")[1], {from, to} = button.dataset;
  button.click();
  await until(() => document.documentElement.dataset.zoomed === from + " " + to);
  const zooms = run.map(c => c.getOption().dataZoom[0]);
  const spans = new Set(zooms.map(z => z.startValue + ".." + z.endValue));
  const right = zooms.every(z => z.startValue == from && z.endValue == to);
  const tables = [...document.querySelectorAll("details.data")].filter((d, i, list) => i === 0 || i === list.findIndex(e => e.dataset.chart === "prompts"));
  const rows = [];
  for (const d of tables) {
    d.open = true;
    await until(() => d.querySelector("tbody tr"));
    rows.push(d.querySelectorAll("tbody tr").length);
  }
  const point = c => c.dispatchAction({type: "showTip", seriesIndex: 0, dataIndex: 1});
  const tip = c => c.getDom().querySelector(".tip td");
  point(run[0]);
  await until(() => run.every(tip));
  const together = run.every(tip);
  echarts.disconnect("run");
  echarts.disconnect("budget");
  let tips = 0;
  for (const c of all) {
    c.getDom().querySelector(".tip")?.remove();
    point(c);
    await until(() => tip(c));
    if (tip(c)) tips++;
  }
  return {spans: spans.size, right, rows: rows.join(" "), together, tips, charts: all.length, images: document.images.length};
})()`

type interacted struct {
	Spans, Tips, Charts, Images int
	Rows                        string // of the first table and of the one by prompt length
	Right, Together             bool
}

// TestBrowserActsOnAllCharts checks zoom, table and tooltips on the hostile fixture,
// whose names reach all three.
func TestBrowserActsOnAllCharts(t *testing.T) {
	f := fixtures()["hostile"]
	ctx, bad := open(t, tab(t), f, view{"light", 1280})
	got, err := chromedp.Run(ctx, chromedp.Evaluate[interacted](interactScript, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	want := interacted{Spans: 1, Right: true, Together: true, Rows: fmt.Sprintf("%d %d", len(f.result.Series.T), len(sim.PromptEdges)+1), Tips: f.charts, Charts: f.charts}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, text := range bad.all() {
		t.Error(text)
	}
}

// TestBrowserPrintsEveryChart checks that the printed page keeps its charts, within
// the sheet's width and in the light colours.
func TestBrowserPrintsEveryChart(t *testing.T) {
	f := fixtures()["prompt-growth"]
	ctx, _ := open(t, tab(t), f, view{"dark", 700})
	media(t, ctx, "print", "dark")
	waitDrawn(t, ctx, "print 700")
	d, err := chromedp.Run(ctx, chromedp.Evaluate[drawn](drawnScript))
	if err != nil {
		t.Fatal(err)
	}
	if d.Charts != f.charts || d.Empty != "" || d.Overflow > 0 || d.P99 != p99Colour["light"] {
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
// request, and nothing in a hostile name runs. The fixtures share a tab, and each
// begins with the view that the one before it ends with: a page draws only for
// views of its own.
func TestBrowserDrawsEveryChart(t *testing.T) {
	page, views := tab(t), []view{{"dark", 1280}, {"light", 1280}, {"light", 390}}
	for name, f := range fixtures() {
		t.Run(name, func(t *testing.T) {
			ctx, bad := open(t, page, f, views[0])
			defer slices.Reverse(views)
			for _, v := range views {
				look(t, ctx, v)
				d, err := chromedp.Run(ctx, chromedp.Evaluate[drawn](drawnScript))
				if err != nil {
					t.Fatal(err)
				}
				if d.Charts != f.charts || d.Blocks != f.charts || d.Empty != "" {
					t.Errorf("%s %d px: %d charts of %d blocks, want %d; empty: %q", v.scheme, v.width, d.Charts, d.Blocks, f.charts, d.Empty)
				}
				if d.Unknown != "" || f.charts > 0 && d.P99 != p99Colour[v.scheme] {
					t.Errorf("%s %d px: P99 is drawn in %q, want %q; unknown colours: %q", v.scheme, v.width, d.P99, p99Colour[v.scheme], d.Unknown)
				}
				if d.Overflow > 0 {
					t.Errorf("%s %d px: the page is %d px wider than the window", v.scheme, v.width, d.Overflow)
				}
			}
			for _, text := range bad.all() {
				t.Error(text)
			}
		})
	}
}

// p99Colour is --p99 of page.css in each theme.
var p99Colour = map[string]string{"light": "rgb(217, 127, 0)", "dark": "rgb(240, 163, 58)"}

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
	ctx, bad := load(t, tab(t), path, view{"light", 1280})
	d, err := chromedp.Run(ctx, chromedp.Evaluate[drawn](drawnScript))
	if err != nil {
		t.Fatal(err)
	}
	if d.Charts == 0 || d.Charts != d.Blocks || d.Empty != "" || d.Overflow > 0 {
		t.Errorf("%+v: want charts, one per block, none empty, within the window", d)
	}
	for _, text := range bad.all() {
		t.Error(text)
	}
}
