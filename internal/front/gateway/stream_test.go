package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/listen"
)

// zeros is a body of n bytes that takes no memory.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// peakHeap runs f and returns by how much the heap was above its start at most.
func peakHeap(f func()) int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	start, peak := stats.HeapAlloc, stats.HeapAlloc
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				runtime.GC() // how much garbage is left depends on what else the process has
				runtime.ReadMemStats(&stats)
				peak = max(peak, stats.HeapAlloc)
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	return int64(peak - start)
}

// A gigabyte with TIDEGATE_LONG=1.
func TestStreamsInConstantMemory(t *testing.T) {
	size := int64(64 << 20)
	if os.Getenv("TIDEGATE_LONG") != "" {
		size = 1 << 30
	}
	g := before(t, "", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/up":
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, err)
		case "/down":
			_, _ = io.Copy(w, zeros(size))
		case "/both":
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = io.Copy(w, r.Body)
		}
	})
	f := func(name string, run func() int64) {
		t.Helper()
		var got int64
		peak := peakHeap(func() { got = run() })
		if got != size {
			t.Errorf("%s: %d bytes came through, want %d", name, got, size)
		}
		if peak > 24<<20 {
			t.Errorf("%s: the heap grew by %d MiB", name, peak>>20)
		}
	}
	f("up, with a length", func() (n int64) {
		r := newRequest(t, http.MethodPost, g.url+"/up", zeros(size))
		r.ContentLength = size
		_, body := do(t, r)
		_, _ = fmt.Sscan(body, &n)
		return n
	})
	f("up, in chunks", func() (n int64) {
		_, body := do(t, newRequest(t, http.MethodPost, g.url+"/up", zeros(size)))
		_, _ = fmt.Sscan(body, &n)
		return n
	})
	f("down", func() int64 { return download(t, newRequest(t, http.MethodGet, g.url+"/down", nil)) })
	f("both ways at once", func() int64 {
		return download(t, newRequest(t, http.MethodPost, g.url+"/both", zeros(size)))
	})
}

func download(t *testing.T, r *http.Request) int64 {
	t.Helper()
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil {
		t.Errorf("after %d bytes: %v", n, err)
	}
	return n
}

// Each event has to be at the client before the upstream sends the next.
func TestEventsAreNotDelayed(t *testing.T) {
	next := make(chan bool)
	g := before(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	})
	res, err := client.Do(newRequest(t, http.MethodGet, g.url, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", i); err != nil || line != want {
			t.Fatalf("%q, %v, want %q", line, err, want)
		}
		_, _ = lines.ReadString('\n')
		next <- true
	}
}

// The head of a stream, and each part of it, is at the client before the upstream sends more.
func TestStreamsAreNotDelayed(t *testing.T) {
	f := func(name, method string, length int) {
		t.Run(name, func(t *testing.T) {
			next := make(chan bool)
			g := before(t, "", func(w http.ResponseWriter, _ *http.Request) {
				if length > 0 {
					w.Header().Set("Content-Length", fmt.Sprint(length))
					w.Header().Set("Content-Type", "Text/Event-Stream; charset=utf-8")
				} else {
					w.Header().Set("Content-Type", "x/y")
				}
				_ = http.NewResponseController(w).Flush()
				for range 3 {
					<-next
					_, _ = io.WriteString(w, "a")
					_ = http.NewResponseController(w).Flush()
				}
			})
			res, err := client.Do(newRequest(t, method, g.url, nil)) // it has the head
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			for range 3 {
				next <- true
				if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	f("chunks", "GET", 0)
	f("chunks through http.Transport", "POST", 0)
	f("events with a length", "GET", 3)
	f("events with a length through http.Transport", "POST", 3)
}

// A conversation over HTTP/1: what is answered to the first part of a body is
// there before the second is sent, however long the client thinks about it.
func TestConversation(t *testing.T) {
	testdep.Undisturbed(t, brief/4, func(t testing.TB) {
		g := stalling(t, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			lines := bufio.NewReader(r.Body)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				fmt.Fprint(w, strings.ToUpper(line))
				_ = http.NewResponseController(w).Flush()
			}
		})
		out, in := io.Pipe()
		go func() { _, _ = io.WriteString(in, "one\n") }()
		res, err := client.Do(newRequest(t, http.MethodPost, g.url, out))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		lines := bufio.NewReader(res.Body)
		f := func(want string) {
			t.Helper()
			if line, err := lines.ReadString('\n'); line != want {
				t.Fatalf("%q, %v, want %q", line, err, want)
			}
		}
		f("ONE\n")
		time.Sleep(3 * brief)
		_, _ = io.WriteString(in, "two\n")
		f("TWO\n")
		in.Close()
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v after the end", rest, err)
		}
	})
}

// An upstream that does not want the body answers at once.
func TestEarlyAnswer(t *testing.T) {
	g := before(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "who are you?")
	})
	conn := dial(t, g.addr)
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000000\r\n\r\n%s", bytes.Repeat([]byte("x"), 1000))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusUnauthorized || string(body) != "who are you?" || !res.Close {
		t.Errorf("%s, close %v, %q, %v", res.Status, res.Close, body, err)
	}
}

// A client that is refused and does not send its body holds nothing for long.
func TestRefusedClientThatStalls(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, listen.Linger/8, func(t testing.TB) {
		var reached atomic.Int64
		g := before(t, wireRules, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
		conn := dial(t, g.addr)
		start := time.Now()
		fmt.Fprint(conn, "POST /denied/a HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000\r\n\r\n")
		answer, err := io.ReadAll(conn) // until it is closed
		if took := time.Since(start); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 403 ")) || took > 3*listen.Linger {
			t.Errorf("after %s: %v, %.100q", took, err, answer)
		}
		if reached.Load() != 0 {
			t.Error("the upstream was reached")
		}
		soon(t, "the connection is closed", func() bool { return g.Connections() == 0 })
	})
}

// brief is how long clients may stall who do. lenient is a limit for those who are slow and
// must not exceed it, not even on a busy machine: they pause for a small part of it.
const (
	brief   = 200 * time.Millisecond
	lenient = 2 * time.Second
)

func stalling(t testing.TB, upstream http.HandlerFunc) running {
	t.Helper()
	return start(t, Options{Upstreams: []*url.URL{serve(t, upstream)}, Limits: Limits{Stall: brief}}, nil)
}

// A client that does not read on is cut off, and so is the upstream's work for it.
func TestStalledDownload(t *testing.T) {
	cut := make(chan bool)
	g := stalling(t, func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.Copy(w, zeros(1<<30))
		cut <- err != nil
	})
	conn := dial(t, g.addr)
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
	if !<-cut {
		t.Error("the upstream could send all")
	}
	soon(t, "nothing is in flight", func() bool { return g.InFlight() == 0 })
}

// A client that reads slowly, but reads, is not.
func TestSlowDownload(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, lenient/8, func(t testing.TB) {
		const size = 24 << 20
		g := start(t, Options{
			Upstreams: []*url.URL{serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, zeros(size)) })},
			Limits:    Limits{Stall: lenient},
		}, nil)
		res, err := client.Do(newRequest(t, http.MethodGet, g.url, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		n := int64(0)
		for range 12 { // longer than that in all
			part, err := io.CopyN(io.Discard, res.Body, size/12)
			if n += part; err != nil {
				t.Fatalf("after %d bytes: %v", n, err)
			}
			time.Sleep(lenient / 10)
		}
	})
}

// A client that does not send on is told so.
func TestStalledUpload(t *testing.T) {
	g := stalling(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	conn := dial(t, g.addr)
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000\r\n\r\nhello")
	answer, _ := io.ReadAll(conn)
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 408 ")) {
		t.Errorf("%q", answer)
	}
	soon(t, "nothing is in flight", func() bool { return g.InFlight() == 0 })
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}
