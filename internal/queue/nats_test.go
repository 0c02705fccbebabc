package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// A task five times as long as the wait is done once: its worker says that it lives.
func TestALongTaskIsDoneOnce(t *testing.T) {
	srv := testServer(t)
	c := coordinate(t, srv, testVersion)
	var begun atomic.Int64
	long := func(context.Context, Task) ([]byte, error) {
		begun.Add(1)
		time.Sleep(5 * testWait)
		return []byte("done"), nil
	}
	serve(t, srv, long, testVersion)
	serve(t, srv, long, testVersion)
	if _, errs := all(t, c, tasks(1)); errs[0] != nil || begun.Load() != 1 {
		t.Errorf("%v, begun %d times", errs, begun.Load())
	}
}

// A worker that stops answering loses its task to another, and its late answer is
// not taken twice.
func TestASilentWorkerLosesItsTask(t *testing.T) {
	srv := testServer(t)
	c := coordinate(t, srv, testVersion)
	// This worker takes a task and is never heard of again.
	nc, js, err := (&Server{URL: srv.URL(), Token: srv.Token}).connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	answered := make(chan error, 1)
	kept := 0
	go func() {
		answered <- c.Do(context.Background(), tasks(1)[0], func([]byte) error { kept++; return nil })
	}()
	from, err := js.Consumer(context.Background(), taskStream, consumerName(testVersion))
	if err != nil {
		t.Fatal(err)
	}
	m, err := from.Next()
	if err != nil {
		t.Fatal(err)
	}
	serve(t, srv, echo, testVersion)
	if err := <-answered; err != nil || kept != 1 {
		t.Fatalf("%v, kept %d times", err, kept)
	}
	if err := deliver(context.Background(), nc, js, testVersion, keyOf(m.Subject()), []byte("late"), seal{}); err != nil {
		t.Error(err)
	}
	time.Sleep(2 * testWait)
	if kept != 1 {
		t.Errorf("kept %d times", kept)
	}
}

// The first answer stands.
func TestTheFirstAnswerWins(t *testing.T) {
	srv := testServer(t)
	c := coordinate(t, srv, testVersion)
	for _, text := range []string{"first", "second"} {
		if err := deliver(context.Background(), c.nc, c.js, testVersion, "k0", []byte(text), seal{}); err != nil {
			t.Fatal(err)
		}
	}
	kept, errs := all(t, c, tasks(1))
	if errs[0] != nil || len(kept["k0"]) != 1 || kept["k0"][0] != "first" {
		t.Error(kept, errs)
	}
}

// A task that kills every worker that takes it fails after MaxDeliveries tries.
func TestATaskThatKillsItsWorkersFails(t *testing.T) {
	srv := testServer(t)
	c := coordinate(t, srv, testVersion)
	answered := make(chan error, 1)
	go func() { answered <- c.Do(context.Background(), tasks(1)[0], func([]byte) error { return nil }) }()
	from, err := c.tasks.Consumer(context.Background(), consumerName(testVersion))
	if err != nil {
		t.Fatal(err)
	}
	for range MaxDeliveries {
		m, err := from.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Nak(); err != nil {
			t.Fatal(err)
		}
	}
	serve(t, srv, echo, testVersion)
	var f *Failure
	if err := <-answered; !errors.As(err, &f) || !strings.Contains(f.Text, "given out 8 times") {
		t.Error(err)
	}
}

// An answer that is broken on its way is not kept; the task is done again.
func TestABrokenAnswerIsDoneAgain(t *testing.T) {
	srv := testServer(t)
	c := coordinate(t, srv, testVersion)
	broken := &nats.Msg{Subject: answerSubject(testVersion, "k0"), Data: []byte("answer 0?"), Header: nats.Header{headAnswer: []string{`{"sha256":"` + digest([]byte("answer 0")) + `"}`}}}
	if err := first(context.Background(), c.js, broken); err != nil {
		t.Fatal(err)
	}
	serve(t, srv, echo, testVersion)
	kept, errs := all(t, c, tasks(1))
	if errs[0] != nil || len(kept["k0"]) != 1 || kept["k0"][0] != "answer 0" {
		t.Error(kept, errs)
	}
}

// A worker whose machine cannot work gives its task back and ends.
func TestAWorkerWithAFullDiskGivesItsTaskBack(t *testing.T) {
	srv := testServer(t)
	c := coordinate(t, srv, testVersion)
	full := func(context.Context, Task) ([]byte, error) { return nil, errors.New("no space left on device") }
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(context.Background(), srv.server(), full, WorkerOptions{Version: testVersion, Slots: 1})
	}()
	answered := make(chan error, 1)
	go func() { answered <- c.Do(context.Background(), tasks(1)[0], func([]byte) error { return nil }) }()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "another worker") {
		t.Fatal(err)
	}
	serve(t, srv, echo, testVersion)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// A file that does not fit on the worker's disk is the machine's fault, too.
func TestFilesThatCannotBeStoredEndTheWorker(t *testing.T) {
	srv := testServer(t)
	c := coordinate(t, srv, testVersion)
	path := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := File{SHA256: digest([]byte("text")), Path: path}
	if err := c.files.put(context.Background(), f); err != nil {
		t.Fatal(err)
	}
	f.Path = "elsewhere.csv"
	w := files{js: c.js}
	if _, err := w.get(context.Background(), f, filepath.Join(path, "no folder")); err == nil || !strings.Contains(err.Error(), "cannot be stored here") {
		t.Error(err)
	}
	got, err := w.get(context.Background(), f, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(got); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}

// A wrong token gets nobody in, neither at the start nor later.
func TestAWrongTokenIsRefused(t *testing.T) {
	srv := testServer(t)
	coordinate(t, srv, testVersion)
	for _, token := range []string{"", "wrong"} {
		err := Serve(context.Background(), Server{URL: srv.URL(), Token: token}, echo, WorkerOptions{Version: testVersion})
		if !errors.Is(err, ErrAuthorization) {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

// A worker of another build is told so and ends; it never sees a task.
func TestAnotherVersionIsRefused(t *testing.T) {
	srv := testServer(t)
	c := coordinate(t, srv, testVersion)
	old := Version{Text: "0.9", Binary: strings.Repeat("cd", 32)}
	done := make(chan error, 1)
	go func() { done <- c.Do(context.Background(), tasks(1)[0], func([]byte) error { return nil }) }()
	err := Serve(context.Background(), srv.server(), func(context.Context, Task) ([]byte, error) {
		t.Error("a task of another version")
		return nil, nil
	}, WorkerOptions{Version: old})
	var v *ErrVersion
	if !errors.As(err, &v) || v.Theirs != testVersion || v.Ours != old {
		t.Fatal(err)
	}
	serve(t, srv, echo, testVersion)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A worker without a coordinator ends after its idle time.
func TestAnIdleWorkerEnds(t *testing.T) {
	srv := testServer(t)
	if err := Serve(context.Background(), srv.server(), echo, WorkerOptions{Version: testVersion, Idle: 300 * time.Millisecond}); err != nil {
		t.Error(err)
	}
	c := coordinate(t, srv, testVersion)
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(context.Background(), srv.server(), echo, WorkerOptions{Version: testVersion, Idle: time.Second})
	}()
	if _, errs := all(t, c, tasks(3)); errors.Join(errs...) != nil {
		t.Error(errs)
	}
	c.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("still there")
	}
}

// The server comes back with everything: the coordinator went down in the middle.
func TestARestartLosesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queue")
	port := freePort(t)
	srv, err := Start(dir, port)
	if err != nil {
		t.Fatal(err)
	}
	token := srv.Token
	o := Options{Version: testVersion, AckWait: testWait}
	c, err := Coordinate(context.Background(), srv.server(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	for _, task := range tasks(20) {
		go c.Do(ctx, task, func([]byte) error { return nil }) //nolint:errcheck // it is cut off
	}
	// Workers that live through it.
	var begun atomic.Int64
	for range 2 {
		serve(t, srv, func(_ context.Context, task Task) ([]byte, error) {
			begun.Add(1)
			time.Sleep(20 * time.Millisecond)
			return task.Body, nil
		}, testVersion)
	}
	for begun.Load() < 5 {
		time.Sleep(time.Millisecond)
	}
	c.nc.Close() // no goodbye: nothing is withdrawn
	cancel()
	if err := srv.Close(false); err != nil {
		t.Fatal(err)
	}
	if srv, err = Start(dir, port); err != nil {
		t.Fatal(err)
	}
	defer srv.Close(true) //nolint:errcheck // the folder is the test's
	if srv.Token != token {
		t.Error("the token is another one: workers cannot come back")
	}
	if c, err = Coordinate(context.Background(), srv.server(), o); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	kept, errs := all(t, c, tasks(20))
	for i, task := range tasks(20) {
		if errs[i] != nil || len(kept[task.Key]) != 1 {
			t.Errorf("%s: %v %v", task.Name, kept[task.Key], errs[i])
		}
	}
}

// What the server has lost is put there again.
func TestLostTasksAreFound(t *testing.T) {
	srv := testServer(t)
	c := coordinate(t, srv, testVersion)
	done := make(chan error, 1)
	go func() { done <- c.Do(context.Background(), tasks(1)[0], func([]byte) error { return nil }) }()
	for {
		if info, err := c.tasks.Info(context.Background()); err == nil && info.State.Msgs == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := c.tasks.Purge(context.Background()); err != nil {
		t.Fatal(err)
	}
	serve(t, srv, echo, testVersion)
	if err := c.restore(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A server that was killed may hold a task and take it for done: it is queued anew. One
// that it has yet to give out stays as it is.
func TestATaskThatTheServerTakesForDoneIsFreed(t *testing.T) {
	srv := testServer(t)
	c := coordinate(t, srv, testVersion)
	ctx := context.Background()
	list := tasks(2)
	for _, task := range list {
		if err := c.publish(ctx, task); err != nil {
			t.Fatal(err)
		}
	}
	for _, task := range list { // as if the server took the first for done
		if err := c.free(ctx, task, 1); err != nil {
			t.Fatal(err)
		}
	}
	info, err := c.tasks.Info(ctx)
	if err != nil || info.State.Msgs != 2 || info.State.FirstSeq != 2 || info.State.LastSeq != 3 {
		t.Fatalf("%+v, %v", info.State, err)
	}
	serve(t, srv, echo, testVersion)
	if _, errs := all(t, c, list); errors.Join(errs...) != nil {
		t.Error(errs)
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) { // the acknowledgement comes after the answer
		if floor, err := c.floor(ctx); err != nil || floor == 3 || time.Since(begun) > 10*time.Second {
			if floor != 3 {
				t.Errorf("floor %d, %v", floor, err)
			}
			break
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// The embedded server is for this machine unless told otherwise, and never open.
func TestTheServerIsLoopbackAndClosed(t *testing.T) {
	srv := testServer(t)
	if !srv.Loopback() || !strings.HasPrefix(srv.URL(), "nats://127.0.0.1:") {
		t.Errorf("it listens on %s", srv.srv.Addr())
	}
	if nc, err := nats.Connect(srv.URL()); err == nil {
		nc.Close()
		t.Error("it lets in anybody")
	}
	info, err := os.Stat(srv.TokenFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info.Mode(), err)
	}
	if _, err := newServer(&server.Options{}); err == nil {
		t.Error("a server without a token was made")
	}
	if _, err := Start(filepath.Dir(srv.TokenFile()), ""); err == nil || !strings.Contains(err.Error(), "in use by another sim") {
		t.Error(err)
	}
	for _, bad := range []string{":4222", "host", "1.2.3.4:port"} {
		if _, _, err := address(bad); err == nil {
			t.Errorf("--listen %s was taken", bad)
		}
	}
	wide, err := Start(filepath.Join(t.TempDir(), "q"), "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer wide.Close(true) //nolint:errcheck // the folder is the test's
	if wide.Loopback() {
		t.Error("it was told otherwise")
	}
	if nc, err := nats.Connect(wide.URL()); err == nil {
		nc.Close()
		t.Error("it lets in anybody")
	}
}

// A token that others could have read is replaced.
func TestATokenThatOthersCanReadIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 40)), 0o644); err != nil {
		t.Fatal(err)
	}
	token, err := tokenIn(path)
	if err != nil || token == strings.Repeat("x", 40) {
		t.Error(token, err)
	}
	if again, err := tokenIn(path); err != nil || again != token {
		t.Error(again, err)
	}
}

// Servers are named without secrets, and faults are told before anything is tried.
func TestServersAreChecked(t *testing.T) {
	for want, s := range map[string]Server{
		"is not an address":         {URL: "somewhere"},
		"unknown scheme":            {URL: "http://host:4222"},
		"SIM_NATS_TOKEN":            {URL: "nats://secret@host:4222"},
		"belong together":           {URL: "nats://host:4222", Cert: "a.pem"},
		"two ways to log in":        {URL: "nats://host:4222", Token: "a", Creds: "b"},
		"--creds: open nowhere.txt": {URL: "nats://host:4222", Creds: "nowhere.txt"},
	} {
		err := s.Check()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if _, err := Coordinate(context.Background(), Server{URL: "nats://127.0.0.1:1", Timeout: time.Second}, Options{Version: testVersion}); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Error(err)
	}
}

// A server without JetStream is told apart.
func TestAServerWithoutJetStreamIsExplained(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	go srv.Start()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("it does not start")
	}
	_, err = Coordinate(context.Background(), Server{URL: srv.ClientURL()}, Options{Version: testVersion})
	if err == nil || !strings.Contains(fmt.Sprint(err), "nats-server -js") {
		t.Error(err)
	}
}
