package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

func TestTooManyRequestsInFlight(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	g := start(t, Options{
		Upstreams: []*url.URL{serve(t, func(http.ResponseWriter, *http.Request) { entered <- true; <-release })},
		Limits:    Limits{Requests: 2},
	}, nil)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if res, _ := get(t, g.url); res.StatusCode != http.StatusOK {
				t.Errorf("one of the first two: %s", res.Status)
			}
		})
		<-entered
	}
	res, body := get(t, g.url)
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" || !strings.Contains(body, "in flight") {
		t.Errorf("%s, Retry-After %q, %s", res.Status, res.Header.Get("Retry-After"), body)
	}
	close(release)
	wg.Wait()
}

func TestTooManyConnections(t *testing.T) {
	g := start(t, Options{Upstreams: []*url.URL{serve(t, hello)}, Limits: Limits{Connections: 2}}, nil)
	ask := func() (string, error) {
		conn := dial(t, g.addr)
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(res.StatusCode, " ", res.Close, " ", res.Header.Get("Retry-After")), nil
	}
	for i, want := range []string{"200 false ", "200 false ", "503 true 1"} {
		if got, err := ask(); err != nil || got != want {
			t.Errorf("connection %d: %q, %v, want %q", i+1, got, err, want)
		}
	}
	soon(t, "the third is closed", func() bool { return g.Connections() == 2 })
	dial(t, g.addr) // these two say nothing
	dial(t, g.addr)
	soon(t, "there are four", func() bool { return g.Connections() == 4 })
	if got, err := ask(); err == nil {
		t.Errorf("connection 5 was answered %q", got)
	}
}

// While a gateway goes, what is under way is finished, and connections end after
// an answer, not before one.
func TestShutdown(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	g := before(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- true
			<-release
		}
		_, _ = io.WriteString(w, "done")
	})
	kept := dial(t, g.addr)
	in := bufio.NewReader(kept)
	ask := func() *http.Response {
		t.Helper()
		fmt.Fprint(kept, "GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n")
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		return res
	}
	if res := ask(); res.Close {
		t.Error("the connection ends before anybody wanted that")
	}
	slow := make(chan string)
	go func() {
		_, body := get(t, g.url+"/slow")
		slow <- body
	}()
	<-entered
	down := make(chan error)
	go func() { down <- shutdown(t, g, 20*time.Second) }()
	soon(t, "it drains", g.server.Draining)
	if res := ask(); res.StatusCode != http.StatusOK || !res.Close {
		t.Errorf("one more request: %s, close %v", res.Status, res.Close)
	}
	if _, err := client.Get(g.url); err == nil {
		t.Error("a new connection was taken")
	}
	close(release)
	if body := <-slow; body != "done" {
		t.Errorf("the slow request: %q", body)
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// Tunnels are waited for, until there is no more time; Close ends them.
func TestShutdownWaitsForTunnels(t *testing.T) {
	g := before(t, "", webSocket)
	conn := dial(t, g.addr)
	in := openTunnel(t, conn)
	if err := shutdown(t, g, 200*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown with an open tunnel: %v", err)
	}
	fmt.Fprint(conn, "still here")
	if _, err := in.Discard(len("still here")); err != nil {
		t.Errorf("the tunnel: %v", err)
	}
	g.Close()
	if _, err := in.ReadByte(); err == nil {
		t.Error("the tunnel survived Close")
	}
	soon(t, "nothing is in flight", func() bool { return g.InFlight() == 0 })
}

// Clients that send slowly do not hold a connection for ever.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	// They have a second for a header.
	testdep.Undisturbed(t, 250*time.Millisecond, func(t testing.TB) {
		g := start(t, Options{
			Upstreams: []*url.URL{serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })},
			Limits:    Limits{ReadHeader: time.Second, Read: lenient, Idle: 150 * time.Millisecond},
		}, nil)
		f := func(sent, want string) {
			t.Helper()
			conn := dial(t, g.addr)
			fmt.Fprint(conn, sent)
			start := time.Now()
			answer, err := io.ReadAll(conn)
			if took := time.Since(start); took > 9*time.Second || // the default for headers is ten
				!strings.HasPrefix(string(answer), want) {
				t.Errorf("%q: %q, %v after %s; want %q", sent, answer, err, took, want)
			}
		}
		f("GET / HTTP/1.1\r\nHost:", "")
		f("POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\nab", "HTTP/1.1 408 ")
		f("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 200 ")
	})
}

// A client that has ended its side is taken for gone, as by any server of net/http, but gets
// no answer rather than a wrong one.
func TestHalfClosedClient(t *testing.T) {
	g := before(t, "", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	conn := dial(t, g.addr)
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
	soon(t, "it is under way", func() bool { return g.Upstreams()[0].InFlight == 1 })
	_ = conn.(*net.TCPConn).CloseWrite()
	if answer, _ := io.ReadAll(conn); len(answer) > 0 {
		t.Errorf("it got %q", answer)
	}
}

// A gateway that is closed takes nothing more, on no listener.
func TestServeAfterClose(t *testing.T) {
	g := before(t, "", hello)
	g.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Serve(l, nil); err != nil {
		t.Errorf("Serve: %v", err)
	}
	for _, url := range []string{g.url, "http://" + l.Addr().String()} {
		if _, err := client.Get(url); err == nil {
			t.Error("a closed gateway answers")
		}
	}
}
