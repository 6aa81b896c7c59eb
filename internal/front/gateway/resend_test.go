package gateway

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// moment is when a mortal upstream closes the connection on which a request came.
type moment int

const (
	atOnce      moment = iota // when something of it came
	afterHead                 // when its head came
	afterBody                 // when all of it came
	inStatus                  // in the middle of the status line of its answer
	inHead                    // in the middle of its head
	afterInform               // after a 1xx answer
	moments
)

// mortal is an upstream whose connections answer one request and die of the second. It
// counts connections on which something of a second one, or of a first one after dying is
// all it does, has come.
type mortal struct {
	net.Listener
	when  moment
	reset bool // the end is a RST, not a FIN

	mu      sync.Mutex
	deadly  bool           // no connection answers any more
	arrived int            // so many requests came, or parts of them
	odd     []string       // what came in another form than it was sent
	open    int            // connections
	held    bool           // by hold
	hold    sync.WaitGroup // until so many requests are there, none is answered
}

func newMortal(t testing.TB, config *tls.Config, when moment, reset bool) *mortal {
	t.Helper()
	m := &mortal{when: when, reset: reset}
	m.Listener = rawUpstream(t, func(raw net.Conn) {
		c := raw
		if config != nil {
			c = tls.Server(raw, config)
		}
		m.serve(c, raw.(*net.TCPConn))
	})
	return m
}

// serve answers until the upstream turns deadly.
func (m *mortal) serve(c net.Conn, raw *net.TCPConn) {
	m.count(1)
	defer m.count(-1)
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(30 * time.Second))
	in := bufio.NewReader(c)
	for {
		if _, err := in.Peek(1); err != nil {
			return
		}
		m.mu.Lock()
		deadly := m.deadly
		if deadly {
			m.arrived++
		}
		m.mu.Unlock()
		if deadly {
			m.die(c, in)
			if m.reset {
				_ = raw.SetLinger(0)
			}
			return
		}
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		m.check(r, n)
		if m.held {
			m.hold.Done()
			m.hold.Wait()
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		if r.Close {
			return
		}
	}
}

// die goes as far as the moment of death.
func (m *mortal) die(c net.Conn, in *bufio.Reader) {
	if m.when == atOnce {
		return
	}
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	if m.when == afterHead {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	switch m.when {
	case inStatus:
		_, _ = io.WriteString(c, "HTTP/1.1 2")
	case inHead:
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le")
	case afterInform:
		_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
	}
}

// check notes what the client did not send: a body that is empty, another header.
func (m *mortal) check(r *http.Request, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n == 0 && (r.ContentLength != 0 || len(r.TransferEncoding) > 0) {
		m.odd = append(m.odd, fmt.Sprintf("%s with a length of %d, coded %v", r.Method, r.ContentLength, r.TransferEncoding))
	}
	if want := r.Header.Get("X-Sent"); want != "" && r.Header.Get(want) != "1" {
		m.odd = append(m.odd, fmt.Sprintf("%s without its %s", r.Method, want))
	}
}

func (m *mortal) count(delta int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open += delta
}

func (m *mortal) turnDeadly() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deadly = true
}

func (m *mortal) oddities() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.odd
}

func (m *mortal) arrivals() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.arrived
}

// However and whenever a connection dies, with however many upstreams, a request has
// arrived once at most: it was counted once.
func TestSentOnce(t *testing.T) {
	config, pool := certificate(t)
	kinds := []struct {
		method, body string
		header       string
	}{
		{"GET", "", ""},
		{"HEAD", "", ""},
		{"OPTIONS", "", ""},
		{"GET", "", "Idempotency-Key"},
		{"GET", "", "Upgrade"},
		{"PUT", "", ""},
		{"DELETE", "", ""},
		{"DELETE", "", "Idempotency-Key"},
		{"POST", "", ""},
		{"POST", "", "Idempotency-Key"},
		{"POST", "", "X-Idempotency-Key"},
		{"POST", "body", "Idempotency-Key"},
		{"PUT", strings.Repeat("body", 10_000), "X-Idempotency-Key"},
		{"PURGE", "", "Idempotency-Key"},
	}
	f := func(name string, secure, keep, reset bool, when moment) {
		t.Run(fmt.Sprintf("%s, %d", name, when), func(t *testing.T) {
			o := Options{Transport: Transport{TLS: &tls.Config{RootCAs: pool, ServerName: "example.com"}}}
			if !keep {
				o.Transport.Idle = -1
			}
			var serving *tls.Config
			scheme := "http://"
			if secure {
				serving, scheme = config, "https://"
			}
			for _, k := range kinds {
				ups := []*mortal{newMortal(t, serving, when, reset), newMortal(t, serving, when, reset)}
				o.Upstreams = nil
				for _, up := range ups {
					o.Upstreams = append(o.Upstreams, parseURL(t, scheme+up.Addr().String()))
				}
				g := start(t, o, nil)
				send := func() *http.Response {
					r := newRequest(t, k.method, g.url, strings.NewReader(k.body))
					switch k.header {
					case "":
					case "Upgrade":
						r.Header.Set("Connection", "Upgrade")
						r.Header.Set("Upgrade", "websocket")
					default:
						r.Header.Set(k.header, "1")
						r.Header.Set("X-Sent", k.header)
					}
					res, err := client.Transport.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
					return res
				}
				for range 6 { // so that both have idle connections
					if res := send(); res.StatusCode != http.StatusOK {
						t.Fatalf("%s: %s before", k.method, res.Status)
					}
				}
				for _, up := range ups {
					for _, odd := range up.oddities() {
						t.Errorf("%s %s: the upstream got %s", k.method, k.header, odd)
					}
				}
				ups[0].turnDeadly()
				ups[1].turnDeadly()
				res := send()
				if n := ups[0].arrivals() + ups[1].arrivals(); n != 1 || res.StatusCode != http.StatusBadGateway {
					t.Errorf("%s %.10q %s: it arrived %d times, answered %s", k.method, k.body, k.header, n, res.Status)
				}
			}
		})
	}
	for when := range moments {
		f("plain", false, true, false, when)
		f("plain, reset", false, true, true, when)
		f("plain, no keep-alive", false, false, false, when)
		f("TLS", true, true, false, when)
		f("TLS, reset", true, true, true, when)
	}
}

// The same over HTTP/2, for streams and connections that end before an answer.
func TestSentOnceOverHTTP2(t *testing.T) {
	_, pool := certificate(t)
	f := func(name string, end func(s *httptest.Server)) {
		t.Run(name, func(t *testing.T) {
			var arrived atomic.Int64
			var deadly atomic.Bool
			var s *httptest.Server
			s = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor != 2 {
					t.Errorf("%s over %s", r.Method, r.Proto)
				}
				if deadly.Load() {
					arrived.Add(1)
					end(s)
					panic(http.ErrAbortHandler)
				}
			}))
			s.EnableHTTP2 = true
			s.StartTLS()
			defer s.Close()
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST"} {
				g := start(t, Options{Upstreams: []*url.URL{parseURL(t, s.URL)}, Transport: Transport{TLS: &tls.Config{RootCAs: pool}}}, nil)
				for warm := range 2 { // the first time it is not known yet what it speaks
					deadly.Store(false)
					for range warm {
						if res, _ := do(t, newRequest(t, method, g.url, nil)); res.StatusCode != http.StatusOK {
							t.Fatalf("%s: %s before", method, res.Status)
						}
					}
					deadly.Store(true)
					arrived.Store(0)
					r := newRequest(t, method, g.url, nil)
					r.Header.Set("Idempotency-Key", "1")
					res, _ := do(t, r)
					if n := arrived.Load(); n != 1 || res.StatusCode != http.StatusBadGateway {
						t.Errorf("%s: it arrived %d times, answered %s", method, n, res.Status)
					}
				}
			}
		})
	}
	f("a stream", func(*httptest.Server) {})
	f("a connection", func(s *httptest.Server) { s.CloseClientConnections() })
}

// Unused connections are kept for as long as it is said, as many as it is said, or not at
// all; over http.Transport, which bodies and TLS need, as well.
func TestKeepAlive(t *testing.T) {
	config, pool := certificate(t)
	f := func(scheme, method string, idle time.Duration, most, together, want int) {
		t.Helper()
		var serving *tls.Config
		if scheme == "https://" {
			serving = config
		}
		m := newMortal(t, serving, atOnce, false)
		m.held = true
		g := start(t, Options{
			Upstreams: []*url.URL{parseURL(t, scheme+m.Addr().String())},
			Transport: Transport{TLS: &tls.Config{RootCAs: pool, ServerName: "example.com"}, Idle: idle, IdleConns: most},
		}, nil)
		for range 3 {
			m.hold.Add(together)
			var asking sync.WaitGroup
			for range together {
				asking.Go(func() {
					if res, _ := do(t, newRequest(t, method, g.url, strings.NewReader(""))); res.StatusCode != http.StatusOK {
						t.Errorf("%s %s: %s", method, scheme, res.Status)
					}
				})
			}
			asking.Wait()
			soon(t, fmt.Sprintf("%s %s, idle %s: %d connections are open", scheme, method, idle, want), func() bool {
				m.mu.Lock()
				defer m.mu.Unlock()
				return m.open == want
			})
		}
	}
	for _, scheme := range []string{"http://", "https://"} {
		for _, method := range []string{"GET", "POST"} {
			f(scheme, method, 0, 0, 5, 5)
			f(scheme, method, time.Hour, 2, 5, 2)
			f(scheme, method, 50*time.Millisecond, 0, 5, 0)
			f(scheme, method, -1, 0, 5, 0)
		}
	}
}
