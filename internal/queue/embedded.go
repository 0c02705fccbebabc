package queue

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Embedded is a nats-server within this program, for one coordinator.
type Embedded struct {
	Token string
	dir   string
	srv   *server.Server
	lock  *os.File
}

// Start starts a server whose store lies in dir; listen is "host:port", "" = a free
// port of 127.0.0.1. Nobody gets in without the token, which is in dir, for this user
// only, and stays the same when the program is started again.
func Start(dir, listen string) (*Embedded, error) {
	host, port, err := address(listen)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("%s is in use by another sim (%w)\n  wait for it, or start this one in another folder: the queue lies in out/ of the current one, whatever --out says", dir, err)
	}
	token, err := tokenIn(filepath.Join(dir, "token"))
	if err != nil {
		lock.Close()
		return nil, err
	}
	e := &Embedded{Token: token, dir: dir, lock: lock}
	o := &server.Options{
		ServerName: "sim", Host: host, Port: port, Authorization: token, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: dir, SyncAlways: true, MaxPayload: 8 << 20,
	}
	if e.srv, err = newServer(o); err == nil {
		go e.srv.Start()
		if !e.srv.ReadyForConnections(20 * time.Second) {
			e.srv.Shutdown()
			err = fmt.Errorf("a server on %s does not start: is the port taken, the disk full?", net.JoinHostPort(host, fmt.Sprint(port)))
		}
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return e, nil
}

// newServer makes a server; never one without a credential.
func newServer(o *server.Options) (*server.Server, error) {
	if len(o.Authorization) < 20 {
		return nil, errors.New("a server without a token is not started")
	}
	return server.NewServer(o)
}

// address parts what --listen says; the default is reachable from this machine only.
func address(listen string) (string, int, error) {
	if listen == "" {
		return "127.0.0.1", server.RANDOM_PORT, nil
	}
	host, text, err := net.SplitHostPort(listen)
	if err == nil {
		var port int
		if port, err = net.LookupPort("tcp", text); err == nil {
			if port == 0 {
				port = server.RANDOM_PORT
			}
			if host == "" {
				return "", 0, fmt.Errorf("--listen %s names no host\n  for example: 127.0.0.1%s for this machine, 0.0.0.0%s for all networks", listen, listen, listen)
			}
			return host, port, nil
		}
	}
	return "", 0, fmt.Errorf("--listen %s is not host:port\n  for example: 127.0.0.1:4222", listen)
}

// Loopback tells whether only this machine can reach it.
func (e *Embedded) Loopback() bool {
	a, ok := e.srv.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// URL is where it listens.
func (e *Embedded) URL() string {
	a, ok := e.srv.Addr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	host := a.IP.String()
	if a.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "nats://" + net.JoinHostPort(host, fmt.Sprint(a.Port))
}

// TokenFile is where other workers find the token.
func (e *Embedded) TokenFile() string { return filepath.Join(e.dir, "token") }

// Healthy says whether tasks and answers can still be stored.
func (e *Embedded) Healthy() error {
	if e.srv.Running() && !e.srv.JetStreamEnabled() {
		return fmt.Errorf("the queue in %s cannot be written any more: is the disk full?\n  finished results are kept; make room and run the same command again", e.dir)
	}
	return nil
}

// Close stops the server; with remove its folder goes too.
func (e *Embedded) Close(remove bool) error {
	e.srv.Shutdown()
	e.srv.WaitForShutdown()
	var err error
	if remove {
		err = os.RemoveAll(e.dir)
	}
	return errors.Join(err, e.lock.Close())
}

// tokenIn returns the token of a file that only its owner can read, made if need be.
func tokenIn(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 == 0 {
		if token, err := ReadToken(path); err == nil && len(token) >= 20 {
			return token, nil
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	token := rand.Text() + rand.Text()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(token + "\n")
	return token, errors.Join(err, f.Close())
}

// ReadToken reads a token from a file.
func ReadToken(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return token, nil
}
