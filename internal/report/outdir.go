package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// marker is the file by which a folder is known to be ours to replace.
const marker = ".sim-run"

const markerText = "This folder is the output of `sim`. A new run with the same name replaces it as a whole.\n"

// file is one output, complete in memory before anything is written.
type file struct {
	name string
	data []byte
}

// CheckDir reports whether a run may write its output to dir: dir does not exist
// yet, is empty, or is the output of an earlier run, and its parent folder can
// be written. It changes nothing that stays.
func CheckDir(dir string) error {
	target, err := resolve(dir)
	if err != nil {
		return err
	}
	if err := replaceable(dir, target); err != nil {
		return err
	}
	parent := filepath.Dir(target)
	for {
		info, err := os.Stat(parent)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("output folder %s: %s is a file, not a folder; choose another folder with --out", dir, parent)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("output folder %s cannot be used: %w; choose another folder with --out", dir, err)
		}
		parent = filepath.Dir(parent)
	}
	probe, err := os.MkdirTemp(parent, ".sim-probe-*")
	if err != nil {
		return fmt.Errorf("output folder %s cannot be written: %w; choose another folder with --out", dir, err)
	}
	return os.Remove(probe)
}

// resolve returns the absolute path of dir, behind a symbolic link if it is one.
func resolve(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("output folder: no path given; name one with --out")
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("output folder %s: %w", dir, err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	return path, nil
}

// replaceable says why an existing target must be left alone.
func replaceable(dir, target string) error {
	entries, err := os.ReadDir(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		if info, statErr := os.Stat(target); statErr == nil && !info.IsDir() {
			return fmt.Errorf("output folder %s is a file; move it away or choose another folder with --out", dir)
		}
		return fmt.Errorf("output folder %s cannot be read: %w; choose another folder with --out", dir, err)
	case len(entries) == 0:
		return nil
	}
	if _, err := os.Lstat(filepath.Join(target, marker)); err != nil {
		return fmt.Errorf("output folder %s exists and was not written by sim (it has no %s file), so it is left alone; move it away or choose another folder with --out", dir, marker)
	}
	return nil
}

// replace writes files into a new folder beside dir and renames it to dir, so
// that dir is either the old output or the whole new one.
func replace(dir string, files []file) error {
	target, err := resolve(dir)
	if err != nil {
		return err
	}
	if err := replaceable(dir, target); err != nil {
		return err
	}
	parent := filepath.Dir(target)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("output folder %s: %w; choose another folder with --out", dir, err)
	}
	aside, err := os.MkdirTemp(parent, "."+filepath.Base(target)+".new-*")
	if err != nil {
		return fmt.Errorf("output folder %s cannot be written: %w; choose another folder with --out", dir, err)
	}
	if err := fill(aside, files); err != nil {
		return errors.Join(fmt.Errorf("output folder %s: %w", dir, err), os.RemoveAll(aside))
	}
	if err := swap(aside, target); err != nil {
		return errors.Join(fmt.Errorf("output folder %s: %w", dir, err), os.RemoveAll(aside))
	}
	return nil
}

// fill writes the files and the marker into a folder of MkdirTemp's making and
// gives it the permissions of an ordinary folder.
func fill(aside string, files []file) error {
	for _, f := range append(files, file{marker, []byte(markerText)}) {
		if err := os.WriteFile(filepath.Join(aside, f.name), f.data, 0o644); err != nil {
			return err
		}
	}
	return os.Chmod(aside, 0o755)
}

// swap renames aside to target. An old target is kept under another name until
// the new one is in place, and is put back if that fails.
func swap(aside, target string) error {
	old := aside + ".old"
	err := os.Rename(target, old)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Rename(aside, target)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(aside, target); err != nil {
		return errors.Join(err, os.Rename(old, target))
	}
	return os.RemoveAll(old)
}
