package listen

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// brief is how long clients may stall who do. lenient is a limit for those who are slow and
// must not exceed it, not even on a busy machine: they pause for a small part of it.
const (
	brief   = 300 * time.Millisecond
	lenient = 2 * time.Second
)

// running is a server on a socket.
type running struct {
	*Server
	addr string
}

// start serves until the test ends.
func start(t testing.TB, o ServerOptions, config *tls.Config) running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, l, o, config)
}

func startOn(t testing.TB, l net.Listener, o ServerOptions, config *tls.Config) running {
	t.Helper()
	s := NewServer(o)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, config) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return running{s, l.Addr().String()}
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })

// certificate returns the configuration of a server, with the certificate of httptest.
func certificate(t testing.TB) *tls.Config {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates}
}

// dial connects, with TLS if there is a config, and speaks HTTP/1.
func dial(t testing.TB, addr string, config *tls.Config) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if config == nil {
		return conn
	}
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	return secure
}

// soon is testdep.Eventually for less than a minute, which the limits that a test does not set end things after.
func soon(t testing.TB, what string, cond func() bool) {
	t.Helper()
	if !testdep.Await(20*time.Second, cond) {
		t.Fatalf("not so after 20 s: %s", what)
	}
}

// plainAndTLS runs a test for both.
func plainAndTLS(t *testing.T, f func(t *testing.T, config *tls.Config)) {
	server := certificate(t)
	for _, config := range []*tls.Config{nil, server} {
		t.Run(fmt.Sprint("TLS ", config != nil), func(t *testing.T) { f(t, config) })
	}
}
