package report

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func writeSmall(dir string) error {
	f := small()
	return Write(dir, f.result, f.meta)
}

// names lists a folder, for messages and comparison.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

const allFiles = ".sim-run report.html summary.json summary.md timeseries-pools.csv timeseries.csv"

func TestWriteCreatesParentsAndLeavesNothingBeside(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b", "run")
	if err := CheckDir(dir); err != nil {
		t.Fatal(err)
	}
	if got := names(t, root); got != "" {
		t.Errorf("CheckDir left %q behind", got)
	}
	if err := writeSmall(dir); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); got != allFiles {
		t.Errorf("wrote %q, want %q", got, allFiles)
	}
	if got := names(t, filepath.Dir(dir)); got != "run" {
		t.Errorf("left %q beside the output", got)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("permissions of the folder: %v, %v", info.Mode(), err)
	}
}

func TestWriteReplacesItsOwnOutputAsAWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := writeSmall(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CheckDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := writeSmall(dir); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); got != allFiles {
		t.Errorf("after the second run: %q, want %q", got, allFiles)
	}
}

func TestWriteTakesAnEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	if err := CheckDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := writeSmall(dir); err != nil {
		t.Fatal(err)
	}
}

func TestWriteFollowsASymbolicLink(t *testing.T) {
	root := t.TempDir()
	target, link := filepath.Join(root, "target"), filepath.Join(root, "link")
	if err := os.Mkdir(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := writeSmall(link); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info.Mode(), err)
	}
	if got := names(t, target); got != allFiles {
		t.Errorf("behind the link: %q", got)
	}
}

// TestForeignFoldersAreLeftAlone checks both entry points on folders that are
// not ours, and on paths that cannot be folders.
func TestForeignFoldersAreLeftAlone(t *testing.T) {
	root := t.TempDir()
	foreign, plain := filepath.Join(root, "foreign"), filepath.Join(root, "plain")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(foreign, "thesis.tex"), plain} {
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{
		foreign:                     "was not written by sim",
		plain:                       "is a file",
		filepath.Join(plain, "a"):   "not a",
		filepath.Join(plain, "a/b"): "not a",
		"":                          "no path given",
		string(filepath.Separator):  "was not written by sim",
	} {
		for name, err := range map[string]error{"CheckDir": CheckDir(dir), "Write": writeSmall(dir)} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--out") {
				t.Errorf("%s(%q) = %v, want an error with %q and --out", name, dir, err, want)
			}
		}
	}
	if got := names(t, root); got != "foreign plain" {
		t.Errorf("left behind: %q", got)
	}
	if got := names(t, foreign); got != "thesis.tex" {
		t.Errorf("the foreign folder now holds %q", got)
	}
}

// TestAFailedSwapKeepsTheOldOutput makes the second rename fail.
func TestAFailedSwapKeepsTheOldOutput(t *testing.T) {
	root := t.TempDir()
	target := filepath.Join(root, "run")
	if err := writeSmall(target); err != nil {
		t.Fatal(err)
	}
	if err := swap(filepath.Join(root, "missing"), target); err == nil {
		t.Fatal("a swap with a missing folder succeeds")
	}
	if got := names(t, target); got != allFiles {
		t.Errorf("the old output is gone: %q", got)
	}
	if got := names(t, root); got != "run" {
		t.Errorf("left behind: %q", got)
	}
}
