package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// WorkerOptions are how a worker goes about it.
type WorkerOptions struct {
	Version Version
	Slots   int           // tasks side by side
	Idle    time.Duration // ends after so long without a coordinator or a task; 0 = never
	Files   string        // folder for files that tasks need
	Log     func(string)
	Done    func(name string, err error) // after each task
}

// worker serves tasks.
type worker struct {
	o     WorkerOptions
	work  Work
	nc    *nats.Conn
	js    jetstream.JetStream
	tasks jetstream.Stream
	from  jetstream.Consumer
	ans   jetstream.Stream
	files files
	host  string
	busy  atomic.Int64 // tasks in hand
	last  atomic.Int64 // when there last was one, Unix nanoseconds
	did   atomic.Int64 // tasks done
}

// helloWait is how long coordinators have to answer.
const helloWait = time.Second

// Serve does tasks of its own version until ctx ends, nothing has been there to do for
// the idle time (nil), or this machine cannot work: its task then goes to another.
func Serve(ctx context.Context, s Server, w Work, o WorkerOptions) error {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Done == nil {
		o.Done = func(string, error) {}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	x := &worker{o: o, work: w}
	x.host, _ = os.Hostname()
	s.Name = "sim worker on " + x.host
	x.last.Store(time.Now().UnixNano())
	if err := x.join(ctx, s, stop); err != nil {
		return err
	}
	defer x.nc.Close()
	if known, err := x.meet(ctx); err != nil || !known {
		return err // nobody came within the idle time
	}
	var slots sync.WaitGroup
	for range max(1, o.Slots) {
		slots.Go(func() {
			if err := x.serve(ctx); err != nil {
				stop(err)
			}
		})
	}
	slots.Go(func() { stop(x.watch(ctx)) })
	slots.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errIdle) {
		return err
	}
	return nil
}

// errIdle ends a worker that has nothing to do.
var errIdle = errors.New("nothing to do")

// join connects; a server that is not there yet is waited for.
func (x *worker) join(ctx context.Context, s Server, stop context.CancelCauseFunc) error {
	closed := nats.ClosedHandler(func(nc *nats.Conn) {
		err := nc.LastError()
		if errors.Is(err, nats.ErrAuthorization) {
			err = ErrAuthorization
		}
		stop(firstOf(err, errors.New("the connection to the server is closed")))
	})
	for told := false; ; {
		nc, js, err := s.connect(closed)
		if err == nil {
			x.nc, x.js, x.files = nc, js, files{js: js}
			return nil
		}
		if checked := s.Check(); checked != nil || errors.Is(err, ErrAuthorization) {
			return err
		}
		if !told {
			x.o.Log(err.Error() + "; trying again")
			told = true
		}
		if x.idle() {
			return err
		}
		if !pause(ctx, time.Second) {
			return context.Cause(ctx)
		}
	}
}

// meet waits for a coordinator of our version, which has made the streams.
func (x *worker) meet(ctx context.Context) (bool, error) {
	for told := false; ; {
		ours, theirs := x.greet(ctx)
		if !ours && theirs != nil {
			return false, &ErrVersion{x.o.Version, *theirs}
		}
		var err error
		if x.tasks, err = x.js.Stream(ctx, taskStream); err == nil {
			if x.ans, err = x.js.Stream(ctx, answerStream); err == nil {
				x.from, err = x.tasks.Consumer(ctx, consumerName(x.o.Version))
			}
		}
		if err == nil {
			return true, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return false, cause
		}
		if !told {
			x.o.Log("waiting for a coordinator of sim " + x.o.Version.String())
			told = true
		}
		if x.idle() {
			return false, nil
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// greet asks which coordinators there are: whether one is of our version, and another
// version that is there.
func (x *worker) greet(ctx context.Context) (ours bool, theirs *Version) {
	data, err := json.Marshal(greeting{x.o.Version, x.host})
	if err != nil {
		return false, nil
	}
	inbox := x.nc.NewInbox()
	sub, err := x.nc.SubscribeSync(inbox)
	if err != nil {
		return false, nil
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection is gone then
	if x.nc.PublishRequest(helloSubject, inbox, data) != nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil || len(m.Data) == 0 { // the time is up, or nobody is there
			return false, theirs
		}
		var g greeting
		switch {
		case json.Unmarshal(m.Data, &g) != nil:
		case g.Version.Binary == x.o.Version.Binary:
			return true, nil
		default:
			theirs = &g.Version
		}
	}
}

// watch ends the worker when there is nothing to do any more.
func (x *worker) watch(ctx context.Context) error {
	for pause(ctx, max(time.Second, min(x.o.Idle/4, 10*time.Second))) {
		if x.busy.Load() > 0 {
			continue
		}
		switch ours, theirs := x.greet(ctx); {
		case ours:
			x.last.Store(time.Now().UnixNano())
		case theirs != nil && x.did.Load() == 0: // else its sweep is over, and another runs
			return &ErrVersion{x.o.Version, *theirs}
		case x.idle():
			return errIdle
		}
	}
	return context.Cause(ctx)
}

func (x *worker) idle() bool {
	return x.o.Idle > 0 && time.Since(time.Unix(0, x.last.Load())) > x.o.Idle
}

// pause waits and tells whether ctx still runs.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// serve does one task after the other.
func (x *worker) serve(ctx context.Context) error {
	for ctx.Err() == nil {
		batch, err := x.from.Fetch(1, jetstream.FetchContext(within(ctx, 5*time.Second)))
		if err == nil {
			for m := range batch.Messages() {
				x.busy.Add(1)
				err = x.one(ctx, m)
				x.busy.Add(-1)
				x.did.Add(1)
				x.last.Store(time.Now().UnixNano())
				if err != nil {
					return err
				}
			}
			err = batch.Error()
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) {
			pause(ctx, 500*time.Millisecond) // the server is away, or coming back
		}
	}
	return nil
}

// within is a context for one call; it ends by itself.
func within(ctx context.Context, d time.Duration) context.Context {
	c, cancel := context.WithTimeout(ctx, d)
	context.AfterFunc(c, cancel)
	return c
}

// one does a task and delivers its answer. An error is one of this machine.
func (x *worker) one(ctx context.Context, m jetstream.Msg) error {
	key := keyOf(m.Subject())
	var e envelope
	if err := json.Unmarshal([]byte(m.Headers().Get(headTask)), &e); err != nil {
		x.o.Log(m.Subject() + ": not a task of sim's; it is removed")
		return m.Term()
	}
	_, err := x.ans.GetLastMsgForSubject(within(ctx, attemptTimeout), answerSubject(x.o.Version, key))
	if err == nil { // somebody was first
		return x.ack(m)
	}
	about, err := m.Metadata()
	if err != nil {
		return err
	}
	s := seal{Worker: x.host, Attempt: about.NumDelivered}
	beat := x.heartbeat(m)
	var answer []byte
	if about.NumDelivered > MaxDeliveries {
		err = &Failure{Text: fmt.Sprintf("given out %d times, and no worker came back with an answer: does it need more memory than they have?", MaxDeliveries)}
	} else {
		answer, err = x.carryOut(ctx, Task{Key: key, Name: e.Name, Body: m.Data(), Files: e.Files})
	}
	var failed *Failure
	if errors.As(err, &failed) {
		answer, s.Failed, s.Input = []byte(failed.Text), true, failed.Input
	} else if err != nil {
		beat()
		_ = m.NakWithDelay(0) // if this is lost, the task is given out again after the wait
		x.flush()
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%s: %w\n  the task goes to another worker", e.Name, err)
	}
	err = deliver(ctx, x.nc, x.js, x.o.Version, key, answer, s)
	beat()
	if err != nil {
		_ = m.Nak()
		x.flush()
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%s: its answer cannot be delivered: %w", e.Name, err)
	}
	if failed != nil {
		x.o.Done(e.Name, failed)
	} else {
		x.o.Done(e.Name, nil)
	}
	return x.ack(m)
}

// flush gives the server what is on its way; what is lost ends by the wait.
func (x *worker) flush() { _ = x.nc.FlushTimeout(time.Second) }

// ack tells the server that the task is done. If that is lost, the task is given out
// again, and whoever gets it finds the answer.
func (x *worker) ack(m jetstream.Msg) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := m.DoubleAck(ctx); err != nil {
		x.o.Log("a task could not be acknowledged: " + err.Error())
	}
	return nil
}

// carryOut does a task whose files are at hand.
func (x *worker) carryOut(ctx context.Context, t Task) ([]byte, error) {
	for i, f := range t.Files {
		path, err := x.files.get(ctx, f, x.o.Files)
		if err != nil {
			return nil, err
		}
		t.Files[i].Path = path
	}
	return x.work(ctx, t)
}

// heartbeat keeps the server from giving the task to another while it is worked on.
func (x *worker) heartbeat(m jetstream.Msg) (stop func()) {
	every := x.from.CachedInfo().Config.AckWait / 3
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(max(every, 10*time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				_ = m.InProgress() // a lost one is one of three
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}
