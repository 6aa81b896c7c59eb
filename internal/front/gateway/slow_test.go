package gateway

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/rawh2"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// earlyUpstream answers as soon as it has the head of a request, and never reads a body.
func earlyUpstream(t testing.TB, answer string) *url.URL {
	t.Helper()
	up := rawUpstream(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for line := ""; line != "\r\n"; {
			var err error
			if line, err = in.ReadString('\n'); err != nil {
				return
			}
		}
		_, _ = io.WriteString(conn, answer)
		<-t.Context().Done() // the connection stays open
	})
	return parseURL(t, "http://"+up.Addr().String())
}

// halfBodies are requests that their client does not finish.
var halfBodies = map[string]string{
	"length":         "POST %s HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000\r\n\r\nhello",
	"no byte":        "POST %s HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000\r\n\r\n",
	"long":           "POST %s HTTP/1.1\r\nHost: example.com\r\nContent-Length: 10000000\r\n\r\nhello",
	"in a chunk":     "POST %s HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nhello",
	"between chunks": "POST %s HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	"in a size":      "POST %s HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1",
	"in a trailer":   "POST %s HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n",
	"expect":         "POST %s HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n",
	"pipelined":      "GET /hello HTTP/1.1\r\nHost: example.com\r\n\r\nPOST %s HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000\r\n\r\nhello",
	"with GET":       "GET %s HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000\r\n\r\nhello",
}

// A client that does not finish a body is gone after the time for that, and so is all
// that was held for it, whoever answered, and when: nobody, a rule, the gateway, or an
// upstream before the end of the body.
func TestHalfBodyHoldsNothing(t *testing.T) {
	const rule = `
version: 1
rules:
  - { name: denied, match: /denied/, deny: true }
  - { name: refused, match: /refused/, per: everyone, limits: 1/hour }
`
	upstreams := map[string]func(*testing.T) *url.URL{
		"never answers": func(t *testing.T) *url.URL {
			return serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		},
		"early": func(t *testing.T) *url.URL {
			return earlyUpstream(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		},
		"early and closes": func(t *testing.T) *url.URL {
			return earlyUpstream(t, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
		},
		"early, in chunks": func(t *testing.T) *url.URL {
			return earlyUpstream(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
		},
		"early, no body": func(t *testing.T) *url.URL { return earlyUpstream(t, "HTTP/1.1 204 No Content\r\n\r\n") },
	}
	server, _ := certificate(t)
	for name, upstream := range upstreams {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("upstream %s, TLS %v", name, secure), func(t *testing.T) {
				t.Parallel()
				config := server
				if !secure {
					config = nil
				}
				g := start(t, Options{Gate: gateOf(t, rule), Upstreams: []*url.URL{upstream(t)}, Limits: Limits{Stall: brief}}, config)
				for _, path := range []string{"/a", "/denied/a", "/refused/a", "/bad/../path"} {
					for kind, request := range halfBodies {
						conn := net.Conn(dial(t, g.addr))
						if secure {
							conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
						}
						if _, err := fmt.Fprintf(conn, request, path); err != nil {
							t.Fatalf("%s %s: %v", path, kind, err)
						}
					}
				}
				soon(t, "all are gone", func() bool { return g.Connections() == 0 && g.InFlight() == 0 })
				soon(t, "nothing is at the upstream", func() bool { return g.Upstreams()[0].InFlight == 0 })
			})
		}
	}
}

// A byte now and then does not prolong the time for the rest of a body that nobody wants.
func TestTrickleAfterTheAnswer(t *testing.T) {
	t.Parallel()
	g := start(t, Options{
		Upstreams: []*url.URL{earlyUpstream(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")},
		Limits:    Limits{Stall: time.Minute},
	}, nil)
	conn := dial(t, g.addr)
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000\r\n\r\nhello")
	go func() {
		for {
			if _, err := io.WriteString(conn, "x"); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	soon(t, "it is gone", func() bool { return g.Connections() == 0 })
}

// A client that sends slowly, but sends, is not cut off, however long the upstream takes
// to read, and its connection can be used again.
func TestSlowUpload(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, lenient/8, func(t testing.TB) {
		g := start(t, Options{
			Upstreams: []*url.URL{serve(t, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(lenient * 5 / 4)
				n, err := io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, n, err)
			})},
			Limits: Limits{Stall: lenient},
		}, nil)
		conn := dial(t, g.addr)
		in := bufio.NewReader(conn)
		for i := range 2 {
			if i > 0 {
				time.Sleep(lenient * 5 / 4) // silence between requests is for limits.idle
			}
			fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 12\r\n\r\n")
			for range 12 {
				time.Sleep(lenient / 10) // longer than that in all
				fmt.Fprint(conn, "x")
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(res.Body); string(body) != "12 <nil>" {
				t.Errorf("%s %q", res.Status, body)
			}
		}
	})
}

// A client that takes nothing of an answer is gone, though all of it fits the buffers of
// the kernel and the request is long over.
func TestSmallAnswerThatNobodyReads(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere limits.idle ends such a connection")
	}
	t.Parallel()
	testdep.Undisturbed(t, time.Second/4, func(t testing.TB) {
		answer := bytes.Repeat([]byte("x"), 100_000)
		g := start(t, Options{
			Upstreams: []*url.URL{serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })},
			Limits:    Limits{Stall: time.Second, Idle: time.Hour},
		}, nil)
		for range 10 {
			conn := dial(t, g.addr).(*net.TCPConn)
			_ = conn.SetReadBuffer(1)
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
		}
		soon(t, "all ten have come", func() bool { return g.Connections() == 10 })
		soon(t, "all are gone", func() bool { return g.Connections() == 0 })
	})
}

// Whoever does not get to a request, or to the next, is gone as well.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, brief/4, func(t testing.TB) {
		server, _ := certificate(t)
		limits := Limits{Stall: brief, ReadHeader: brief, Idle: brief}
		upstreams := []*url.URL{serve(t, hello)}
		plain := start(t, Options{Upstreams: upstreams, Limits: limits}, nil)
		secure := start(t, Options{Upstreams: upstreams, Limits: limits}, server)
		for _, sent := range []string{
			"", "G", "GET / HTTP/1.1\r\nHost: exam", "GET / HTTP/1.1\r\nHost: example.com\r\nA: b\r\n",
			"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\nGE",
			"GET / HTTP/1.1\r\nHost: example.com\r\n\r\nGET / HTTP/1.1\r\nHost:",
		} {
			fmt.Fprint(dial(t, plain.addr), sent)
			fmt.Fprint(dial(t, secure.addr), sent) // no handshake at all
			conn := tls.Client(dial(t, secure.addr), &tls.Config{InsecureSkipVerify: true})
			fmt.Fprint(conn, sent)
		}
		rawh2.Dial(t, secure.addr, 1<<16)
		half := rawh2.Dial(t, secure.addr, 1<<16)
		half.Send(rawh2.FrameHeaders, 0, 1, []byte{0x82}) // and no CONTINUATION
		soon(t, "all are gone", func() bool { return plain.Connections() == 0 && secure.Connections() == 0 })
	})
}

const slotRule = `
version: 1
rules:
  - { name: slots, match: /held/, per: everyone, concurrency: { slots: 3, lease: 1h } }
`

// Streams of HTTP/2 whose bodies stand still end, and free their slots, while the
// connection goes on with others.
func TestHalfBodiesOfStreams(t *testing.T) {
	testdep.Undisturbed(t, brief/4, func(t testing.TB) {
		server, _ := certificate(t)
		g := start(t, Options{
			Gate: gateOf(t, slotRule),
			Upstreams: []*url.URL{serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "hello")
			})},
			Limits: Limits{Stall: brief},
		}, server)
		c := rawh2.Dial(t, g.addr, 1<<16)
		for round, more := range [][]string{nil, {"content-length", "1000"}, {"expect", "100-continue"}} {
			var streams []uint32
			for i := range 3 {
				s := c.Request("POST", "/held/a", false, more...)
				if i > 0 {
					c.Body(s, []byte("hello"), false)
				}
				streams = append(streams, s)
			}
			for _, s := range streams {
				soon(t, "the stream is over", func() bool { return c.Over(s) })
			}
			soon(t, "nothing is in flight", func() bool { return g.InFlight() == 0 && g.Upstreams()[0].InFlight == 0 })
			c.Answered("/held/b", len("hello"))
			if _, _, _, gone := c.Received(0); gone {
				t.Fatalf("round %d: the connection is gone", round)
			}
		}
	})
}

// Streams of HTTP/2 whose client gives no window for the answer end, however small the
// answer is and whoever gave it, and free their slots.
func TestAnswersWithoutAWindow(t *testing.T) {
	testdep.Undisturbed(t, brief/4, func(t testing.TB) {
		server, _ := certificate(t)
		big := strings.Repeat("x", 300_000)
		g := start(t, Options{
			Gate: gateOf(t, slotRule+"  - { name: denied, match: /denied/, deny: true }\n"),
			Upstreams: []*url.URL{serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/held/small":
					_, _ = io.WriteString(w, "hello")
				case "/held/flushed":
					_, _ = io.WriteString(w, "hello")
					_ = http.NewResponseController(w).Flush()
				case "/held/trailer":
					w.Header().Set("Trailer", "A")
					_, _ = io.WriteString(w, "hello")
					w.Header().Set("A", "b")
				case "/held/big":
					_, _ = io.WriteString(w, big)
				case "/held/events":
					for r.Context().Err() == nil {
						_, _ = io.WriteString(w, "data: x\n\n")
						_ = http.NewResponseController(w).Flush()
					}
				}
			})},
			Limits: Limits{Stall: brief},
		}, server)
		for _, window := range []uint32{0, 1, 3} {
			c := rawh2.Dial(t, g.addr, window)
			for _, path := range []string{"/held/small", "/held/flushed", "/held/trailer", "/held/big", "/held/events", "/denied/a"} {
				var streams []uint32
				for range 3 {
					streams = append(streams, c.Request("GET", path, true))
				}
				for _, s := range streams {
					soon(t, fmt.Sprintf("stream %d, %s, is over", s, path), func() bool { return c.Over(s) })
					if !c.Reset(s) {
						t.Errorf("%s with a window of %d was not reset", path, window)
					}
				}
				soon(t, "nothing is in flight", func() bool { return g.InFlight() == 0 && g.Upstreams()[0].InFlight == 0 })
				c.Answered("/held/small", len("hello"))
			}
		}
	})
}

// A stream whose client takes an answer slowly, but takes it, goes on to the end.
func TestSlowStream(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, lenient/8, func(t testing.TB) {
		server, _ := certificate(t)
		const size = 40_000
		g := start(t, Options{
			Upstreams: []*url.URL{serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, zeros(size)) })},
			Limits:    Limits{Stall: lenient},
		}, server)
		c := rawh2.Dial(t, g.addr, 0)
		s := c.Request("GET", "/", true)
		for sent := 0; sent < size; sent += 3200 { // longer than that in all
			c.Window(s, 3200)
			time.Sleep(lenient / 10)
		}
		soon(t, "the stream is over", func() bool { return c.Over(s) })
		if _, data, ended, _ := c.Received(s); data != size || !ended {
			t.Errorf("%d bytes came, ended %v", data, ended)
		}
	})
}

// A connection of HTTP/2 that nobody reads from is gone, with all its streams.
func TestStreamsOfAConnectionThatNobodyReads(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, brief/4, func(t testing.TB) {
		server, _ := certificate(t)
		g := start(t, Options{
			Upstreams: []*url.URL{serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, zeros(1<<30)) })},
			Limits:    Limits{Stall: brief},
		}, server)
		c := rawh2.DialUnread(t, g.addr, 1<<31-1)
		c.Window(0, 1<<30)
		for range 5 {
			c.Request("GET", "/", true)
		}
		soon(t, "they are at the upstream", func() bool { return g.Upstreams()[0].InFlight > 0 })
		soon(t, "all are gone", func() bool { return g.Connections() == 0 && g.InFlight() == 0 })
	})
}
