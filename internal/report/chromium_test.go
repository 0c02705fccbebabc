package report

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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

// patience bounds what a test waits for in one page.
const patience = time.Minute

// chromium is the one browser of all tests; TestMain stops it.
var chromium struct {
	sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	os.Exit(code)
}

// browser returns a tab's parent: headless Chromium without a network, started
// once. Without a binary the test is skipped, unless the environment demands one.
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
	chromium.Do(func() { startChromium(binary) })
	if chromium.err != nil {
		t.Fatalf("%s does not start: %v", binary, chromium.err)
	}
	return chromium.ctx
}

func startChromium(binary string) {
	profile, err := os.MkdirTemp("", "report-chromium")
	if err != nil {
		chromium.err = err
		return
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(binary), chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.DisableGPU,
		chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		// Pages of Chromium's own that it loads in the background, a second of work.
		chromedp.Flag("disable-features", "WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,PreloadTopChromeWebUI"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"), chromedp.Flag("disable-dev-shm-usage", true))
	ctx, stop := chromedp.NewContext(allocator)
	chromium.ctx = ctx
	chromium.stop = func() {
		stop()
		stopAllocator()
		_ = os.RemoveAll(profile)
	}
	chromium.err = chromedp.Do(ctx, chromedp.Navigate("about:blank"))
}

// tab opens a new tab, for one page after the other.
func tab(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := chromedp.NewContext(browser(t))
	t.Cleanup(stop)
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
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

func (c *complaints) all() []string {
	c.Lock()
	defer c.Unlock()
	return slices.Clone(c.texts)
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

// view is how a page is looked at.
type view struct {
	scheme string // "light" or "dark"
	width  int64
}

// open writes a fixture's page and loads it.
func open(t *testing.T, ctx context.Context, f fixture, v view) (context.Context, *complaints) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, f.result, f.meta); err != nil {
		t.Fatal(err)
	}
	return load(t, ctx, filepath.Join(dir, "report.html"), v)
}

// load opens a page from its file in a tab and waits until it has drawn. The
// context it returns is bounded in time and ends with the test.
func load(t *testing.T, tab context.Context, path string, v view) (context.Context, *complaints) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, patience)
	t.Cleanup(cancel)
	emulate(t, ctx, v)
	c, url := new(complaints), "file://"+path
	c.watch(t, ctx, url)
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	waitDrawn(t, ctx, strconv.FormatInt(v.width, 10))
	return ctx, c
}

// look sets the colour scheme and the window's width, and waits for the page to
// follow.
func look(t *testing.T, ctx context.Context, v view) {
	t.Helper()
	emulate(t, ctx, v)
	waitDrawn(t, ctx, strconv.FormatInt(v.width, 10))
}

func emulate(t *testing.T, ctx context.Context, v view) {
	t.Helper()
	media(t, ctx, "", v.scheme)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(v.width, 500)); err != nil {
		t.Fatal(err)
	}
}

// media sets the medium, "" or "print", and the colour scheme.
func media(t *testing.T, ctx context.Context, medium, scheme string) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: medium,
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err != nil {
		t.Fatal(err)
	}
}

// waitDrawn waits for the page's own word that it has drawn its charts for a
// width, "1280" or "print 700". Themes need none: they are the style sheet's.
func waitDrawn(t *testing.T, ctx context.Context, look string) {
	t.Helper()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(drawnSignal, look), chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	if got != look {
		t.Fatalf("the page has drawn for %q, want %q", got, look)
	}
}

// drawnSignal resolves with what the page has last drawn for, once that is what
// is wanted or half a minute has passed.
const drawnSignal = `new Promise(resolve => {
  const want = %q, root = document.documentElement, now = () => root.dataset.drawn || "";
  const done = () => { watcher.disconnect(); resolve(now()); };
  const watcher = new MutationObserver(() => { if (now() === want) done(); });
  watcher.observe(root, {attributes: true});
  setTimeout(done, 30000);
  if (now() === want) done();
})`
