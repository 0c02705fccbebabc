package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// look finds, now and then, tasks that the server has lost, and answers that did not
// arrive: whatever happened to the server, each task that is waited for is on it.
func (c *Coordinator) look(ctx context.Context) {
	every := max(lookEvery, 2*c.o.AckWait)
	tick := time.NewTicker(min(every, time.Second))
	defer tick.Stop()
	heard, next, told := time.Now(), time.Now().Add(every), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.o.healthy != nil {
			if err := c.o.healthy(); err != nil {
				c.fail(err)
				return
			}
		}
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(every)
		err := c.restore(ctx)
		switch {
		case err == nil:
			heard, told = time.Now(), false
		case !told && ctx.Err() == nil:
			c.o.Log("the server does not answer: " + err.Error())
			told = true
		}
		if time.Since(heard) > mostSilence+every {
			c.fail(fmt.Errorf("the server has not answered for %s: %w", mostSilence, err))
			return
		}
	}
}

// restore compares what is waited for with what the server holds.
func (c *Coordinator) restore(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	before := c.waitedFor()
	// Tasks first: one that ends in between then shows among the answers.
	tasks, err := c.tasks.Info(call, jetstream.WithSubjectFilter(taskSubject(c.o.Version, "*")))
	if err != nil {
		return err
	}
	answers, err := c.answers.Info(call, jetstream.WithSubjectFilter(answerSubject(c.o.Version, "*")))
	if err != nil {
		return err
	}
	floor, err := c.floor(call)
	if err != nil {
		return err
	}
	for key, t := range before {
		_, queued := tasks.State.Subjects[taskSubject(c.o.Version, key)]
		_, answered := answers.State.Subjects[answerSubject(c.o.Version, key)]
		switch _, still := c.waitedFor()[key]; {
		case !still:
		case answered:
			if _, err := c.fetch(ctx, key); err != nil {
				return err
			}
		case !queued:
			if err := c.publish(ctx, t); err != nil {
				return err
			}
		case tasks.State.FirstSeq <= floor:
			if err := c.free(ctx, t, floor); err != nil {
				return err
			}
		}
	}
	return nil
}

// floor is the number of the task up to which the server takes all for done.
func (c *Coordinator) floor(ctx context.Context) (uint64, error) {
	consumer, err := c.tasks.Consumer(ctx, consumerName(c.o.Version))
	if err != nil {
		return 0, err
	}
	return consumer.CachedInfo().AckFloor.Stream, nil // of now: Consumer has just asked
}

// free queues a task anew that the server holds and takes for done. A server that is
// killed may come back like that, even with SyncAlways: that is about messages, not
// about what the server knows of their delivery.
func (c *Coordinator) free(ctx context.Context, t Task, floor uint64) error {
	m, err := c.tasks.GetLastMsgForSubject(within(ctx, callTimeout), taskSubject(c.o.Version, t.Key))
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Sequence > floor {
		return nil
	}
	if err != nil {
		return err
	}
	if err := c.tasks.DeleteMsg(within(ctx, callTimeout), m.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	return c.publish(ctx, t)
}

func (c *Coordinator) waitedFor() map[string]Task {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]Task, len(c.waiting))
	for key, list := range c.waiting {
		out[key] = list[0].task
	}
	return out
}

// greeting is what a worker says of itself, and the coordinator's answer.
type greeting struct {
	Version Version `json:"version"`
	Host    string  `json:"host"`
}

// hello answers a worker that asks who is there.
func (c *Coordinator) hello(m *nats.Msg) {
	var g greeting
	if json.Unmarshal(m.Data, &g) != nil {
		return
	}
	data, err := json.Marshal(greeting{Version: c.o.Version})
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		c.o.Log("a worker could not be answered: " + err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.Version.Binary == c.o.Version.Binary {
		c.joined = true
		return
	}
	if id := g.Host + g.Version.Binary; !c.seen[id] {
		c.seen[id] = true
		c.o.Log(fmt.Sprintf("a worker on %s is refused: it is sim %s, this is sim %s", g.Host, g.Version, c.o.Version))
	}
}
