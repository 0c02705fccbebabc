package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slosim/sim/clock"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file, or writes it with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (- want, + got; -update rewrites it):\n%s", file, diff)
	}
}

// shopKeys are the keys of the small schema that the golden files are written in.
var shopKeys = Schema{
	"":            {"title", "opens", "shelf"},
	"shelf":       {"name", "boards", "wood", "polish", "share", "wait", "items", "paint", "hooks"},
	"shelf.paint": {"coats"},
	"shelf.hooks": {"at"},
}

// shop reads it. Polish counts on oak only.
func shop(d *Doc) {
	d.SetSchema(shopKeys, map[string]string{"shelf.planks": "boards"})
	root := d.Root()
	Read(root, "title", Text, Default("", ""))
	Read(root, "opens", TimeOfDay, Required)
	for _, t := range root.Tables("shelf", "name", "[[shelf]]") {
		Read(t, "name", Text, Required, Example[string](`"top"`))
		Read(t, "boards", Int, Default(3, "as sold"), Between(1, 10))
		if Read(t, "wood", OneOf("oak", "pine"), Default("pine", "")) == "oak" {
			Read(t, "polish", Text, Default("wax", ""))
		}
		Read(t, "share", Share, Default(0.5, ""), Between(0.0, 1))
		Read(t, "wait", Span, Default(clock.Second, ""), Above(0, clock.Hour))
		Read(t, "items", Texts, Default([]string(nil), ""))
		paint := t.Sub("paint", `paint = { coats = 2 }`)
		Read(paint, "coats", Int, Default(1, ""))
		for _, h := range t.List("hooks", "hooks = [{ at = 1 }]") {
			Read(h, "at", Int, Required)
		}
	}
	root.Done()
}

// TestErrors prints the errors of each testdata/errors/*.toml beside it. Lines
// that begin with "# --set " are overrides.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var sets []string
			for _, line := range strings.Split(string(text), "\n") {
				if set, ok := strings.CutPrefix(line, "# --set "); ok {
					sets = append(sets, set)
				}
			}
			d, err := Parse(filepath.Base(file), string(text), sets...)
			if err == nil {
				shop(d)
				err = d.Err()
			}
			got := "no error\n"
			if err != nil {
				got = err.Error() + "\n"
			}
			golden(t, strings.TrimSuffix(file, ".toml")+".txt", got)
		})
	}
}

func TestExplainListsEverySettingWithItsOrigin(t *testing.T) {
	d, err := Parse("shop/shop.toml", `opens = "08:00"
[[shelf]]
name = "top shelf"
share = "10%"
paint.coats = 2
[[shelf]]
name = "low"
`, "shelf.low.boards=5", `shelf."top shelf".wood=oak`)
	if err != nil {
		t.Fatal(err)
	}
	shop(d)
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	p := d.Provenance()
	for _, key := range []string{"", "shelf.low", "shelf.top shelf.paint", "boards", "shelf.low.board", "nothing like it"} {
		b.WriteString("== explain " + key + "\n")
		if err := p.Explain(&b, key); err != nil {
			b.WriteString(err.Error() + "\n")
		}
	}
	golden(t, "testdata/explain.txt", b.String())
}

func TestWarningsHaveAPlaceAndAreNoErrors(t *testing.T) {
	d, err := Parse("shop.toml", "opens = \"08:00\"\n[[shelf]]\nname = \"top\"\nboards = 9\n", "shelf.top.share=5%")
	if err != nil {
		t.Fatal(err)
	}
	shop(d)
	shelf := d.Root().Tables("shelf", "name", "")[0]
	shelf.Warnf("share", "", "a share of 5 %% is thin")
	shelf.Warnf("boards", "take fewer", "%d boards bend", 9)
	shelf.Warnf("wood", "", "no wood is named")
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, w := range d.Provenance().Warnings {
		text += w.Error() + "\n"
	}
	golden(t, "testdata/warnings.txt", text)
}

func TestReadingAnUndeclaredKeyIsAFault(t *testing.T) {
	d, err := Parse("shop.toml", "")
	if err != nil {
		t.Fatal(err)
	}
	d.SetSchema(shopKeys, nil)
	defer func() {
		if recover() == nil {
			t.Error("a key that no message would offer was read")
		}
	}()
	Read(d.Root(), "closes", TimeOfDay, Required)
}
