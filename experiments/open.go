package experiments

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"slosim/internal/config"
)

//go:embed *.toml
var shipped embed.FS

// Formulas is the shipped file of planner formulas: no experiment, it lies beside them.
const Formulas = "planner-formulas"

// Sweep is the shipped sweep, likewise.
const Sweep = "sweep"

// Names returns the shipped experiments in alphabetical order.
func Names() []string {
	files, _ := fs.Glob(shipped, "*.toml")
	var names []string
	for _, f := range files {
		if name := strings.TrimSuffix(f, ".toml"); name != Formulas && name != Sweep {
			names = append(names, name)
		}
	}
	return names
}

// Shipped returns the text of a shipped experiment.
func Shipped(name string) (string, error) {
	text, err := shipped.ReadFile(strings.TrimSuffix(name, ".toml") + ".toml")
	return string(text), err
}

// source is the text of an experiment and where it lies.
type source struct {
	file string // path for messages
	text string
	dir  string // that trace files are relative to
}

// open finds an experiment on disk or among the shipped ones.
func open(path string) (source, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		return source{path, string(text), filepath.Dir(path)}, nil
	}
	e := &config.Error{File: path}
	switch info, statErr := os.Stat(path); {
	case statErr == nil && info.IsDir():
		e.Msg, e.Try = "this is a folder, not an experiment file", "name a file in it, for example: "+firstToml(path)
	case !errors.Is(err, fs.ErrNotExist):
		e.Msg, e.Try = "the file cannot be read: "+reason(err), "check its permissions"
	default:
		if base, ok := shippedName(path); ok {
			text, err := Shipped(base)
			return source{"experiments/" + base + ".toml", text, "."}, err
		}
		e.Msg = "there is no such file"
		e.Try = "shipped experiments: " + strings.Join(Names(), ", ")
		base := strings.TrimSuffix(filepath.Base(path), ".toml")
		if near := config.Nearest(base, Names()); near != "" {
			e.Try = fmt.Sprintf("did you mean experiments/%s.toml?", near)
		}
	}
	return source{}, config.Errors{e}
}

// shippedName tells whether path names a shipped experiment: prompt-growth,
// prompt-growth.toml or experiments/prompt-growth.toml.
func shippedName(path string) (string, bool) {
	base := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(path), "experiments/"), ".toml")
	for _, n := range Names() {
		if n == base {
			return n, true
		}
	}
	return "", false
}

func firstToml(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.toml"))
	if len(files) == 0 {
		return filepath.Join(dir, "experiment.toml")
	}
	return files[0]
}

// reason drops the path that a file error repeats.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// Named reads a file of another kind than experiments, of which one ships under a name:
// what is on disk, else the shipped one. It returns the path for messages, the folder
// that names in the text are relative to, and the text; an error is of the input.
func Named(path, name string) (file, dir, text string, err error) {
	raw, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing && strings.TrimSuffix(filepath.Base(path), ".toml") == name {
		text, err = Shipped(name)
		return "experiments/" + name + ".toml", ".", text, err
	}
	if err != nil {
		e := &config.Error{File: path, Msg: "the file cannot be read", Try: "the shipped one: experiments/" + name + ".toml"}
		if missing {
			e.Msg = "there is no such file"
		}
		return "", "", "", config.Errors{e}
	}
	return path, filepath.Dir(path), string(raw), nil
}
