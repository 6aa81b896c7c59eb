package listen

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/dev/rawh2"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// handlers are those that a stalled client could hold up.
var handlers = map[string]http.HandlerFunc{
	"reads all": func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "hello")
	},
	"reads nothing": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
	"answers first": func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, r.Body)
	},
	"no content": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	"aborts":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
}

// halfBodies are requests that their client does not finish.
var halfBodies = map[string]string{
	"length":         "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhello",
	"no byte":        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n",
	"long":           "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\nhello",
	"in a chunk":     "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nhello",
	"between chunks": "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	"in a trailer":   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n",
	"expect":         "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n",
	"pipelined":      "GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhello",
	"two lengths":    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\nTransfer-Encoding: chunked\r\n\r\nhello",
}

// A client that does not finish a body is gone after the time for that, and its request
// with it, whatever the handler does.
func TestHalfBodyHoldsNothing(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		for name, handler := range handlers {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := start(t, ServerOptions{Handler: handler, Limits: HTTPLimits{Limits: Limits{Stall: brief}}}, config)
				for _, sent := range halfBodies {
					fmt.Fprint(dial(t, s.addr, config), sent)
				}
				soon(t, "all are gone", func() bool { return s.Connections() == 0 && s.isIdle() })
			})
		}
	})
}

// The same over HTTP/2, where the connection goes on with other streams.
func TestHalfBodiesOfStreams(t *testing.T) {
	config := certificate(t)
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, ServerOptions{Handler: handler, Limits: HTTPLimits{Limits: Limits{Stall: brief}}}, config)
			c := rawh2.Dial(t, s.addr, 1<<16)
			for _, more := range [][]string{nil, {"content-length", "1000"}, {"expect", "100-continue"}} {
				for _, body := range []string{"", "hello"} {
					stream := c.Request("POST", "/", false, more...)
					if body != "" {
						c.Body(stream, []byte(body), false)
					}
					soon(t, "the stream is over", func() bool { return c.Over(stream) })
				}
			}
			soon(t, "no request is left", func() bool { return s.requests.Load() == 0 })
			if _, _, _, gone := c.Received(0); gone {
				t.Error("the connection is gone")
			}
		})
	}
}

// responses are those that a client may leave unread.
var responses = map[string]http.HandlerFunc{
	"/small": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
	"/flushed": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
		_ = http.NewResponseController(w).Flush()
	},
	"/trailer": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "A")
		_, _ = io.WriteString(w, "hello")
		w.Header().Set("A", "b")
	},
	"/big": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 10<<20)) },
	"/copied": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, strings.NewReader(strings.Repeat("x", 10<<20)))
	},
	"/events": func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "data: x\n\n")
			w.(http.Flusher).Flush()
		}
	},
}

// A stream whose client gives no window for the response ends, however small that is.
func TestResponsesWithoutAWindow(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, brief/4, func(t testing.TB) {
		config := certificate(t)
		mux := http.NewServeMux()
		for path, handler := range responses {
			mux.HandleFunc(path, handler)
		}
		s := start(t, ServerOptions{Handler: mux, Limits: HTTPLimits{Limits: Limits{Stall: brief}}}, config)
		for _, window := range []uint32{0, 1, 3} {
			c := rawh2.Dial(t, s.addr, window)
			for path := range responses {
				stream := c.Request("GET", path, true)
				soon(t, path+" is over", func() bool { return c.Over(stream) })
				if !c.Reset(stream) {
					t.Errorf("%s with a window of %d was not reset", path, window)
				}
				soon(t, "no request is left", func() bool { return s.requests.Load() == 0 })
				c.Answered("/small", len("hello"))
			}
		}
	})
}

// A connection that is not read from is gone, with all of its requests.
func TestConnectionThatIsNotRead(t *testing.T) {
	t.Parallel()
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		var served atomic.Int64
		events := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served.Add(1)
			responses["/events"](w, r)
		})
		s := start(t, ServerOptions{Handler: events, Limits: HTTPLimits{Limits: Limits{Stall: brief}}}, config)
		for range 3 {
			fmt.Fprint(dial(t, s.addr, config), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		}
		if config != nil {
			c := rawh2.DialUnread(t, s.addr, 1<<31-1)
			c.Window(0, 1<<30)
			for range 5 {
				c.Request("GET", "/", true)
			}
		}
		soon(t, "they are served", func() bool { return served.Load() >= 3 })
		soon(t, "all are gone", func() bool { return s.Connections() == 0 && s.isIdle() })
	})
}

// A client that sends and reads slowly, but does, is not cut off.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		testdep.Undisturbed(t, lenient/8, func(t testing.TB) {
			s := start(t, ServerOptions{
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					n, err := io.Copy(io.Discard, r.Body)
					fmt.Fprint(w, n, err)
				}),
				Limits: HTTPLimits{Limits: Limits{Stall: lenient}},
			}, config)
			conn := dial(t, s.addr, config)
			fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\nConnection: close\r\n\r\n")
			for range 8 {
				time.Sleep(lenient / 6) // longer than the limit in all
				fmt.Fprint(conn, "x")
			}
			if answer, err := io.ReadAll(conn); err != nil && config == nil || !strings.HasSuffix(string(answer), "8 <nil>") {
				t.Errorf("%q, %v", answer, err)
			}
		})
	})
}

// A client may be silent where the handler answers while the body is sent, for as long as a
// tunnel may, unless it is in the middle of something.
func TestSilenceInFullDuplex(t *testing.T) {
	t.Parallel()
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if err := c.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		buf := make([]byte, 1<<10)
		for {
			n, err := r.Body.Read(buf)
			_, _ = w.Write(buf[:n])
			_ = c.Flush()
			if err != nil {
				return
			}
		}
	})
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		testdep.Undisturbed(t, brief/4, func(t testing.TB) {
			s := start(t, ServerOptions{Handler: echo, Limits: HTTPLimits{Limits: Limits{Stall: brief}, Tunnel: lenient}}, config)
			conn := dial(t, s.addr, config)
			fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			part := make([]byte, 5)
			for range 3 {
				if _, err := io.ReadFull(res.Body, part); err != nil || string(part) != "hello" {
					t.Fatalf("%q, %v", part, err)
				}
				time.Sleep(2 * brief)
				fmt.Fprint(conn, "5\r\nhello\r\n")
			}
			if config != nil {
				c := rawh2.Dial(t, s.addr, 1<<16)
				stream := c.Request("POST", "/", false)
				for i := range 3 {
					c.Body(stream, []byte("hello"), false)
					soon(t, "it is echoed", func() bool { _, n, _, _ := c.Received(stream); return n == 5*(i+1) })
					time.Sleep(2 * brief)
				}
				upload := c.Request("POST", "/", false, "content-length", "1000")
				soon(t, "an upload that stands still is over", func() bool { return c.Over(upload) })
				soon(t, "so is what is silent for longer", func() bool { return c.Over(stream) })
			}
			soon(t, "all are gone", func() bool { return s.isIdle() })
		})
	})
}

// Whoever does not get to a handshake, to a request or to the next one is gone.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		testdep.Undisturbed(t, brief/4, func(t testing.TB) {
			s := start(t, ServerOptions{Handler: hello, Limits: HTTPLimits{Limits: Limits{Stall: brief}, ReadHeader: brief, Idle: brief}}, config)
			for _, sent := range []string{
				"", "G", "GET / HTTP/1.1\r\nHost: exam", "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n",
				"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGE",
			} {
				fmt.Fprint(dial(t, s.addr, nil), sent) // no handshake at all, or plain HTTP, where TLS is expected
				fmt.Fprint(dial(t, s.addr, config), sent)
			}
			if config != nil {
				rawh2.Dial(t, s.addr, 1<<16)
				rawh2.Dial(t, s.addr, 1<<16).Send(rawh2.FrameHeaders, 0, 1, []byte{0x82}) // and no CONTINUATION
			}
			soon(t, "all are gone", func() bool { return s.Connections() == 0 })
		})
	})
}

// A client whose body has timed out has had its time: nothing of it is waited for any
// longer. One whose response came early may still send for a moment.
func TestStalledClientGetsNoMoreTime(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			inner, peer := net.Pipe()
			defer peer.Close()
			defer inner.Close()
			conn := newHTTP1Conn(inner, new(HTTPLimits), nil)
			c := Client{conn: &connInfo{http1: conn}, http1: true}
			if late {
				_, _ = c.ReadBody(failing{os.ErrDeadlineExceeded}, nil)
			}
			c.End(true)
			if left := time.Until(conn.bodyDeadline); late != (left <= 0) {
				t.Errorf("timed out %t: it has %s left", late, left)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
