package queue

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Subjects. A task's is sim.task.VERSION.KEY, its answer's sim.answer.VERSION.KEY; an
// answer too large for one message is in sim.part.VERSION.KEY.NONCE.N.
const (
	taskPrefix   = "sim.task."
	answerPrefix = "sim.answer."
	partPrefix   = "sim.part."
	helloSubject = "sim.hello"
)

// Headers.
const (
	headTask   = "Sim-Task"   // envelope
	headAnswer = "Sim-Answer" // seal
)

func taskSubject(v Version, key string) string   { return taskPrefix + v.token() + "." + key }
func answerSubject(v Version, key string) string { return answerPrefix + v.token() + "." + key }
func consumerName(v Version) string              { return "sim-" + v.token() }
func keyOf(subject string) string                { return subject[strings.LastIndexByte(subject, '.')+1:] }

// envelope is what a task's header says.
type envelope struct {
	Name  string `json:"name"`
	Files []File `json:"files,omitempty"`
}

// seal is what an answer's header says of it.
type seal struct {
	SHA256  string `json:"sha256,omitempty"` // of the body
	Parts   string `json:"parts,omitempty"`  // subject of the parts, without their numbers
	N       int    `json:"n,omitempty"`
	Failed  bool   `json:"failed,omitempty"` // the body is its text
	Input   bool   `json:"input,omitempty"`
	Worker  string `json:"worker,omitempty"`
	Attempt uint64 `json:"attempt,omitempty"`
}

// answer is one that has arrived.
type answer struct {
	body    []byte
	failure *Failure
	parts   string
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// assemble checks an answer and puts its parts together. With an error the answer
// holds only what there is to remove.
func assemble(ctx context.Context, s jetstream.Stream, h nats.Header, data []byte) (*answer, error) {
	var e seal
	if err := json.Unmarshal([]byte(h.Get(headAnswer)), &e); err != nil {
		return nil, errors.New("it has no header of sim's")
	}
	a := &answer{parts: e.Parts}
	if e.Parts != "" {
		data = nil
		for i := range e.N {
			call, cancel := context.WithTimeout(ctx, callTimeout)
			m, err := s.GetLastMsgForSubject(call, e.Parts+"."+strconv.Itoa(i))
			cancel()
			if err != nil {
				return a, fmt.Errorf("part %d of %d: %w", i+1, e.N, err)
			}
			data = append(data, m.Data...)
		}
	}
	if digest(data) != e.SHA256 {
		return a, errors.New("its checksum is wrong")
	}
	if a.body = data; e.Failed {
		a.failure = &Failure{Text: string(data), Input: e.Input}
	}
	return a, nil
}

// deliver publishes an answer; if there is one already, that one stands.
func deliver(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, v Version, key string, body []byte, e seal) error {
	e.SHA256 = digest(body)
	size := max(1024, int(min(nc.MaxPayload(), 4<<20))-4096)
	if len(body) > size {
		e.Parts = partPrefix + v.token() + "." + key + "." + rand.Text()
		for i := 0; i*size < len(body); i++ {
			part := body[i*size : min(len(body), (i+1)*size)]
			if err := first(ctx, js, &nats.Msg{Subject: e.Parts + "." + strconv.Itoa(i), Data: part}); err != nil {
				return err
			}
			e.N++
		}
		body = nil
	}
	head, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return first(ctx, js, &nats.Msg{Subject: answerSubject(v, key), Data: body, Header: nats.Header{headAnswer: []string{string(head)}}})
}
