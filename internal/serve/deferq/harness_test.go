package deferq

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// bench is a queue with an upstream that is a function, and the middleware of a gateway before it.
type bench struct {
	t        testing.TB
	file     string
	options  FileOptions
	live     *rules.Live
	counters tidegate.Store
	store    Store
	queue    *Queue
	handler  http.Handler
	log      bytes.Buffer

	mu   sync.Mutex
	got  []arrival
	send func(*http.Request) (*http.Response, bool, error) // nil answers 200
}

// arrival is a request at the upstream.
type arrival struct {
	at     time.Time
	key    string // X-User
	body   string
	header http.Header
}

const testRules = `version: 1
identify:
  user: client header X-User
rules:
  - name: orders
    match: POST /orders
    per: user
    limits: 2/second
    defer: { keep: 1h, places: 100, per_key: 40, max_body: 1KB }
`

func newBench(t testing.TB, text string, change ...func(*Options)) *bench {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(text), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		t: t, file: filepath.Join(t.TempDir(), "deferred"), live: rules.NewLive(set), counters: memory.New(),
		options: FileOptions{Max: 1 << 20, Results: time.Hour, Dead: 24 * time.Hour},
	}
	b.open(change...)
	return b
}

// open opens the file and begins to work.
func (b *bench) open(change ...func(*Options)) {
	b.t.Helper()
	log := slog.New(slog.NewTextHandler(&b.log, nil))
	b.options.Log = log
	store, err := OpenFile(b.file, b.options)
	if err != nil {
		b.t.Fatal(err)
	}
	b.use(store, log, change...)
}

func (b *bench) use(store Store, log *slog.Logger, change ...func(*Options)) {
	b.store = store
	o := Options{
		Store: store, Max: b.options.Max, Rules: b.live, Counters: b.counters,
		Identify: func(r *http.Request) map[string]string { return b.live.Who(httplimit.Options{}.Request(r)) },
		Send:     b.upstream, Path: "/deferred/", Timeout: 10 * time.Second, Log: log,
	}
	for _, f := range change {
		f(&o)
	}
	b.queue = New(o)
	layer := &Layer{Backend: chain.Adapt(b.counters), Busy: store.Busy}
	front := httplimit.Options{OnRefusal: func(w http.ResponseWriter, r *http.Request, d tidegate.Decision) bool {
		return b.queue.Keep(w, r, r.Header.Clone(), &d)
	}}
	b.handler = front.Gate(tidegate.NewGate(b.live, layer))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, _, err := b.upstream(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(res.StatusCode)
	}))
}

// close ends the work, with attempts cut off.
func (b *bench) close() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.queue.Close(ctx); err != nil {
		b.t.Error(err)
	}
}

// upstream notes a request, and answers it.
func (b *bench) upstream(r *http.Request) (*http.Response, bool, error) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	b.got = append(b.got, arrival{time.Now(), r.Header.Get("X-User"), string(body), r.Header.Clone()})
	send := b.send
	b.mu.Unlock()
	if send != nil {
		return send(r)
	}
	return answered(200, "done "+string(body)), true, nil
}

func answered(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(body))}
}

// always answers every request with a status.
func always(status int, body string) func(*http.Request) (*http.Response, bool, error) {
	return func(*http.Request) (*http.Response, bool, error) { return answered(status, body), true, nil }
}

func (b *bench) setSend(f func(*http.Request) (*http.Response, bool, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.send = f
}

func (b *bench) arrivals() []arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]arrival(nil), b.got...)
}

// order sends an order of somebody.
func (b *bench) order(user, body string) *httptest.ResponseRecorder {
	return b.ask("POST", "/orders", user, body)
}

func (b *bench) ask(method, path, user, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if user != "" {
		r.Header.Set("X-User", user)
	}
	return b.serve(r)
}

// status asks how a request is.
func (b *bench) status(user, location string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", location, nil)
	r.Header.Set("X-User", user)
	w := httptest.NewRecorder()
	b.queue.ServeHTTP(w, r)
	return w
}

// read is the status of a request.
func (b *bench) read(user, location string) (s Status) {
	b.t.Helper()
	if w := b.status(user, location); w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &s) != nil {
		b.t.Fatalf("%s: %d %s", location, w.Code, w.Body)
	}
	return s
}

// accept sends n orders that are more than the limit has room for, and returns the places of those that
// were kept.
func (b *bench) accept(user string, from, n int) (locations []string) {
	b.t.Helper()
	for i := from; i < from+n; i++ {
		w := b.order(user, fmt.Sprint(i))
		switch w.Code {
		case 200:
		case 202:
			locations = append(locations, w.Header().Get("Location"))
		default:
			b.t.Fatalf("order %d of %s: %d %s", i, user, w.Code, w.Body)
		}
	}
	return locations
}

// newRequest returns an order.
func newRequest(user, body string) *http.Request {
	r := httptest.NewRequest("POST", "/orders", strings.NewReader(body))
	r.Header.Set("X-User", user)
	return r
}

func (b *bench) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}
