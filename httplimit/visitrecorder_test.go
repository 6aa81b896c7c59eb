package httplimit

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// all holds every request to the same checks.
func all(checks ...tidegate.Check) tidegate.Matcher {
	return matchFunc(func(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check { return append(dst, checks...) })
}

// failures is a limit of 5 to which only failed logins are charged.
var failures = tidegate.MustLimit(tidegate.Spec{Name: "login", Events: 5, Period: time.Hour, Terms: &tidegate.Terms{
	AtEnd: tidegate.AtEnd{Counts: []tidegate.StatusRange{{From: 401, To: 401}}},
}})

func left(store tidegate.Store, l *tidegate.Limit) int64 {
	return tidegate.New(store, l).Peek(context.Background(), "all").Remaining
}

func TestChargesCountedByStatus(t *testing.T) {
	gone, leave := context.WithCancel(context.Background())
	leave()
	f := func(name string, counted bool, ctx context.Context, handler http.HandlerFunc) {
		t.Helper()
		store := memory.New()
		h := Gate(tidegate.NewGate(all(tidegate.Check{Key: "all", Limit: failures, Cost: 1}), store))(handler)
		func() {
			defer func() { _ = recover() }()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/login", nil).WithContext(ctx))
		}()
		if n := left(store, failures); n == 5 == counted {
			t.Errorf("%s: %d of 5 are left", name, n)
		}
	}
	here := t.Context()
	status := func(codes ...int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for _, c := range codes {
				w.WriteHeader(c)
			}
		}
	}
	f("200", false, here, status(200))
	f("401", true, here, status(401))
	f("302", false, here, status(302))
	f("early hints, then 401", true, here, status(103, 401))
	f("the first of two", false, here, status(200, 401))
	f("nothing said", false, here, status())
	f("body", false, here, hello)
	f("string", false, here, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello"); w.WriteHeader(401) })
	f("empty body", false, here, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil); w.WriteHeader(401) })
	f("copy", false, here, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, strings.NewReader("hello"))
		w.WriteHeader(401)
	})
	f("copy of nothing", true, here, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.(io.ReaderFrom).ReadFrom(new(bytes.Buffer))
		w.WriteHeader(401)
	})
	f("flush", false, here, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		w.WriteHeader(401)
	})
	f("panic", true, here, func(http.ResponseWriter, *http.Request) { panic("oh") })
	f("panic after the answer", false, here, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); panic("oh") })
	f("client gone, nothing said", true, gone, status())
	f("client gone, then a proxy's 502", true, gone, status(502))
	f("client gone, then a body", true, gone, hello)
	f("client gone, then a copy", true, gone, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, strings.NewReader("hello"))
	})
}

// A hijacked connection has no status that we know of.
func TestHijackedConnectionStaysCharged(t *testing.T) {
	f := func(checks ...tidegate.Check) {
		t.Helper()
		store := memory.New()
		closed := make(chan bool)
		srv := httptest.NewServer(Gate(tidegate.NewGate(all(checks...), store))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			conn.Close()
			close(closed)
		})))
		resp, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		<-closed
		srv.Close()
		if n := left(store, failures); n != 4 {
			t.Errorf("%d of 5 are left, want 4", n)
		}
		if slots := checks[len(checks)-1].Limit; slots != failures && left(store, slots) != 1 {
			t.Error("the slot is taken after the connection was closed")
		}
	}
	login := tidegate.Check{Key: "all", Limit: failures, Cost: 1}
	f(login)
	f(login, tidegate.Check{Key: "all", Limit: tidegate.Slots(1, time.Minute), Cost: 1})
}

func TestEstimateIsSettledByAResponseHeader(t *testing.T) {
	f := func(settle, name, value string, want int64) {
		t.Helper()
		store := memory.New()
		l := tidegate.MustLimit(tidegate.Spec{Name: "chat", Events: 100, Period: time.Hour, Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Settle: settle}}})
		h := Gate(tidegate.NewGate(all(tidegate.Check{Key: "all", Limit: l, Cost: 60, Estimate: true}), store))(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(name, value)
				w.WriteHeader(500) // whatever came of it, that is what it cost
			}))
		get(h)
		if n := left(store, l); n != want {
			t.Errorf("%s with %s: %s: %d of 100 are left, want %d", settle, name, value, n, want)
		}
	}
	f("response.header.X-Cost", "X-Cost", "25", 75)
	f("response.header.x-cost", "X-Cost", "70", 30)
	f("response.header.X-Cost", "X-Cost", "0", 100)
	f("response.header.X-Cost", "X-Other", "25", 40)
	f("response.header.X-Cost", "X-Cost", "", 40)
	f("response.header.X-Cost", "X-Cost", "-5", 40)
	f("response.header.X-Cost", "X-Cost", "2.5", 40)
	f("response.header.X-Cost", "X-Cost", "99999999999999999999", 40)
	f("response.body.cost", "cost", "25", 40) // not ours to read
}

// What the writer can do, it can do behind a gate that has to know the status.
func TestTheWriterIsWrappedOnlyForWhatHasToBeKnown(t *testing.T) {
	f := func(l *tidegate.Limit, w http.ResponseWriter, wrapped, flushes, hijacks bool) {
		t.Helper()
		var got http.ResponseWriter
		h := Gate(tidegate.NewGate(all(tidegate.Check{Key: "all", Limit: l, Cost: 1}), memory.New()))(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w }))
		h.ServeHTTP(w, from("192.0.2.1:1"))
		if got != w != wrapped {
			t.Errorf("%s: the handler got a %T", l, got)
		}
		_, canFlush := got.(http.Flusher)
		_, canBeHijacked := got.(http.Hijacker)
		if canFlush != flushes || canBeHijacked != hijacks {
			t.Errorf("%s, %T: flushes %t, hijacks %t", l, got, canFlush, canBeHijacked)
		}
	}
	hour, slots := tidegate.PerHour(5), tidegate.Slots(1, time.Minute)
	estimate := tidegate.MustLimit(tidegate.Spec{Events: 5, Period: time.Hour, Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Settle: "response.header.X-Cost"}}})
	recorder := httptest.NewRecorder()
	both := hijackable{ResponseWriter: recorder}
	f(hour, recorder, false, true, false)
	f(estimate, recorder, false, true, false)
	f(slots, recorder, false, true, false)
	f(slots, flushable{both, recorder}, true, true, true)
	f(failures, recorder, true, true, false)
	f(failures, hijackable{ResponseWriter: recorder}, true, false, true)
	f(failures, flushable{both, recorder}, true, true, true)
	f(failures, bare{http.Header{}}, true, false, false)
}

type flushable struct {
	hijackable
	http.Flusher
}
