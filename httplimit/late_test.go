package httplimit

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// foreign is a writer that is not net/http's, as every framework has one.
type foreign struct{ http.ResponseWriter }

func (f foreign) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// pending is a writer as gin has one: it keeps the status until something is written.
type pending struct {
	foreign
	status  int
	written bool
}

func (p *pending) WriteHeader(status int) { p.status = status }
func (p *pending) Status() int            { return p.status }
func (p *pending) Written() bool          { return p.written }
func (p *pending) Write(b []byte) (int, error) {
	if !p.written {
		p.written = true
		p.ResponseWriter.WriteHeader(p.status)
	}
	return p.ResponseWriter.Write(b)
}

// framework serves a request as frameworks do: the handler writes to a writer that
// the middleware was given, or to the one that it made of it, and what it leaves open is
// answered after the middleware.
type framework struct {
	around  func(http.ResponseWriter) http.ResponseWriter
	handler func(given, made http.ResponseWriter)
	after   func(made http.ResponseWriter)
}

func (f framework) serve(limit func(http.Handler) http.Handler, w http.ResponseWriter, r *http.Request) {
	given := f.around(w)
	made := given
	limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		made = w
		if f.handler != nil {
			f.handler(given, made)
		}
	})).ServeHTTP(given, r)
	if f.after != nil {
		f.after(made)
	}
	if p, ok := given.(*pending); ok && !p.written {
		p.ResponseWriter.WriteHeader(p.status)
	}
}

func writes(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(code) }
}

// What counts is the status that the client gets, whoever writes it and when.
func TestStatusOfFrameworks(t *testing.T) {
	wrapped := func(w http.ResponseWriter) http.ResponseWriter { return foreign{w} }
	keeps := func(w http.ResponseWriter) http.ResponseWriter {
		return &pending{foreign: foreign{w}, status: http.StatusOK}
	}
	toGiven := func(write func(http.ResponseWriter)) func(given, made http.ResponseWriter) {
		return func(given, _ http.ResponseWriter) { write(given) }
	}
	body := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "no")
		}
	}
	cases := map[string]struct {
		framework
		want int
	}{
		"error after the middleware":         {framework{around: wrapped, after: writes(401)}, 401},
		"error of another kind":              {framework{around: wrapped, after: writes(404)}, 404},
		"success after the middleware":       {framework{around: wrapped, after: writes(302)}, 302},
		"error with a body":                  {framework{around: wrapped, after: body(401)}, 401},
		"copied after the middleware":        {framework{around: wrapped, after: func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("hello")) }}, 200},
		"hints, then an error":               {framework{around: wrapped, after: func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(401) }}, 401},
		"nothing ever":                       {framework{around: wrapped}, 200},
		"nothing ever, writer of the server": {framework{around: func(w http.ResponseWriter) http.ResponseWriter { return w }}, 200},
		"past the middleware":                {framework{around: keeps, handler: toGiven(body(401))}, 401},
		"past it, without a body":            {framework{around: keeps, handler: toGiven(writes(401))}, 401},
		"past it, success":                   {framework{around: keeps, handler: toGiven(body(200))}, 200},
		"past it, redirect":                  {framework{around: keeps, handler: toGiven(writes(302))}, 302},
		"past it, nothing":                   {framework{around: keeps}, 200},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			limit := Gate(tidegate.NewGate(all(tidegate.Check{Key: "all", Limit: failures, Cost: 1}), store))
			for _, version := range []int{1, 2} {
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.serve(limit, w, r) }))
				srv.EnableHTTP2 = version == 2
				srv.StartTLS()
				resp, err := srv.Client().Post(srv.URL, "", nil)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				srv.Close()
				if resp.StatusCode != c.want || resp.ProtoMajor != version {
					t.Fatalf("HTTP/%d %d, want HTTP/%d %d", resp.ProtoMajor, resp.StatusCode, version, c.want)
				}
				if c.want == 401 && left(store, failures) != int64(5-version) {
					t.Errorf("HTTP/%d: %d of 5 are left after a failure", version, left(store, failures))
				}
			}
			if !testdep.Await(20*time.Second, func() bool { return c.want == 401 || left(store, failures) == 5 }) {
				t.Fatalf("%d of 5 are left, and nothing failed", left(store, failures))
			}
		})
	}
}

// A middleware between the framework and this one may end the context before the
// framework answers, and so may the client.
func TestLateStatusAfterTheContext(t *testing.T) {
	f := func(name string, want int64, after func(w http.ResponseWriter)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			store := memory.New()
			limit := Gate(tidegate.NewGate(all(tidegate.Check{Key: "all", Limit: failures, Cost: 1}), store))
			ctx, cancel := context.WithCancel(context.Background())
			r := httptest.NewRequest(http.MethodPost, "/login", nil).WithContext(ctx)
			framework{
				around: func(w http.ResponseWriter) http.ResponseWriter { return foreign{w} },
				after: func(w http.ResponseWriter) {
					cancel()
					synctest.Wait()
					after(w)
				},
			}.serve(limit, httptest.NewRecorder(), r)
			if n := left(store, failures); name != "nothing" && n != want {
				t.Errorf("%s: %d of 5 are left, want %d", name, n, want)
			}
			time.Sleep(2 * lateness)
			synctest.Wait()
			if n := left(store, failures); n != want {
				t.Errorf("%s: %d of 5 are left in the end, want %d", name, n, want)
			}
		})
	}
	f("failure", 4, writes(401))
	f("success", 5, writes(302))
	f("nothing", 5, func(http.ResponseWriter) {})
}

// A handler that a test calls itself has a context without an end.
func TestLateStatusWithoutAnEnd(t *testing.T) {
	f := func(after func(http.ResponseWriter), soon, finally int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			store := memory.New()
			slots := tidegate.Slots(1, time.Minute)
			limit := Gate(tidegate.NewGate(all(tidegate.Check{Key: "all", Limit: failures, Cost: 1}, tidegate.Check{Key: "all", Limit: slots, Cost: 1}), store))
			framework{
				around: func(w http.ResponseWriter) http.ResponseWriter { return foreign{w} },
				after:  after,
			}.serve(limit, httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/login", nil))
			if n := left(store, failures); n != soon {
				t.Errorf("%d of 5 are left, want %d", n, soon)
			}
			time.Sleep(2 * lateness)
			synctest.Wait()
			if n := left(store, failures); n != finally {
				t.Errorf("%d of 5 are left in the end, want %d", n, finally)
			}
			if left(store, slots) != 1 {
				t.Error("the slot is taken after the request")
			}
		})
	}
	f(writes(401), 4, 4)
	f(writes(200), 5, 5)
	f(nil, 4, 5)
}

// gin's Stream asks for an http.CloseNotifier, and panics when it gets none.
func TestWritersNotifyOfClosing(t *testing.T) {
	login := tidegate.Check{Key: "all", Limit: failures, Cost: 1}
	slot := tidegate.Check{Key: "all", Limit: tidegate.Slots(1, time.Minute), Cost: 1}
	for _, checks := range [][]tidegate.Check{{login}, {slot}, {login, slot}} {
		left := make(chan bool)
		srv := httptest.NewServer(Gate(tidegate.NewGate(all(checks...), memory.New()))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			closed := w.(interface{ CloseNotify() <-chan bool }).CloseNotify()
			_ = http.NewResponseController(w).Flush()
			select {
			case <-closed:
				left <- true
			case <-time.After(20 * time.Second):
				left <- false
			}
		})))
		resp, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		srv.CloseClientConnections()
		if !<-left {
			t.Error("nobody was told that the client left")
		}
		srv.Close()
	}
}
