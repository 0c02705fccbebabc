package queue

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Server says how a NATS server is reached.
type Server struct {
	URL     string // nats://host:4222, tls://, ws://; several separated by commas
	Token   string
	Creds   string // credentials file: JWT and seed
	CA      string // PEM file of who signed the server's certificate
	Cert    string // PEM files of a client certificate
	Key     string
	Name    string // of this connection, for the server's lists
	Timeout time.Duration
}

// names of what lives on the server. One stream of tasks and one of answers serve
// all coordinators; a team may create them beforehand, with replicas of its choice.
const (
	taskStream   = "SIM_TASKS"
	answerStream = "SIM_ANSWERS"
	fileBucket   = "SIM_FILES"
	keptFor      = 7 * 24 * time.Hour // what nobody fetched

	// MaxDeliveries bounds how often a task is given out: one that kills its workers
	// fails instead of killing them all.
	MaxDeliveries = 8
)

// Check reports what is wrong with how a server is named, before anything is tried.
func (s *Server) Check() error {
	for _, one := range strings.Split(s.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		switch {
		case err != nil || u.Host == "":
			return fmt.Errorf("--nats %s is not an address\n  for example: nats://host:4222, tls://host:4222", redacted(one))
		case u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss":
			return fmt.Errorf("--nats %s: unknown scheme %q\n  allowed: nats, tls, ws, wss", redacted(one), u.Scheme)
		case u.User != nil:
			return errors.New("--nats carries a token or password, which every user of this machine can read\n  put it into a file (--token-file), or into the environment: SIM_NATS_TOKEN")
		}
	}
	if (s.Cert == "") != (s.Key == "") {
		return errors.New("--tls-cert and --tls-key belong together")
	}
	if s.Token != "" && s.Creds != "" {
		return errors.New("a token and --creds are two ways to log in: give one of them")
	}
	for _, f := range []struct{ flag, path string }{{"creds", s.Creds}, {"tls-ca", s.CA}, {"tls-cert", s.Cert}, {"tls-key", s.Key}} {
		if f.path == "" {
			continue
		}
		file, err := os.Open(f.path)
		if err != nil {
			return fmt.Errorf("--%s: %w", f.flag, err)
		}
		file.Close()
	}
	return nil
}

// redacted is an address without what is secret in it.
func redacted(address string) string {
	if _, after, ok := strings.Cut(address, "@"); ok {
		return after
	}
	return address
}

// connect reaches the server, or says why not.
func (s *Server) connect(more ...nats.Option) (*nats.Conn, jetstream.JetStream, error) {
	if err := s.Check(); err != nil {
		return nil, nil, err
	}
	timeout := s.Timeout
	if timeout == 0 {
		timeout = 5 * time.Second
	}
	o := append([]nats.Option{nats.Name(s.Name), nats.Timeout(timeout), nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond)}, more...)
	if s.Token != "" {
		o = append(o, nats.Token(s.Token))
	}
	if s.Creds != "" {
		o = append(o, nats.UserCredentials(s.Creds))
	}
	if s.CA != "" {
		o = append(o, nats.RootCAs(s.CA))
	}
	if s.Cert != "" {
		o = append(o, nats.ClientCert(s.Cert, s.Key))
	}
	nc, err := nats.Connect(s.URL, o...)
	switch {
	case errors.Is(err, nats.ErrAuthorization), err != nil && strings.Contains(strings.ToLower(err.Error()), "authorization violation"):
		return nil, nil, fmt.Errorf("%s: %w", s.URL, ErrAuthorization)
	case err != nil:
		return nil, nil, fmt.Errorf("%s cannot be reached: %w", s.URL, err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, js, nil
}
