package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options are how a coordinator uses its server.
type Options struct {
	Version Version
	AckWait time.Duration // a worker silent for so long is taken for dead; 0 = DefaultAckWait
	Files   bool          // workers may be on other machines: tasks' files go to the server
	Log     func(string)  // what a person should know; nil = nothing

	healthy func() error // of an embedded server; nil = not ours
}

// DefaultAckWait is how long a worker may be silent.
const DefaultAckWait = 30 * time.Second

// Bounds of a coordinator.
const (
	natsWidth   = 4096            // tasks on the server at a time
	lookEvery   = 3 * time.Second // at least this long between looks for lost tasks
	mostSilence = 5 * time.Minute // of the server, before all tasks fail
	callTimeout = 30 * time.Second

	attemptTimeout = 3 * time.Second // of one try of a call that may be repeated
	unavailable    = 503             // what a server says that is not ready yet
)

// Coordinator is the queue over NATS JetStream, at the end that hands out tasks.
type Coordinator struct {
	o       Options
	nc      *nats.Conn
	js      jetstream.JetStream
	tasks   jetstream.Stream
	answers jetstream.Stream
	files   files
	stop    context.CancelFunc
	gone    chan struct{} // closed when nothing will arrive any more
	ended   sync.WaitGroup

	mu      sync.Mutex
	waiting map[string][]*waiter
	seen    map[string]bool // hosts and versions that were refused, and told of
	joined  bool            // a worker of our version has said hello
	failure error           // why gone is closed
}

// waiter is a Do that waits for an answer.
type waiter struct {
	task Task
	got  chan *answer // one
}

// Coordinate joins a server as the one that hands out tasks.
func Coordinate(ctx context.Context, s Server, o Options) (*Coordinator, error) {
	if o.AckWait <= 0 {
		o.AckWait = DefaultAckWait
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	c := &Coordinator{o: o, waiting: map[string][]*waiter{}, seen: map[string]bool{}, gone: make(chan struct{})}
	nc, js, err := s.connect(nats.ClosedHandler(func(nc *nats.Conn) {
		c.fail(firstOf(nc.LastError(), errors.New("the connection to the server is closed")))
	}))
	if err != nil {
		return nil, err
	}
	c.nc, c.js = nc, js
	if err := c.prepare(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	run, stop := context.WithCancel(context.Background())
	c.stop = stop
	consumer, err := c.answers.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{answerSubject(o.Version, "*")}})
	if err != nil {
		stop()
		nc.Close()
		return nil, explain(err)
	}
	arrivals, err := consumer.Consume(func(m jetstream.Msg) { c.arrived(run, m.Subject(), m.Headers(), m.Data()) })
	if err != nil {
		stop()
		nc.Close()
		return nil, explain(err)
	}
	hello, err := nc.Subscribe(helloSubject, c.hello)
	if err != nil {
		stop()
		nc.Close()
		return nil, err
	}
	c.ended.Go(func() {
		c.look(run)
		arrivals.Stop()
		_ = hello.Unsubscribe() // the connection closes next
	})
	return c, nil
}

// firstOf returns the first error that is one.
func firstOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the streams and the consumer that workers share.
func (c *Coordinator) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var err error
	if c.tasks, err = c.stream(ctx, jetstream.StreamConfig{Name: taskStream, Subjects: []string{taskPrefix + ">"},
		Description: "tasks of sim, one subject each", Retention: jetstream.WorkQueuePolicy, MaxAge: keptFor}); err != nil {
		return explain(err)
	}
	if c.answers, err = c.stream(ctx, jetstream.StreamConfig{Name: answerStream, Subjects: []string{answerPrefix + ">", partPrefix + ">"},
		Description: "answers of sim, one subject each", Retention: jetstream.LimitsPolicy, MaxAge: keptFor}); err != nil {
		return explain(err)
	}
	if c.o.Files {
		c.files = files{js: c.js, log: c.o.Log}
	}
	_, err = c.tasks.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumerName(c.o.Version), FilterSubject: taskSubject(c.o.Version, "*"), AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: c.o.AckWait, MaxAckPending: -1, InactiveThreshold: keptFor,
	})
	return explain(err)
}

// stream returns the stream of that name, made if it does not exist: a team may have
// made it with replicas of its own choice.
func (c *Coordinator) stream(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := c.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		want.Storage, want.AllowDirect = jetstream.FileStorage, true
		return c.js.CreateOrUpdateStream(ctx, want)
	}
	return s, err
}

// noRoom tells a server whose store is full from one that is not ready.
func noRoom(err *jetstream.APIError) bool {
	const insufficientResources, storageExceeded = 10023, 10047
	return err.ErrorCode == insufficientResources || err.ErrorCode == storageExceeded
}

// explain says what a person can do about an error of JetStream.
func explain(err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api) && noRoom(api):
		return fmt.Errorf("the server has no room left: is its disk, or the account's limit, full?\n  finished results are kept; make room and run the same command again (%w)", err)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("the server has no JetStream for this account: %w\n  start it with: nats-server -js", err)
	case errors.Is(err, nats.ErrPermissionViolation):
		return fmt.Errorf("the credentials do not allow it: %w\n  sim needs the subjects sim.>, $JS.API.>, $JS.ACK.>, $O.SIM_FILES.> and _INBOX.>", err)
	}
	return err
}

// Width implements Queue.
func (c *Coordinator) Width() int { return natsWidth }

// Close leaves the server. What it holds for nobody ends by age.
func (c *Coordinator) Close() error {
	c.stop()
	c.ended.Wait()
	c.nc.Close()
	return nil
}

// Do implements Queue.
func (c *Coordinator) Do(ctx context.Context, t Task, keep func([]byte) error) error {
	w := &waiter{task: t, got: make(chan *answer, 1)}
	c.mu.Lock()
	c.waiting[t.Key] = append(c.waiting[t.Key], w)
	c.mu.Unlock()
	defer c.leave(w)
	if err := c.hand(ctx, t); err != nil {
		return err
	}
	select {
	case a := <-w.got:
		return c.take(ctx, t, a, keep)
	case <-ctx.Done():
		c.withdraw(w)
		return ctx.Err()
	case <-c.gone:
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("the queue failed: %w", c.failure)
	}
}

// hand puts a task on the server, unless it is there, or its answer.
func (c *Coordinator) hand(ctx context.Context, t Task) error {
	if found, err := c.fetch(ctx, t.Key); err != nil || found {
		return err
	}
	if c.o.Files {
		for _, f := range t.Files {
			if err := c.files.put(ctx, f); err != nil {
				return err
			}
		}
	}
	return c.publish(ctx, t)
}

// publish queues a task; one that is queued already stays as it is.
func (c *Coordinator) publish(ctx context.Context, t Task) error {
	head, err := json.Marshal(envelope{Name: t.Name, Files: t.Files})
	if err != nil {
		return err
	}
	if most := c.nc.MaxPayload(); int64(len(t.Body)+len(head)+1024) > most {
		return fmt.Errorf("%s: the task of %d bytes is larger than what the server takes (max_payload %d)\n  raise max_payload of the server, at most 64MB", t.Name, len(t.Body), most)
	}
	m := &nats.Msg{Subject: taskSubject(c.o.Version, t.Key), Data: t.Body, Header: nats.Header{headTask: []string{string(head)}}}
	return first(ctx, c.js, m)
}

// first publishes a message on a subject of its own; another one there is no error. A
// server that goes away in the middle takes the reply with it, so that it is asked
// again soon: a second message of the same is not taken.
func first(ctx context.Context, js jetstream.JetStream, m *nats.Msg) error {
	for until := time.Now().Add(callTimeout); ; {
		_, err := js.PublishMsg(within(ctx, attemptTimeout), m, jetstream.WithExpectLastSequencePerSubject(0))
		var api *jetstream.APIError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &api) && (api.Code != unavailable || noRoom(api)), errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrConnectionClosed), time.Now().After(until):
			return explain(err)
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// fetch looks for an answer that is there already.
func (c *Coordinator) fetch(ctx context.Context, key string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	subject := answerSubject(c.o.Version, key)
	m, err := c.answers.GetLastMsgForSubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return false, nil
	case err != nil:
		return false, explain(err)
	}
	return c.arrived(ctx, subject, m.Header, m.Data), nil
}

// arrived gives an answer to those who wait for it. A broken one is thrown away and
// its task queued again.
func (c *Coordinator) arrived(ctx context.Context, subject string, h nats.Header, data []byte) bool {
	key := keyOf(subject)
	c.mu.Lock()
	list := c.waiting[key]
	c.mu.Unlock()
	if len(list) == 0 {
		return false
	}
	a, err := assemble(ctx, c.answers, h, data)
	if err != nil {
		if ctx.Err() == nil {
			c.o.Log(fmt.Sprintf("%s: its answer is broken (%v); it is done again", list[0].task.Name, err))
			c.forget(ctx, key, a)
			if err := c.publish(ctx, list[0].task); err != nil {
				c.o.Log(err.Error()) // look tries again
			}
		}
		return false
	}
	for _, w := range list {
		select {
		case w.got <- a:
		default: // it has one
		}
	}
	return true
}

// take keeps an answer, then removes it from the server.
func (c *Coordinator) take(ctx context.Context, t Task, a *answer, keep func([]byte) error) error {
	var err error
	if a.failure != nil {
		err = a.failure
	} else if err = keep(a.body); err != nil {
		return err
	}
	c.forget(ctx, t.Key, a)
	return err
}

// forget removes a task and its answer from the server. What cannot be removed ends
// by age.
func (c *Coordinator) forget(ctx context.Context, key string, a *answer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	_ = c.answers.Purge(ctx, jetstream.WithPurgeSubject(answerSubject(c.o.Version, key)))
	_ = c.tasks.Purge(ctx, jetstream.WithPurgeSubject(taskSubject(c.o.Version, key)))
	if a != nil && a.parts != "" {
		_ = c.answers.Purge(ctx, jetstream.WithPurgeSubject(a.parts+".*"))
	}
}

// withdraw takes back a task that nobody else waits for and no worker has begun.
func (c *Coordinator) withdraw(w *waiter) {
	c.mu.Lock()
	alone := len(c.waiting[w.task.Key]) == 1
	c.mu.Unlock()
	if alone && c.nc.IsConnected() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = c.tasks.Purge(ctx, jetstream.WithPurgeSubject(taskSubject(c.o.Version, w.task.Key))) // else a worker does it for nobody
	}
}

func (c *Coordinator) leave(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.waiting[w.task.Key]
	for i := range list {
		if list[i] == w {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if c.waiting[w.task.Key] = list; len(list) == 0 {
		delete(c.waiting, w.task.Key)
	}
}

// fail ends every Do.
func (c *Coordinator) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = err
		close(c.gone)
	}
}
