package layout

import (
	"bufio"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// levels lists the packages from the top down: a package imports only packages
// of lower levels. docs/architecture.md explains them.
var levels = [][]string{
	{"cmd/sim"},
	{"internal/review"},
	{"internal/planner"},
	{"internal/sweep"},
	{"internal/design"},
	{"internal/trials"},
	{"internal/queue"},
	{"internal/progress"},
	{"internal/traffic"},
	{"internal/coverage"},
	{"internal/openslo"},
	{"internal/ready"},
	{"internal/promrules"},
	{"internal/report"},
	{"internal/calibrate"},
	{"internal/accuracy"},
	{"experiments"},
	{"internal/config"},
	{"internal/measured"},
	{"sim"},
	{"sim/kernel"},
	{"sim/slo", "sim/stats"},
	{"engine"},
	{"workloads"},
	{"models"},
	{"sim/clock", "sim/prefetch", "sim/rng", "sim/units"},
}

// strict packages import of ours only what is named here.
var strict = map[string][]string{
	"engine":    {"models", "workloads", "sim/clock", "sim/prefetch", "sim/rng", "sim/units"},
	"workloads": {"sim/clock", "sim/rng", "sim/units"},
	"models":    {"sim/clock", "sim/rng", "sim/units"},
	"sim/clock": {}, "sim/prefetch": {}, "sim/rng": {}, "sim/units": {},
}

// sources calls f for every Go file that is not a test.
func sources(t *testing.T, f func(dir, file string, imports []string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata" || d.Name() == "out") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, s := range file.Imports {
			name, _ := strconv.Unquote(s.Path.Value)
			imports = append(imports, name)
		}
		rel, _ := filepath.Rel(root, path)
		f(filepath.ToSlash(filepath.Dir(rel)), filepath.ToSlash(rel), imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func level(pkg string) int {
	return slices.IndexFunc(levels, func(l []string) bool { return slices.Contains(l, pkg) })
}

func TestImportsGoDown(t *testing.T) {
	files := 0
	sources(t, func(dir, file string, imports []string) {
		files++
		if dir != "internal/layout" && level(dir) < 0 {
			t.Errorf("%s: package %s has no place in the layout", file, dir)
		}
		for _, i := range imports {
			to, ours := strings.CutPrefix(i, "slosim/")
			if !ours {
				continue
			}
			if level(to) <= level(dir) {
				t.Errorf("%s imports %s, which lies at its own level or above", file, to)
			}
			if allowed, ok := strict[dir]; ok && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s; %s may import of ours only %v", file, to, dir, allowed)
			}
		}
	})
	if files < 40 {
		t.Fatalf("only %d files found", files)
	}
}

func TestOneFileImportsSimgo(t *testing.T) {
	var users []string
	sources(t, func(_, file string, imports []string) {
		if slices.Contains(imports, "github.com/fschuetz04/simgo") {
			users = append(users, file)
		}
	})
	if !slices.Equal(users, []string{"sim/kernel/process.go"}) {
		t.Fatalf("simgo is imported by %v", users)
	}
}

// Below cmd, the progress line and the queue nothing may look at a real clock, and
// nothing may draw random numbers but by counting.
func TestResultsDependOnNoWallClockAndNoGlobalRandomness(t *testing.T) {
	sources(t, func(dir, file string, imports []string) {
		if level(dir) < level("sim") {
			return
		}
		if slices.Contains(imports, "math/rand") || slices.Contains(imports, "math/rand/v2") {
			t.Errorf("%s imports math/rand", file)
		}
		f, err := os.Open(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for n, lines := 1, bufio.NewScanner(f); lines.Scan(); n++ {
			for _, call := range []string{"time.Now(", "time.Since(", "time.Sleep(", "time.After("} {
				if strings.Contains(lines.Text(), call) {
					t.Errorf("%s:%d calls %s…)", file, n, call)
				}
			}
		}
	})
}

// The server and its client weigh ten megabytes: one package has them.
func TestOnePackageImportsNATS(t *testing.T) {
	sources(t, func(dir, file string, imports []string) {
		for _, i := range imports {
			if strings.HasPrefix(i, "github.com/nats-io/") && dir != "internal/queue" {
				t.Errorf("%s imports %s", file, i)
			}
		}
	})
}

// A file beyond 600 lines is two rooms in one.
func TestFilesFitAReader(t *testing.T) {
	sources(t, func(_, file string, _ []string) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 600 {
			t.Errorf("%s has %d lines", file, n)
		}
	})
}
