package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var testVersion = Version{Text: "1.0", Binary: strings.Repeat("ab", 32)}

// testWait is the acknowledgement wait of these tests.
const testWait = 300 * time.Millisecond

// both runs a test over the local queue and over NATS with three workers.
func both(t *testing.T, work Work, f func(t *testing.T, q Queue)) {
	t.Run("local", func(t *testing.T) { f(t, NewLocal(3, work)) })
	t.Run("nats", func(t *testing.T) {
		srv := testServer(t)
		c := coordinate(t, srv, testVersion)
		for range 3 {
			serve(t, srv, work, testVersion)
		}
		f(t, c)
	})
}

func testServer(t *testing.T) *Embedded {
	t.Helper()
	srv, err := Start(filepath.Join(t.TempDir(), "queue"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(true); err != nil {
			t.Error(err)
		}
	})
	return srv
}

func (e *Embedded) server() Server { return Server{URL: e.URL(), Token: e.Token} }

func coordinate(t *testing.T, srv *Embedded, v Version) *Coordinator {
	t.Helper()
	c, err := Coordinate(context.Background(), srv.server(), Options{Version: v, AckWait: testWait, Files: true, Log: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// serve runs a worker until the test or the returned function ends it.
func serve(t *testing.T, srv *Embedded, work Work, v Version) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, srv.server(), work, WorkerOptions{Version: v, Slots: 1, Files: t.TempDir()})
	}()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	return stop
}

// all does the tasks side by side and returns the answers that were kept.
func all(t *testing.T, q Queue, tasks []Task) (map[string][]string, []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	kept, errs := map[string][]string{}, make([]error, len(tasks))
	var wg sync.WaitGroup
	for i, task := range tasks {
		wg.Go(func() {
			errs[i] = q.Do(ctx, task, func(answer []byte) error {
				mu.Lock()
				defer mu.Unlock()
				kept[task.Key] = append(kept[task.Key], string(answer))
				return nil
			})
		})
	}
	wg.Wait()
	return kept, errs
}

func tasks(n int) []Task {
	var list []Task
	for i := range n {
		list = append(list, Task{Key: fmt.Sprintf("k%d", i), Name: fmt.Sprintf("task %d", i), Body: []byte(fmt.Sprint(i))})
	}
	return list
}

func echo(_ context.Context, t Task) ([]byte, error) {
	return append([]byte("answer "), t.Body...), nil
}

// Every task has its answer, once.
func TestEveryTaskIsAnsweredOnce(t *testing.T) {
	both(t, echo, func(t *testing.T, q Queue) {
		list := tasks(60)
		kept, errs := all(t, q, list)
		for i, task := range list {
			if errs[i] != nil || len(kept[task.Key]) != 1 || kept[task.Key][0] != fmt.Sprint("answer ", i) {
				t.Fatalf("%s: %v, %v", task.Name, kept[task.Key], errs[i])
			}
		}
	})
}

// An answer may be larger than a message of the server.
func TestAnswersOfAnySize(t *testing.T) {
	big := func(_ context.Context, t Task) ([]byte, error) {
		return bytes.Repeat([]byte{t.Body[0], 1, 2, 3}, 5<<20), nil
	}
	both(t, big, func(t *testing.T, q Queue) {
		kept, errs := all(t, q, tasks(2))
		for i, task := range tasks(2) {
			if errs[i] != nil || len(kept[task.Key]) != 1 || len(kept[task.Key][0]) != 20<<20 || kept[task.Key][0][4<<20] != task.Body[0] {
				t.Errorf("%s: %v", task.Name, errs[i])
			}
		}
	})
}

// A task that fails is not tried again, and says why.
func TestAFailureIsAnAnswer(t *testing.T) {
	var tries atomic.Int64
	fails := func(_ context.Context, t Task) ([]byte, error) {
		tries.Add(1)
		return nil, &Failure{Text: "no such model", Input: true}
	}
	both(t, fails, func(t *testing.T, q Queue) {
		tries.Store(0)
		kept, errs := all(t, q, tasks(1))
		var f *Failure
		if !errors.As(errs[0], &f) || f.Text != "no such model" || !f.Input || len(kept) != 0 || tries.Load() != 1 {
			t.Errorf("%v, %v, %d tries", kept, errs, tries.Load())
		}
	})
}

// Who cancels gets out at once, and nothing is kept.
func TestCancelledTasksEnd(t *testing.T) {
	long := func(ctx context.Context, _ Task) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	both(t, long, func(t *testing.T, q Queue) {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		err := q.Do(ctx, tasks(1)[0], func([]byte) error { t.Error("kept"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// What cannot be kept, for example on a full disk, is an error of that task.
func TestAnAnswerThatCannotBeKeptIsAnError(t *testing.T) {
	full := errors.New("no space left on device")
	both(t, echo, func(t *testing.T, q Queue) {
		ctx := context.Background()
		if err := q.Do(ctx, tasks(1)[0], func([]byte) error { return full }); !errors.Is(err, full) {
			t.Error(err)
		}
		// The next try gets the answer, done again or as it lay there.
		if err := q.Do(ctx, tasks(1)[0], func([]byte) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

// A file that a task names is at hand.
func TestTasksFindTheirFiles(t *testing.T) {
	reads := func(_ context.Context, t Task) ([]byte, error) { return os.ReadFile(t.Files[0].Path) }
	path := filepath.Join(t.TempDir(), "trace.csv")
	text := []byte(strings.Repeat("1,2,3\n", 100_000))
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	both(t, reads, func(t *testing.T, q Queue) {
		task := tasks(1)[0]
		task.Files = []File{{SHA256: digest(text), Path: path}}
		kept, errs := all(t, q, []Task{task})
		if errs[0] != nil || kept[task.Key][0] != string(text) {
			t.Error(errs)
		}
	})
}
