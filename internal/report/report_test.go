package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slosim/sim"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with testdata/name, or writes it with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test ./internal/report -update, and review what it writes", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); if that is meant, run with -update:\n%s", path, diff)
	}
}

// small is the main fixture cut to one objective and three windows.
func small() fixture {
	f := fixtures()["prompt-growth"]
	r := f.result
	r.SLOs = r.SLOs[:1]
	r.Phases = []sim.Phase{r.Phases[0], r.Phases[2]}
	r.Phases[1].Classes = r.Phases[1].Classes[:1]
	r.Series.T = r.Series.T[318:321]
	for i := range r.Series.Classes {
		eachSeries(&r.Series.Classes[i], func(v *[]float64) { *v = (*v)[318:321] })
		if mix := r.Series.Classes[i].PromptMix; mix != nil {
			r.Series.Classes[i].PromptMix = mix[318:321]
		}
	}
	p := &r.Series.Pools[0]
	eachPoolSeries(p, func(v *[]float64) { *v = (*v)[318:321] })
	p.Split = p.Split[318:321]
	return f
}

func TestSummaryJSONIsGolden(t *testing.T) {
	f := small()
	data, err := summaryJSON(newStory(f.result, f.meta))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "summary.json", data)
}

func TestCSVIsGolden(t *testing.T) {
	f := small()
	for name, render := range map[string]func(*story) ([]byte, error){"timeseries.csv": classCSV, "timeseries-pools.csv": poolCSV} {
		data, err := render(newStory(f.result, f.meta))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, data)
	}
}

func TestMarkdownAndTerminalAreGoldenForEveryFixture(t *testing.T) {
	for name, f := range fixtures() {
		data, err := summaryMarkdown(newStory(f.result, f.meta))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".md", data)
		var b bytes.Buffer
		Terminal(&b, f.result, f.meta)
		golden(t, name+".txt", b.Bytes())
	}
}

func TestTerminalKeepsToItsWidth(t *testing.T) {
	for name, f := range fixtures() {
		for _, columns := range []int{leastWidth, 80, mostWidth} {
			var b bytes.Buffer
			(&terminal{story: newStory(f.result, f.meta), w: &b, width: columns}).print()
			for line := range strings.Lines(b.String()) {
				if got := width(strings.TrimRight(line, "\n")); got > columns {
					t.Errorf("%s at %d columns: a line of %d: %q", name, columns, got, line)
				}
			}
		}
	}
}

func TestColourNeedsATerminal(t *testing.T) {
	f := small()
	var plain, coloured bytes.Buffer
	Terminal(&plain, f.result, f.meta)
	if strings.Contains(plain.String(), "\x1b") {
		t.Error("colour codes in a buffer")
	}
	(&terminal{story: newStory(f.result, f.meta), w: &coloured, width: defaultWidth, colour: true}).print()
	if stripped := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured.String(), ""); stripped != plain.String() {
		t.Error("colour changes the text")
	}
}

// TestSameResultSameBytes renders every fixture twice from results built anew.
func TestSameResultSameBytes(t *testing.T) {
	first, second := fixtures(), fixtures()
	for name := range first {
		a, b := written(t, first[name]), written(t, second[name])
		if len(a) != 6 {
			t.Errorf("%s: %d files written, want 6", name, len(a))
		}
		for file := range a {
			if !bytes.Equal(a[file], b[file]) {
				t.Errorf("%s: %s differs between two renderings", name, file)
			}
		}
	}
}

// written returns the files of a fixture's report.
func written(t *testing.T, f fixture) map[string][]byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, f.result, f.meta); err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = data
	}
	return out
}

// TestHostileNamesStayText checks every output of the hostile fixture without a
// browser; TestBrowserDrawsEveryChart runs the page itself.
func TestHostileNamesStayText(t *testing.T) {
	f := fixtures()["hostile"]
	files := written(t, f)
	page := files["report.html"]
	if n, want := bytes.Count(page, []byte("<script")), f.charts+2; n != want {
		t.Errorf("the page has %d script elements, want %d", n, want)
	}
	library, err := fs.ReadFile(assets, "assets/echarts/echarts.common.min.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, markup := range []string{"<img", "</script><img", "<script>alert"} {
		if bytes.Contains(bytes.Replace(page, library, nil, 1), []byte(markup)) {
			t.Errorf("the page contains %q", markup)
		}
	}
	if s := string(files["summary.json"]); strings.Contains(s, "<") || !json.Valid([]byte(s)) {
		t.Error("summary.json is not valid or carries markup")
	}
	outsideCode := regexp.MustCompile("`[^`\n]*`").ReplaceAll(files["summary.md"], nil)
	if regexp.MustCompile(`[<>@]`).Match(outsideCode) {
		t.Error("summary.md carries markup")
	}
	var b bytes.Buffer
	Terminal(&b, f.result, f.meta)
	if strings.ContainsFunc(b.String(), func(r rune) bool { return r < ' ' && r != '\n' || isBidiControl(r) }) {
		t.Error("the terminal summary passes on control characters")
	}
	for _, name := range []string{"timeseries.csv", "timeseries-pools.csv"} {
		if _, err := csv.NewReader(bytes.NewReader(files[name])).ReadAll(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSummaryHoldsNoValueForInfinity checks that a quantile among requests never
// answered is null with the span it lies beyond.
func TestSummaryHoldsNoValueForInfinity(t *testing.T) {
	f := fixtures()["never-answered"]
	data, err := summaryJSON(newStory(f.result, f.meta))
	if err != nil {
		t.Fatal(err)
	}
	var out summaryShape
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	p99 := out.Phases[2].Classes[0].TTFT.P99
	if p99.V != nil || p99.BeyondS == nil || *p99.BeyondS != 259200 || p99.Hi != nil || p99.Lo == nil {
		t.Errorf("ttft_s.p99 = %+v, want v null beyond_s 259200", p99)
	}
}

type summaryShape struct {
	Phases []struct {
		Classes []struct {
			TTFT struct {
				P99 struct {
					V, Lo, Hi *float64
					BeyondS   *float64 `json:"beyond_s"`
				}
			} `json:"ttft_s"`
		}
	}
}

// TestBundleIsTheOneNamed checks the embedded library against VERSIONS, and that
// it may stand inside a script element.
func TestBundleIsTheOneNamed(t *testing.T) {
	versions, err := fs.ReadFile(assets, "assets/echarts/VERSIONS")
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := fs.ReadFile(assets, "assets/echarts/echarts.common.min.js")
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256Hex(bundle); !strings.Contains(string(versions), sum) {
		t.Errorf("echarts.common.min.js has sha256 %s, which VERSIONS does not name", sum)
	}
	for _, end := range []string{"</script", "<!--"} {
		if bytes.Contains(bundle, []byte(end)) {
			t.Errorf("the bundle contains %q, which would end the script element", end)
		}
	}
}

func TestChartsStayBelowFourThousandPoints(t *testing.T) {
	for name, f := range fixtures() {
		s := newStory(f.result, f.meta)
		d := &pageData{SLOs: make([]sloCard, len(f.result.SLOs))}
		if err := s.figures(d); err != nil {
			t.Fatal(err)
		}
		figures := slices.Concat(d.Classes, d.Load, []*figure{d.Hero, d.Burn})
		for _, card := range d.SLOs {
			figures = append(figures, card.BurnDown)
		}
		for _, g := range figures {
			if g != nil && len(g.t) > 4000 {
				t.Errorf("%s: chart %s has %d points per series", name, g.ID, len(g.t))
			}
		}
	}
}
