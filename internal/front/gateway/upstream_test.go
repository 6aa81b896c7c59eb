package gateway

import (
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

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// deadURL is of a port that nobody listens on.
func deadURL(t testing.TB) *url.URL {
	t.Helper()
	u, _ := heldURL(t)
	return u
}

// heldURL is as deadURL, with what listens on the port in the end: until then it is that of
// a connection, and nobody else gets it.
func heldURL(t testing.TB) (u *url.URL, listen func() net.Listener) {
	t.Helper()
	conn, _ := connected(t)
	u = parseURL(t, "http://"+conn.LocalAddr().String())
	return u, func() (l net.Listener) {
		t.Helper()
		_ = conn.SetLinger(0) // or the port would be taken for a while
		conn.Close()
		soon(t, "the port is free again", func() (ok bool) {
			var err error
			l, err = net.Listen("tcp", u.Host)
			return err == nil
		})
		return l
	}
}

// tries collects what an Observer is told.
type tries struct {
	mu   sync.Mutex
	all  []Try
	done []accesslog.Record
}

func (o *tries) Tried(try Try) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, try)
}

func (o *tries) Done(r *accesslog.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = append(o.done, *r)
}

func (o *tries) got() ([]Try, []accesslog.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]Try(nil), o.all...), append([]accesslog.Record(nil), o.done...)
}

// Nothing was sent to an upstream that cannot be connected to, so any request may
// go to another, its body included.
func TestUnreachableUpstreamIsSkipped(t *testing.T) {
	// It is tried again after an ejection of a second, more or less.
	testdep.Undisturbed(t, firstEjection/4, func(t testing.TB) {
		var o tries
		alive, dead := serve(t, echo), deadURL(t)
		g := start(t, Options{Upstreams: []*url.URL{dead, alive}, Observer: &o}, nil)
		for i := range 20 {
			method, body := http.MethodGet, ""
			if i%2 == 0 {
				method, body = http.MethodPost, strings.Repeat("b", i)
			}
			res, got := do(t, newRequest(t, method, fmt.Sprintf("%s/%d", g.url, i), strings.NewReader(body)))
			if want := fmt.Sprintf("%s /%d body %q trailer map[]\n", method, i, body); res.StatusCode != http.StatusOK || got != want {
				t.Errorf("%s: %q, want %q", res.Status, got, want)
			}
		}
		var all []Try
		soon(t, "all are recorded", func() bool {
			var done []accesslog.Record
			all, done = o.got()
			return len(done) == 20
		})
		failures, retries := 0, 0
		for _, try := range all {
			if try.Err != nil {
				failures++
				if try.Upstream != "http://"+dead.Host || try.Status != 0 {
					t.Errorf("failed: %+v", try)
				}
			}
			if try.Retry {
				retries++
			}
		}
		if failures != 3 || retries != 3 {
			t.Errorf("%d failures and %d retries, want 3: it is ejected after them", failures, retries)
		}
		if states := g.Upstreams(); states[0].Usable || !states[1].Usable {
			t.Errorf("states %+v", states)
		}
	})
}

// breaking answers some paths by closing the connection, after reading the head.
func breaking(t *testing.T, reached *atomic.Int64) *url.URL {
	return serve(t, func(http.ResponseWriter, *http.Request) {
		reached.Add(1)
		panic(http.ErrAbortHandler)
	})
}

func TestRetryOnlyWhereSafe(t *testing.T) {
	f := func(method, body string, header http.Header, want int, tries int64) {
		t.Helper()
		var broken atomic.Int64
		g := start(t, Options{Upstreams: []*url.URL{breaking(t, &broken), breaking(t, &broken)}}, nil)
		r := newRequest(t, method, g.url, strings.NewReader(body))
		for name, values := range header {
			r.Header[name] = values
		}
		res, text := do(t, r)
		if res.StatusCode != want || broken.Load() != tries {
			t.Errorf("%s %q: %s after %d tries, want %d after %d; %s", method, body, res.Status, broken.Load(), want, tries, text)
		}
	}
	f(http.MethodGet, "", nil, http.StatusBadGateway, 1)
	f(http.MethodPut, "", nil, http.StatusBadGateway, 1)
	f(http.MethodDelete, "", nil, http.StatusBadGateway, 1)
	f(http.MethodPost, "", nil, http.StatusBadGateway, 1)
	f(http.MethodPatch, "", nil, http.StatusBadGateway, 1)
	f(http.MethodPut, "body", nil, http.StatusBadGateway, 1)
}

// The one upstream there is closed a connection that was idle: not its fault, and
// not the client's.
func TestStaleConnection(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(hello))
	defer s.Close()
	g := start(t, Options{Upstreams: []*url.URL{parseURL(t, s.URL)}}, nil)
	for range 10 {
		if res, _ := get(t, g.url); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		s.CloseClientConnections()
	}
}

// The client's wish for its own connection does not cost one to the upstream.
func TestUpstreamConnectionsOutliveClients(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		var mu sync.Mutex
		peers := map[string]bool{}
		g := before(t, "", func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			peers[r.RemoteAddr] = true
		})
		const asked = 10
		for range asked {
			r := newRequest(t, method, g.url, nil)
			r.Close = true
			do(t, r)
			soon(t, "it is over", func() bool { return g.InFlight() == 0 })
		}
		mu.Lock()
		if len(peers) == asked {
			t.Errorf("%s: no connection was used again", method)
		}
		mu.Unlock()
	}
}

// An upstream that is down is ejected, and found again.
func TestEjectionAndRecovery(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, firstEjection/4, func(t testing.TB) {
		var log logBuffer
		u, listen := heldURL(t)
		var mu sync.Mutex
		var told []string
		var o tries
		other := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "other") })
		g := start(t, Options{Upstreams: []*url.URL{u, other}, Log: log.logger(), Observer: &o, Usable: func(upstream string, usable bool) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprint(upstream == "http://"+u.Host, usable))
		}}, nil)
		failures := func() (n int) {
			all, _ := o.got()
			for _, try := range all {
				if try.Err != nil {
					n++
				}
			}
			return n
		}
		soon(t, "it is ejected", func() bool {
			if res, body := get(t, g.url); res.StatusCode != http.StatusOK || body != "other" {
				t.Fatalf("%s %q", res.Status, body)
			}
			return !g.Upstreams()[0].Usable
		})
		if n := failures(); n != 3 {
			t.Errorf("ejected after %d failures, want 3", n)
		}
		l := listen()
		go func() { _ = http.Serve(l, http.HandlerFunc(hello)) }()
		defer l.Close()
		soon(t, "it is back", func() bool {
			_, body := get(t, g.url)
			return body == "hello"
		})
		mu.Lock()
		defer mu.Unlock()
		if first, last := told[0], told[len(told)-1]; first != "true false" || last != "true true" {
			t.Errorf("told %q", told)
		}
		text := strings.Join(log.lines(), "\n")
		for _, want := range []string{"upstream fails; it is ejected", "upstream is back"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in the log:\n%s", want, text)
			}
		}
	})
}

func TestUpstreamTimeout(t *testing.T) {
	release := make(chan bool)
	g := start(t, Options{
		Upstreams: []*url.URL{serve(t, func(http.ResponseWriter, *http.Request) { <-release })},
		Limits:    Limits{Upstream: 50 * time.Millisecond},
	}, nil)
	defer close(release)
	res, body := get(t, g.url)
	if res.StatusCode != http.StatusGatewayTimeout || !strings.Contains(body, "did not answer in time") {
		t.Errorf("%s %s", res.Status, body)
	}
}

// An upstream whose health probe fails gets no requests, even if it
// answers them.
func TestActiveHealth(t *testing.T) {
	var sick atomic.Bool
	sick.Store(true)
	asked := make(chan http.Header, 100)
	shaky := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			select {
			case asked <- r.Header:
			default:
			}
			if sick.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		_, _ = io.WriteString(w, "shaky")
	})
	g := start(t, Options{
		Upstreams: []*url.URL{shaky, serve(t, hello)},
		Health:    Health{Path: "/healthz", Every: 10 * time.Millisecond, UnhealthyAfter: 2},
	}, nil)
	if h := <-asked; h.Get("User-Agent") != "tidegate-health" {
		t.Errorf("asked with %v", h)
	}
	soon(t, "both are out of order", func() bool {
		states := g.Upstreams() // hello answers 200 to everything
		return !states[0].Usable && states[1].Usable
	})
	for range 20 {
		if _, body := get(t, g.url); body != "hello" {
			t.Fatalf("%q answered", body)
		}
	}
	sick.Store(false)
	soon(t, "it is back", func() bool {
		_, body := get(t, g.url)
		return body == "shaky"
	})
}

// Whoever has least to do gets the next; a stuck upstream gets no more than its
// share of the first.
func TestLeastInFlight(t *testing.T) {
	release := make(chan bool)
	var stuck, served atomic.Int64
	g := start(t, Options{Upstreams: []*url.URL{
		serve(t, func(http.ResponseWriter, *http.Request) { stuck.Add(1); <-release }),
		serve(t, hello),
	}}, nil)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { get(t, g.url); served.Add(1) })
		soon(t, "it is served, or stuck", func() bool { return stuck.Load()+served.Load() == int64(i+1) })
	}
	if n := stuck.Load(); n != 1 {
		t.Errorf("%d requests are stuck, want 1", n)
	}
	close(release)
	wg.Wait()
}

// With a path in the URL of the upstream, everything is below it.
func TestUpstreamBelowPath(t *testing.T) {
	f := func(base, path, want string) {
		t.Helper()
		u := serve(t, echo)
		u = u.JoinPath(base)
		g := start(t, Options{Upstreams: []*url.URL{deadURL(t), u}, Paths: Paths{EncodedSlash: true}}, nil)
		for range 4 { // also after a failed try
			if _, body := get(t, g.url+path); body != "GET "+want+" body \"\" trailer map[]\n" {
				t.Errorf("%s below %s: %s, want %s", path, base, body, want)
			}
		}
	}
	f("/", "/a?b", "/a?b")
	f("/base", "/a", "/base/a")
	f("/base/", "/a%2Fb/", "/base/a%2Fb/")
	f("/b%2Fc", "/a", "/b%2Fc/a")
	f("/base", "", "/base/")
}

func TestOptionsSayWhatIsWrong(t *testing.T) {
	f := func(o Options, want string) {
		t.Helper()
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	u := func(s string) Options { return Options{Upstreams: []*url.URL{parseURL(t, s)}} }
	f(Options{}, "no upstream")
	f(Options{Upstreams: []*url.URL{nil}}, "an upstream is nil")
	f(u("ftp://a"), `not "ftp"`)
	f(u("http:///a"), "names no host")
	f(u("http://u:secret@a"), "u:xxxxx@a")
	f(u("http://a?x=1"), "leave out the rest")
	o := u("http://a")
	o.Health.Path = "healthz"
	f(o, "start with a slash")
}

// Every request that is told to be at an upstream has one first try that is told of, when its answer begins or
// does not come: streams and tunnels that are open are answered.
func TestFirstTriesAreTold(t *testing.T) {
	f := func(what string, more int, request func(g running) (end func()), upstreams ...*url.URL) {
		t.Helper()
		var o tries
		var begun, open atomic.Int64
		g := start(t, Options{Upstreams: upstreams, Observer: &o, Inflight: func(delta int) {
			if open.Add(int64(delta)); delta > 0 {
				begun.Add(1)
			}
		}}, nil)
		end := request(g)
		first := func() (n int64) {
			all, _ := o.got()
			for _, try := range all {
				if !try.Retry {
					n++
				}
			}
			return n
		}
		soon(t, what+": first tries are told", func() bool { return begun.Load() == 1 && first() == 1 })
		soon(t, fmt.Sprintf("%s: %d open", what, more), func() bool { return open.Load() == int64(more) })
		end()
		soon(t, what+": it is over", func() bool { return open.Load() == 0 })
		if begun.Load() != 1 || first() != 1 {
			t.Errorf("%s: %d begun, %d first tries", what, begun.Load(), first())
		}
	}
	ask := func(method, path string) func(g running) func() {
		return func(g running) func() {
			var body io.Reader
			if method == http.MethodPost {
				body = strings.NewReader("hello")
			}
			res, err := client.Do(newRequest(t, method, g.url+path, body))
			if err != nil {
				t.Fatal(err)
			}
			return func() { res.Body.Close() }
		}
	}
	stream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		f(method+" answered", 0, ask(method, "/"), stream)
		f(method+" stream", 1, ask(method, "/stream"), stream)
		f(method+" failed", 0, ask(method, "/"), deadURL(t))
		f(method+" on another", 0, ask(method, "/"), deadURL(t), stream)
	}
	f("tunnel", 1, func(g running) func() {
		conn, err := net.Dial("tcp", g.addr)
		if err != nil {
			t.Fatal(err)
		}
		openTunnel(t, conn)
		return func() { conn.Close() }
	}, serve(t, webSocket))
}
