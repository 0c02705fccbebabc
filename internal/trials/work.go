package trials

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"slosim/experiments"
	"slosim/internal/config"
	"slosim/internal/queue"
	"slosim/sim"
)

// A task's body is the resolved experiment as JSON: all that it needs from the
// catalogue and the files of models is in it. Traces travel as files of the task.

// Key is the address of an experiment's result.
func Key(e sim.Experiment) string {
	sum := sha256.Sum256([]byte(experiments.Hash(e) + "\n" + binary() + "\n" + e.Name + "\n" + e.Title))
	return hex.EncodeToString(sum[:])
}

// Version is this program's, with its text for people.
func Version(text string) queue.Version { return queue.Version{Text: text, Binary: binary()} }

// binary identifies the running program by its content.
var binary = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return "unknown"
	}
	f, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "unknown"
	}
	return hex.EncodeToString(h.Sum(nil))
})

// encode writes a trial as a task.
func encode(key string, t Trial) (queue.Task, error) {
	text, err := json.Marshal(t.Experiment)
	if err != nil {
		return queue.Task{}, err
	}
	task := queue.Task{Key: key, Name: t.Name, Body: pack(text)}
	for _, c := range t.Experiment.Traffic {
		if c.Trace == nil {
			continue
		}
		f := queue.File{SHA256: c.Trace.SHA256, Path: c.Trace.File}
		if !slices.Contains(task.Files, f) {
			task.Files = append(task.Files, f)
		}
	}
	return task, nil
}

// Work simulates the experiment of a task: what workers do, and goroutines alike.
func Work(ctx context.Context, t queue.Task) ([]byte, error) {
	text, err := unpack(t.Body)
	if err != nil {
		return nil, &queue.Failure{Text: "the task cannot be read: " + err.Error(), Cause: err}
	}
	var e sim.Experiment
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, &queue.Failure{Text: "the task cannot be read: " + err.Error(), Cause: err}
	}
	if key := Key(e); key != t.Key {
		return nil, &queue.Failure{Text: fmt.Sprintf("the task says %.12s and is %.12s: is the program being replaced?", t.Key, key)}
	}
	here := e
	here.Traffic = slices.Clone(e.Traffic)
	for i, c := range here.Traffic {
		if c.Trace == nil {
			continue
		}
		for _, f := range t.Files {
			if f.SHA256 == c.Trace.SHA256 {
				trace := *c.Trace
				trace.File = f.Path
				here.Traffic[i].Trace = &trace
			}
		}
	}
	r, err := run(ctx, here)
	if err != nil {
		return nil, err
	}
	return encodeResult(r, &e)
}

// run simulates an experiment in this goroutine. A part of a result is no result.
func run(ctx context.Context, e sim.Experiment) (*sim.Result, error) {
	r, err := sim.Run(ctx, e, sim.Options{Workers: 1})
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, &queue.Failure{Text: err.Error(), Input: config.IsInput(err), Cause: err}
}

// answer is a result as it is stored: the same bytes wherever it was simulated. The
// experiment is apart, as JSON, since gob writes maps in any order.
type answer struct {
	Experiment []byte
	Result     sim.Result // without Experiment
}

// encodeResult writes a result with the paths that e's traces have.
func encodeResult(r *sim.Result, e *sim.Experiment) ([]byte, error) {
	a := answer{Result: *r}
	x := a.Result.Experiment
	a.Result.Experiment = sim.Experiment{}
	restorePaths(&x, e)
	text, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	a.Experiment = text
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(&a); err != nil {
		return nil, err
	}
	return pack(buf.Bytes()), nil
}

// decodeResult reads a result of the experiment e.
func decodeResult(data []byte, e *sim.Experiment) (*sim.Result, error) {
	plain, err := unpack(data)
	if err != nil {
		return nil, err
	}
	var a answer
	if err := gob.NewDecoder(bytes.NewReader(plain)).Decode(&a); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(a.Experiment, &a.Result.Experiment); err != nil {
		return nil, err
	}
	restorePaths(&a.Result.Experiment, e)
	return &a.Result, nil
}

// restorePaths gives traces the paths that they have in e.
func restorePaths(x, e *sim.Experiment) {
	x.Traffic = slices.Clone(x.Traffic)
	for i := range x.Traffic {
		if x.Traffic[i].Trace != nil && i < len(e.Traffic) && e.Traffic[i].Trace != nil {
			trace := *x.Traffic[i].Trace
			trace.File = e.Traffic[i].Trace.File
			x.Traffic[i].Trace = &trace
		}
	}
}

// coders are shared: both are safe for concurrent use by their All methods.
var coders = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic("trials: " + err.Error()) // the options are constants
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(1<<31))
	if err != nil {
		panic("trials: " + err.Error())
	}
	return w, r
})

// magic begins what pack has written; a checksum follows.
const magic = "sim/1\n"

// pack compresses data and seals it with its checksum.
func pack(data []byte) []byte {
	w, _ := coders()
	body := w.EncodeAll(data, nil)
	sum := sha256.Sum256(body)
	return append(append([]byte(magic), sum[:]...), body...)
}

// unpack undoes pack, or says that the data are broken.
func unpack(data []byte) ([]byte, error) {
	body, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok || len(body) < sha256.Size {
		return nil, errors.New("not a result of sim's")
	}
	if sum := sha256.Sum256(body[sha256.Size:]); !bytes.Equal(sum[:], body[:sha256.Size]) {
		return nil, errors.New("its checksum is wrong")
	}
	_, r := coders()
	return r.DecodeAll(body[sha256.Size:], nil)
}
