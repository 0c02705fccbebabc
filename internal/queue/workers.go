package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// TokenEnv is the environment variable that carries a token.
const TokenEnv = "SIM_NATS_TOKEN"

// mostStarts bounds how often the workers are started again, per worker.
const mostStarts = 5

// Processes are worker processes on this machine. They end when their standard input
// does, so that none outlives the program, however that ends.
type Processes struct {
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// Spawn starts n processes of a command and starts one again that dies; when they die
// too often, lost is called. The token goes by the environment: everybody can read a
// command line.
func Spawn(n int, command []string, token string, log func(string), lost func(error)) *Processes {
	ctx, stop := context.WithCancel(context.Background())
	p := &Processes{stop: stop}
	for i := range n {
		p.wg.Go(func() {
			for start := 1; ; start++ {
				begun := time.Now()
				words, err := runWorker(ctx, command, token)
				if ctx.Err() != nil {
					return
				}
				why := fmt.Sprintf("worker %d ended: %s", i+1, describe(err, words))
				if start >= mostStarts {
					lost(errors.New(why + fmt.Sprintf("\n  it was started %d times", start)))
					return
				}
				log(why + "; starting it again")
				if time.Since(begun) < time.Second {
					pause(ctx, time.Duration(start)*200*time.Millisecond)
				}
			}
		})
	}
	return p
}

// Stop ends the processes and waits for them.
func (p *Processes) Stop() {
	p.stop()
	p.wg.Wait()
}

// runWorker runs one process and returns its last words.
func runWorker(ctx context.Context, command []string, token string) (string, error) {
	// The process is killed only if closing its input does not end it.
	cmd := exec.Command(command[0], command[1:]...)
	apart(cmd)
	cmd.Env = append(os.Environ(), TokenEnv+"="+token)
	var words tail
	cmd.Stderr = &words
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return words.String(), err
	case <-ctx.Done():
	}
	in.Close()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		_ = cmd.Process.Kill() // it has ended by itself otherwise
		<-ended
	}
	return "", ctx.Err()
}

func describe(err error, words string) string {
	text := "it has nothing to do"
	if err != nil {
		text = err.Error()
	}
	if words = strings.TrimSpace(words); words != "" {
		text += ": " + words
	}
	return text
}

// tail keeps the end of what is written.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - 2000; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// UntilClosed calls end when r ends, as a worker's standard input does when the
// program that started it is gone.
func UntilClosed(r io.Reader, end func()) {
	_, _ = io.Copy(io.Discard, r) // any end is the end
	end()
}
