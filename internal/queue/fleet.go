package queue

import (
	"context"
	"fmt"
)

// Fleet is a coordinator with a server and workers of its own on this machine.
type Fleet struct {
	*Coordinator
	server  *Embedded
	workers *Processes
}

// StartFleet starts a server in dir, listening as Start says, and n workers: command
// with --nats and the server's address appended.
func StartFleet(ctx context.Context, dir, listen string, n int, command []string, o Options) (*Fleet, error) {
	srv, err := Start(dir, listen)
	if err != nil {
		return nil, err
	}
	o.Files, o.healthy = !srv.Loopback(), srv.Healthy
	c, err := Coordinate(ctx, Server{URL: srv.URL(), Token: srv.Token, Name: "sim coordinator"}, o)
	if err != nil {
		_ = srv.Close(false) // the error before it counts
		return nil, err
	}
	if !srv.Loopback() {
		c.o.Log(fmt.Sprintf("listening on %s: other machines join with\n  sim worker --nats nats://THIS-HOST:PORT --token-file %s\n  The token crosses the network unencrypted; for TLS run a nats-server and use --nats.", srv.srv.Addr(), srv.TokenFile()))
	}
	f := &Fleet{Coordinator: c, server: srv}
	f.workers = Spawn(n, append(command, "--nats", srv.URL()), srv.Token, c.o.Log, c.fail)
	return f, nil
}

// Close ends workers and server. The server's store goes too: it holds nothing that
// the next run needs.
func (f *Fleet) Close() error {
	f.workers.Stop()
	err := f.Coordinator.Close()
	if closed := f.server.Close(true); err == nil {
		err = closed
	}
	return err
}
