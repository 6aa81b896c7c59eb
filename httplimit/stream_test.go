package httplimit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// both runs a test behind limits and gates that look at a response more or less
// closely, over HTTP/1 and 2.
func both(t *testing.T, handler http.HandlerFunc, check func(t *testing.T, srv *httptest.Server)) {
	slots := tidegate.Slots(5, time.Minute)
	events := tidegate.New(&script{}, tidegate.PerMinute(100))
	byStatus, bySlot := tidegate.Check{Key: "all", Limit: failures, Cost: 1}, tidegate.Check{Key: "all", Limit: slots, Cost: 1}
	limits := map[string]func(http.Handler) http.Handler{
		"events":           Limit(events, IP()),
		"slots":            Limit(tidegate.New(new(slotStore), slots), IP()),
		"status":           Gate(tidegate.NewGate(all(byStatus), memory.New())),
		"slots and status": Gate(tidegate.NewGate(all(byStatus, bySlot), memory.New())),
	}
	for name, limit := range limits {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s over HTTP %d", name, version), func(t *testing.T) {
				srv := httptest.NewUnstartedServer(limit(handler))
				srv.EnableHTTP2 = version == 2
				srv.StartTLS()
				defer srv.Close()
				check(t, srv)
			})
		}
	}
}

func TestStreamingKeepsWorking(t *testing.T) {
	next := make(chan bool)
	both(t, func(w http.ResponseWriter, _ *http.Request) {
		flusher := w.(http.Flusher)
		for i := range 3 {
			fmt.Fprintf(w, "event %d\n", i)
			flusher.Flush()
			<-next // only when the client has read it: nothing is held back
		}
	}, func(t *testing.T, srv *httptest.Server) {
		resp, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.Header.Get("RateLimit") == "" {
			t.Error("no RateLimit header on a stream")
		}
		lines := bufio.NewScanner(resp.Body)
		for i := range 3 {
			if !lines.Scan() || lines.Text() != fmt.Sprintf("event %d", i) {
				t.Fatalf("line %d is %q, %v", i, lines.Text(), lines.Err())
			}
			next <- true
		}
	})
}

func TestResponseControllerKeepsWorking(t *testing.T) {
	both(t, func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		for what, err := range map[string]error{
			"read deadline":  c.SetReadDeadline(time.Now().Add(time.Minute)),
			"write deadline": c.SetWriteDeadline(time.Now().Add(time.Minute)),
			"full duplex":    c.EnableFullDuplex(),
			"flush":          c.Flush(),
		} {
			if err != nil {
				fmt.Fprintln(w, what, err)
			}
		}
	}, func(t *testing.T, srv *httptest.Server) {
		resp, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, _ := io.ReadAll(resp.Body); len(got) > 0 && (resp.ProtoMajor == 1 || strings.Count(string(got), "\n") > 1) {
			t.Errorf("HTTP/%d: %s", resp.ProtoMajor, got)
		}
	})
}

func TestCopyingKeepsWorking(t *testing.T) {
	both(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "got ")
		_, _ = io.Copy(w, r.Body)
	}, func(t *testing.T, srv *httptest.Server) {
		resp, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader("what you sent"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, _ := io.ReadAll(resp.Body); string(got) != "got what you sent" {
			t.Errorf("%q", got)
		}
	})
}

func TestTheWriterIsWrappedOnlyForSlots(t *testing.T) {
	var got http.ResponseWriter
	keep := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w })
	r := from("192.0.2.1:1")
	w := httptest.NewRecorder() // can flush, cannot be hijacked
	Limit(tidegate.New(&script{}, tidegate.PerMinute(100)), IP())(keep).ServeHTTP(w, r)
	if got != w {
		t.Errorf("events: the handler got a %T", got)
	}
	slots := Limit(tidegate.New(new(slotStore), tidegate.Slots(1, time.Minute)), IP())(keep)
	slots.ServeHTTP(w, r)
	if got != w {
		t.Errorf("slots that cannot be hijacked: the handler got a %T", got)
	}
	slots.ServeHTTP(hijackable{ResponseWriter: bare{http.Header{}}}, r)
	if _, ok := got.(http.Flusher); ok {
		t.Error("the handler was promised a Flusher that is none")
	}
	slots.ServeHTTP(unwraps{hijackable{ResponseWriter: w}}, r)
	if _, ok := got.(http.Hijacker); !ok {
		t.Error("a hijacker inside a wrapper was overlooked")
	}
}

type hijackable struct {
	http.ResponseWriter
	http.Hijacker
}

type unwraps struct{ http.ResponseWriter }

func (u unwraps) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// cannotFlush is a writer whose client is gone, which only Flush tells.
type cannotFlush struct {
	http.ResponseWriter
	err error
}

func (c cannotFlush) FlushError() error { return c.err }

// flusherToo is one that can also be flushed in the old way.
type flusherToo struct{ cannotFlush }

func (f flusherToo) Flush() {}

// The error of a flush is told to whoever asks for it, and a flush that has sent the headers has
// answered with 200: what the handler then wants to answer does not count.
func TestErrorsOfFlush(t *testing.T) {
	gone := errors.New("gone")
	bySlot := tidegate.Check{Key: "all", Limit: tidegate.Slots(5, time.Minute), Cost: 1}
	byStatus := tidegate.Check{Key: "all", Limit: failures, Cost: 1}
	f := func(name string, err error, counts bool, checks ...tidegate.Check) {
		t.Helper()
		plain := cannotFlush{bare{http.Header{}}, err}
		type hijacker struct {
			cannotFlush
			http.Hijacker
		}
		type hijackFlusher struct {
			flusherToo
			http.Hijacker
		}
		for _, w := range []http.ResponseWriter{
			plain,
			flusherToo{plain},
			unwraps{plain},
			hijacker{cannotFlush: plain},
			hijackFlusher{flusherToo: flusherToo{plain}},
			unwraps{hijacker{cannotFlush: plain}},
		} {
			store := memory.New()
			gate := tidegate.NewGate(all(checks...), store)
			Gate(gate)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if got := http.NewResponseController(w).Flush(); !errors.Is(got, err) {
					t.Errorf("%s: flush of a %T: %v, want %v", name, w, got, err)
				}
				w.WriteHeader(http.StatusUnauthorized)
			})).ServeHTTP(w, from("192.0.2.1:1"))
			d, takeErr := store.Take(t.Context(), []tidegate.Check{{Key: "all", Limit: failures}}, 1)
			if counted := d.Remaining < failures.Capacity(); takeErr != nil || counted != counts {
				t.Errorf("%s: %T: the failure counted: %v, want %v", name, w, counted, counts)
			}
		}
	}
	for _, err := range []error{nil, gone} {
		f("slots", err, false, bySlot)
		f("status", err, false, byStatus)
		f("slots and status", err, false, bySlot, byStatus)
	}
	f("status", http.ErrNotSupported, true, byStatus)
}

// A WebSocket through a reverse proxy is the hardest user of a hijacked
// connection: the proxy copies both ways and passes half-closes on.
func TestUpgradeThroughAReverseProxy(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := buf.ReadString('\n')
		_, _ = io.WriteString(conn, "echo "+line)
	}))
	defer backend.Close()
	target, _ := url.Parse(backend.URL)
	proxy := httputil.NewSingleHostReverseProxy(target)
	srv, store := slotServer(t, false, proxy.ServeHTTP)
	srv.Client().Timeout = 0 // with one, the answer's body cannot be written to

	req, _ := http.NewRequest(http.MethodGet, srv.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("status %d", resp.StatusCode)
	}
	if store.inUse() != 1 {
		t.Errorf("%d slots are in use", store.inUse())
	}
	conn := resp.Body.(io.ReadWriteCloser)
	_, _ = io.WriteString(conn, "hello\n")
	if got, _ := bufio.NewReader(conn).ReadString('\n'); got != "echo hello\n" {
		t.Errorf("said %q", got)
	}
	if rest, err := io.ReadAll(conn); len(rest) > 0 || err != nil {
		t.Errorf("after the backend's half-close: %q, %v", rest, err)
	}
	conn.Close()
	waitFor(t, "the slot to come free", func() bool { return store.inUse() == 0 })
}
