package queue

import (
	"context"
	"encoding/json"
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
	heard, next := time.Now(), time.Now().Add(every)
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
		if err == nil {
			heard = time.Now()
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
		}
	}
	return nil
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
