package queue

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// teamServer starts a server as a team would run it.
func teamServer(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog, o.JetStream, o.StoreDir = "127.0.0.1", -1, true, true, true, t.TempDir()
	srv, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	go srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("it does not start")
	}
	return srv
}

// A server whose store is full says so at once, and what to do.
func TestAServerWithoutRoomIsExplained(t *testing.T) {
	srv := teamServer(t, server.Options{JetStreamMaxStore: 100_000})
	c, err := Coordinate(context.Background(), Server{URL: srv.ClientURL()}, Options{Version: testVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begun := time.Now()
	for _, task := range tasks(20) {
		task.Body = make([]byte, 20_000)
		if err = c.publish(context.Background(), task); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "no room left") || time.Since(begun) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
}

// A task that is larger than the server's messages is refused with the limit.
func TestATaskThatIsTooLargeIsRefused(t *testing.T) {
	srv := teamServer(t, server.Options{MaxPayload: 1 << 16})
	c, err := Coordinate(context.Background(), Server{URL: srv.ClientURL()}, Options{Version: testVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	task := tasks(1)[0]
	task.Body = make([]byte, 1<<16)
	if err := c.Do(context.Background(), task, nil); err == nil || !strings.Contains(err.Error(), "max_payload 65536") {
		t.Error(err)
	}
}

// A team's server with TLS and a user: its certificate is checked, and tasks go through.
func TestATeamsServerWithTLS(t *testing.T) {
	dir := t.TempDir()
	cert := selfSigned(t, dir)
	srv := teamServer(t, server.Options{TLS: true, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, Authorization: "a team's token"})
	s := Server{URL: strings.Replace(srv.ClientURL(), "nats://", "tls://", 1), Token: "a team's token"}
	if _, err := Coordinate(context.Background(), s, Options{Version: testVersion}); err == nil {
		t.Fatal("a certificate of nobody's was taken")
	}
	s.CA = filepath.Join(dir, "ca.pem")
	c, err := Coordinate(context.Background(), s, Options{Version: testVersion, Files: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, s, echo, WorkerOptions{Version: testVersion, Slots: 2}) }()
	kept, errs := all(t, c, tasks(10))
	if errors.Join(errs...) != nil || len(kept) != 10 {
		t.Error(len(kept), errs)
	}
	cancel()
	<-ended
	s.Token = "another token"
	if _, err := Coordinate(context.Background(), s, Options{Version: testVersion}); !errors.Is(err, ErrAuthorization) {
		t.Error(err)
	}
}

// selfSigned makes a certificate for 127.0.0.1 and writes it to ca.pem.
func selfSigned(t *testing.T, dir string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
