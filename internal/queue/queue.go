package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Task is a piece of work.
type Task struct {
	Key   string // address of the answer: letters, digits, "-" and "_"
	Name  string // for messages
	Body  []byte
	Files []File // that Body refers to
}

// File is a file that a task reads.
type File struct {
	SHA256 string `json:"sha256"` // of its bytes, in hex
	Path   string `json:"path"`   // where it lies; a worker is given its own copy's
}

// Work carries out a task. An error other than a Failure or ctx's is one of the
// machine: the task is given to another worker.
type Work func(ctx context.Context, t Task) ([]byte, error)

// Queue hands out tasks. It is safe for concurrent use.
type Queue interface {
	// Do has the task carried out and calls keep with the answer. An error of keep is
	// returned; over NATS the answer then stays where it is.
	Do(ctx context.Context, t Task, keep func(answer []byte) error) error
	// Width is how many calls of Do are worth making side by side.
	Width() int
	// Close gives up what the queue holds. No Do may be running.
	Close() error
}

// Failure is a task that cannot be done, by any worker.
type Failure struct {
	Text  string
	Input bool  // the task is wrong, not the program
	Cause error // where it was done here; nil from another process
}

func (f *Failure) Error() string { return f.Text }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Local is the queue of this program's own goroutines.
type Local struct {
	work  Work
	slots chan struct{}
}

// NewLocal returns a queue that does n tasks side by side; 0 = one per core.
func NewLocal(n int, w Work) *Local {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return &Local{w, make(chan struct{}, n)}
}

// Do implements Queue.
func (l *Local) Do(ctx context.Context, t Task, keep func([]byte) error) error {
	return l.Hold(ctx, func() error {
		answer, err := l.work(ctx, t)
		if err != nil {
			return err
		}
		return keep(answer)
	})
}

// Hold waits for a slot and calls f in it: for those who need no bytes to have their
// work done in this process.
func (l *Local) Hold(ctx context.Context, f func() error) error {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.slots }()
	if err := ctx.Err(); err != nil {
		return err
	}
	return f()
}

// Width implements Queue.
func (l *Local) Width() int { return cap(l.slots) }

// Close implements Queue.
func (l *Local) Close() error { return nil }

// Version says which program it is.
type Version struct {
	Text   string `json:"text"`   // for people
	Binary string `json:"binary"` // SHA-256 of the program, in hex
}

func (v Version) String() string { return fmt.Sprintf("%s (binary %.12s)", v.Text, v.Binary) }

// token is the part of a subject that keeps versions apart.
func (v Version) token() string { return fmt.Sprintf("%.16s", v.Binary) }

// ErrVersion tells that coordinators run, and none of this version.
type ErrVersion struct{ Ours, Theirs Version }

func (e *ErrVersion) Error() string {
	return fmt.Sprintf("refused: the coordinator is sim %s, this worker is sim %s\n  results depend on the binary: start the worker from the same file", e.Theirs, e.Ours)
}

// ErrAuthorization is a token, password or credential that the server does not take.
var ErrAuthorization = errors.New("the server refuses the credentials")
