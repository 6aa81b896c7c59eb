package listen

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/rawh2"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Clients above the limit of connections are told, over every version of HTTP.
func TestSurplusConnectionsAreTold(t *testing.T) {
	t.Parallel()
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		s := start(t, ServerOptions{Handler: hello, Limits: HTTPLimits{Limits: Limits{Connections: 2}}}, config)
		for i, want := range []string{"200 false ", "200 false ", "503 true 1"} {
			conn := dial(t, s.addr, config)
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(res.StatusCode, " ", res.Close, " ", res.Header.Get("Retry-After")); got != want {
				t.Errorf("connection %d: %q, want %q", i+1, got, want)
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				t.Error(err)
			}
		}
		soon(t, "the third is closed", func() bool { return s.Connections() == 2 })
		if config != nil {
			c := rawh2.Dial(t, s.addr, 1<<16)
			stream := c.Request("GET", "/", true)
			soon(t, "the stream is over", func() bool { return c.Over(stream) })
			if heads, _, ended, _ := c.Received(stream); heads != 1 || !ended {
				t.Errorf("%d heads, ended %v", heads, ended)
			}
			soon(t, "its connection is closed", func() bool { return c.Away() && s.Connections() == 2 })
		}
	})
}

// During a shutdown requests in progress are finished, an idle connection is told with its
// next response that it ends, and no new one is accepted.
func TestShutdown(t *testing.T) {
	t.Parallel()
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		const size = 300_000
		entered, release := make(chan bool), make(chan bool)
		s := start(t, ServerOptions{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				entered <- true
				<-release
			}
			_, _ = io.WriteString(w, strings.Repeat("x", size))
		}), IdleGrace: time.Hour}, config)
		get := func(conn net.Conn, in *bufio.Reader, path string) *http.Response {
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Error(err)
				return new(http.Response)
			}
			if n, err := io.Copy(io.Discard, res.Body); n != size || err != nil {
				t.Errorf("%s: %d bytes, %v", path, n, err)
			}
			return res
		}
		idle := dial(t, s.addr, config)
		in := bufio.NewReader(idle)
		if res := get(idle, in, "/"); res.Close {
			t.Error("the connection ends before the shutdown")
		}
		slow := make(chan bool, 1)
		go func() {
			conn := dial(t, s.addr, config)
			get(conn, bufio.NewReader(conn), "/slow")
			slow <- true
		}()
		<-entered
		var c *rawh2.Conn
		var stream uint32
		if config != nil {
			c = rawh2.Dial(t, s.addr, 1<<20)
			c.Window(0, 1<<20)
			c.Answered("/", size)
			stream = c.Request("GET", "/slow", true)
			<-entered
		}
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(t.Context()) }()
		soon(t, "it drains", s.Draining)
		if res := get(idle, in, "/"); !res.Close {
			t.Error("the idle connection is not told")
		}
		if conn, err := net.Dial("tcp", s.addr); err == nil {
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Error("a new connection was accepted")
			}
			conn.Close()
		}
		if c != nil { // the next response tells the client to go away
			next := c.Request("GET", "/", true)
			soon(t, "the client is told to go away", c.Away)
			soon(t, "and answered", func() bool { return c.Over(next) })
		}
		select {
		case err := <-down:
			t.Fatalf("it ended with requests in progress: %v", err)
		default:
		}
		close(release)
		<-slow
		if c != nil {
			soon(t, "the stream is over", func() bool { return c.Over(stream) })
			if _, n, ended, _ := c.Received(stream); n != size || !ended {
				t.Errorf("the slow stream: %d bytes, ended %v", n, ended)
			}
		}
		if err := <-down; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// Idle connections do not hold up a shutdown without grace.
func TestShutdownWithoutGrace(t *testing.T) {
	t.Parallel()
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		for name, o := range map[string]ServerOptions{"by option": {IdleGrace: -1}, "by call": {IdleGrace: time.Hour}} {
			o.Handler = hello
			s := start(t, o, config)
			for _, sent := range []string{"", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"} {
				fmt.Fprint(dial(t, s.addr, config), sent)
			}
			soon(t, "all are there", func() bool { return s.Connections() == 3 && s.isIdle() })
			if name == "by call" {
				s.SkipIdleGrace()
			}
			done := make(chan error, 1)
			go func() { done <- s.Shutdown(t.Context()) }()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case <-time.After(20 * time.Second):
				t.Errorf("%s: it waits for idle connections", name)
			}
		}
	})
}

// A hijacked connection ends when both sides are silent for too long, and not before. A
// shutdown waits for its handler; Close does not.
func TestHijackedConnections(t *testing.T) {
	t.Parallel()
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		testdep.Undisturbed(t, brief/4, func(t testing.TB) {
			echo := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				conn, buf, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
				for {
					line, err := buf.ReadString('\n')
					if err != nil {
						return
					}
					fmt.Fprint(conn, line)
				}
			})
			tunnel := func(s running) (net.Conn, *bufio.Reader) {
				conn := dial(t, s.addr, config)
				fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
				in := bufio.NewReader(conn)
				if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != http.StatusSwitchingProtocols {
					t.Fatal(res, err)
				}
				return conn, in
			}
			talk := func(conn net.Conn, in *bufio.Reader, line string) {
				t.Helper()
				fmt.Fprint(conn, line)
				if got, err := in.ReadString('\n'); err != nil || got != line {
					t.Fatalf("%q, %v", got, err)
				}
			}
			s := start(t, ServerOptions{Handler: echo, Limits: HTTPLimits{Limits: Limits{Stall: brief}, Tunnel: lenient}}, config)
			conn, in := tunnel(s)
			// What looks like a request with a body is none here.
			talk(conn, in, "POST / HTTP/1.1\r\n")
			talk(conn, in, "Content-Length: 1000\r\n")
			talk(conn, in, "\r\n")
			for range 3 {
				time.Sleep(2 * brief) // longer than a stall
				talk(conn, in, "hello\n")
			}
			soon(t, "the silent tunnel is over", func() bool { return s.Connections() == 0 && s.isIdle() })

			s = start(t, ServerOptions{Handler: echo, IdleGrace: -1}, config)
			conn, in = tunnel(s)
			ctx, cancel := context.WithTimeout(t.Context(), brief)
			defer cancel()
			if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Shutdown with a tunnel: %v", err)
			}
			talk(conn, in, "hello\n")
			conn.Close()
			soon(t, "it is over", s.isIdle)
		})
	})
}

// A closed server answers on no listener, and returns without an error.
func TestServeAfterClose(t *testing.T) {
	s := start(t, ServerOptions{Handler: hello}, nil)
	s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l, nil); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener is open")
	}
}

// Plain HTTP to a port that speaks TLS is answered in a way that a person understands.
func TestPlainHTTPToTLS(t *testing.T) {
	s := start(t, ServerOptions{Handler: hello}, certificate(t))
	conn := dial(t, s.addr, nil)
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "HTTPS") {
		t.Errorf("%s %q", res.Status, body)
	}
}

// Unix sockets are served alike.
func TestUnixSocket(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := startOn(t, l, ServerOptions{Handler: hello, Limits: HTTPLimits{Limits: Limits{Stall: brief}, Idle: brief}}, nil)
	for _, sent := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", halfBodies["length"]} {
		conn, err := net.Dial("unix", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, sent)
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%v, %v", res, err)
		}
	}
	soon(t, "all are gone", func() bool { return s.Connections() == 0 && s.isIdle() })
}
