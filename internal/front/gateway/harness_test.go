package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// running is a gateway on a socket.
type running struct {
	*Gateway
	addr string
	url  string
}

// start serves the gateway that o describes until the test ends.
func start(t testing.TB, o Options, config *tls.Config) running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l, config) }()
	t.Cleanup(func() {
		g.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	scheme := "http://"
	if config != nil {
		scheme = "https://"
	}
	return running{g, l.Addr().String(), scheme + l.Addr().String()}
}

// before is a gateway before one upstream, with the rules given.
func before(t testing.TB, text string, upstream http.HandlerFunc) running {
	t.Helper()
	return start(t, Options{Gate: gateOf(t, text), Upstreams: []*url.URL{serve(t, upstream)}}, nil)
}

func serve(t testing.TB, h http.HandlerFunc) *url.URL {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return parseURL(t, s.URL)
}

func parseURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// gateOf returns a gate with a queue; nil if there are no rules.
func gateOf(t testing.TB, text string) *tidegate.Gate {
	t.Helper()
	if text == "" {
		return nil
	}
	set, err := rules.Parse("rules.yaml", []byte(text), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return tidegate.NewGate(rules.NewLive(set), queue.New(chain.Adapt(memory.New())))
}

// get returns the answer and its body.
func get(t testing.TB, url string) (*http.Response, string) {
	t.Helper()
	return do(t, newRequest(t, http.MethodGet, url, nil))
}

func newRequest(t testing.TB, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// client is not http.DefaultClient, whose idle connections other tests share.
var client = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}}

func do(t testing.TB, r *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(raw)
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// soon is testdep.Eventually for less than a minute, which the limits that a test does not set end things after.
func soon(t testing.TB, what string, cond func() bool) {
	t.Helper()
	if !testdep.Await(30*time.Second, cond) {
		t.Fatalf("not so after 30 s: %s", what)
	}
}

// certificate is that of httptest, for a server and for its clients.
func certificate(t testing.TB) (server *tls.Config, clients *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	clients = x509.NewCertPool()
	clients.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates}, clients
}

// logBuffer is a log that tests can read.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(b, nil)) }

func (b *logBuffer) access() accesslog.Log { return accesslog.Log{To: b} }

func (b *logBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSpace(b.buf.String()), "\n")
}

func shutdown(t testing.TB, g running, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return g.Shutdown(ctx)
}
