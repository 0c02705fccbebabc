package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"slosim/internal/progress"
	"slosim/internal/queue"
	"slosim/internal/trials"
)

// serverFlags say how a NATS server is reached.
type serverFlags struct {
	url, tokenFile, creds string
	ca, cert, key         string
}

func (f *serverFlags) add(cmd *cobra.Command, usage string) {
	flags := cmd.Flags()
	flags.StringVar(&f.url, "nats", "", usage)
	flags.StringVar(&f.tokenFile, "token-file", "", "of --nats: `file` with its token (or "+queue.TokenEnv+" in the environment)")
	flags.StringVar(&f.creds, "creds", "", "of --nats: credentials `file` with JWT and seed")
	flags.StringVar(&f.ca, "tls-ca", "", "of --nats: PEM `file` of who signed its certificate")
	flags.StringVar(&f.cert, "tls-cert", "", "of --nats: PEM `file` of our certificate")
	flags.StringVar(&f.key, "tls-key", "", "of --nats: PEM `file` of its key")
}

// server returns what the flags name, checked.
func (f *serverFlags) server(name string) (queue.Server, error) {
	s := queue.Server{URL: f.url, Creds: f.creds, CA: f.ca, Cert: f.cert, Key: f.key, Name: name}
	if f.creds == "" {
		s.Token = os.Getenv(queue.TokenEnv)
	}
	if f.tokenFile != "" {
		token, err := queue.ReadToken(f.tokenFile)
		if err != nil {
			return s, fmt.Errorf("--token-file: %w", err)
		}
		s.Token = token
	}
	return s, s.Check()
}

// queueFlags say who simulates: goroutines, worker processes, or a team's machines.
type queueFlags struct {
	serverFlags
	parallel int
	workers  int
	listen   string
	ackWait  time.Duration
	store    string
}

func (f *queueFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.parallel, "parallel", 0, "simulations side by side in this process (default: one per core)")
	flags.IntVar(&f.workers, "workers", 0, "simulate in this many worker processes, over a NATS server of our own")
	f.serverFlags.add(cmd, "hand the simulations to workers on a team's NATS server: `url` such as tls://nats.example:4222")
	flags.StringVar(&f.listen, "listen", "", "of --workers: `host:port` at which workers of other machines may join (default: this machine only)")
	flags.DurationVar(&f.ackWait, "ack-wait", queue.DefaultAckWait, "a worker silent for so long is taken for dead")
	flags.StringVar(&f.store, "store", filepath.Join("out", ".trials"), "folder of remembered results; \"\" = remember nothing")
}

// check reports flags that do not go together.
func (f *queueFlags) check() error {
	switch {
	case f.parallel < 0:
		return fmt.Errorf("--parallel %d is negative\n  allowed: 0 (one per core) or more", f.parallel)
	case f.workers < 0 || f.workers > 1024:
		return fmt.Errorf("--workers %d is out of range\n  allowed: 0 (no processes) to 1024", f.workers)
	case f.workers > 0 && f.url != "":
		return errors.New("--workers starts a server of its own, --nats uses another: give one of them\n  workers join a team's server with: sim worker --nats URL")
	case f.parallel > 0 && (f.workers > 0 || f.url != ""):
		return errors.New("--parallel is about this process, which simulates nothing with --workers or --nats: leave it out")
	case f.listen != "" && f.workers == 0:
		return errors.New("--listen belongs to --workers")
	case f.ackWait < 100*time.Millisecond || f.ackWait > time.Hour:
		return fmt.Errorf("--ack-wait %s is out of range\n  allowed: 100ms to 1h", f.ackWait)
	case f.url == "" && (f.tokenFile != "" || f.creds != "" || f.ca != "" || f.cert != "" || f.key != ""):
		return errors.New("--token-file, --creds and --tls-* belong to --nats")
	}
	return nil
}

// open returns the queue that the flags ask for; name tells it from others in the
// folder of queues. The function closes it.
func (f *queueFlags) open(ctx context.Context, name string, m *progress.Meter) (queue.Queue, func(), error) {
	if err := f.check(); err != nil {
		return nil, nil, &exit{exitInput, err}
	}
	if err := trials.CheckStore(f.store); err != nil {
		return nil, nil, &exit{exitInput, err}
	}
	o := queue.Options{Version: trials.Version(versionText()), AckWait: f.ackWait, Log: m.Say}
	var q queue.Queue
	switch {
	case f.url != "":
		s, err := f.server("sim coordinator")
		if err != nil {
			return nil, nil, &exit{exitInput, err}
		}
		o.Files = true
		if q, err = queue.Coordinate(ctx, s, o); err != nil {
			return nil, nil, &exit{exitInput, err}
		}
	case f.workers > 0:
		program, err := os.Executable()
		if err != nil {
			return nil, nil, &exit{exitInternal, err}
		}
		dir := filepath.Join("out", ".queue", name)
		command := []string{program, "worker", "--parallel", "1", "--idle", "0s", "--until-input-ends", "--quiet"}
		if q, err = queue.StartFleet(ctx, dir, f.listen, f.workers, command, o); err != nil {
			return nil, nil, &exit{exitInput, err}
		}
	default:
		q = trials.Local(f.parallel)
	}
	return q, func() {
		if err := q.Close(); err != nil {
			m.Say(err.Error())
		}
	}, nil
}
