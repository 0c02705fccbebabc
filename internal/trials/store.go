package trials

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"slosim/sim"
)

// extension of a stored result.
const extension = ".result"

// read returns a stored result of e; nil when there is none, or none that can be
// read: its checksum is wrong then, and it is simulated anew.
func read(dir, key string, e *sim.Experiment) *sim.Result {
	data, err := os.ReadFile(filepath.Join(dir, key+extension))
	if err != nil {
		return nil
	}
	r, err := decodeResult(data, e)
	if err != nil {
		return nil
	}
	return r
}

// writeTo is io.Writer's Write; tests put a full disk in its place.
var writeTo = func(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}

// StoreError is a result that could not be stored.
type StoreError struct {
	Dir string
	Err error
}

func (e *StoreError) Error() string {
	try := "what is there stays; make room and run the same command again"
	if errors.Is(e.Err, fs.ErrExist) || errors.Is(e.Err, fs.ErrNotExist) || errors.Is(e.Err, fs.ErrPermission) || errors.Is(e.Err, syscall.ENOTDIR) || errors.Is(e.Err, syscall.EROFS) {
		try = "choose a folder that can be written with --store, or --store \"\" to remember nothing"
	}
	return fmt.Sprintf("a result cannot be stored in %s: %v\n  %s", e.Dir, e.Err, try)
}

// CheckStore tells before anything is simulated that results cannot be stored in dir.
func CheckStore(dir string) error {
	if dir == "" {
		return nil
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".result-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return &StoreError{dir, err}
	}
	return nil
}

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// write stores a result; it appears when it is complete.
func write(dir, key string, data []byte) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = writeFile(dir, key, data)
	}
	if err != nil {
		return &StoreError{dir, err}
	}
	return nil
}

func writeFile(dir, key string, data []byte) error {
	f, err := os.CreateTemp(dir, ".result-*")
	if err != nil {
		return err
	}
	err = errors.Join(writeTo(f, data), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, key+extension))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
