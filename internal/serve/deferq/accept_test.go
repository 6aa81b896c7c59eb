package deferq

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Who is over another limit cannot fill the store, and is told of that limit.
func TestOtherLimitsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules+"  - { name: daily, match: /orders, per: user, limits: 5/24h }\n  - { name: flood, match: /orders, per: ip, limits: 7/24h }\n")
		defer b.close()
		var codes []int
		for i := range 8 {
			codes = append(codes, b.order("ann", fmt.Sprint(i)).Code)
		}
		if fmt.Sprint(codes) != "[200 200 202 202 202 429 429 429]" {
			t.Errorf("%v", codes)
		}
		if w := b.order("ann", "x"); !strings.Contains(w.Body.String(), "daily") {
			t.Errorf("%s", w.Body)
		}
		codes = nil
		for i := range 4 {
			codes = append(codes, b.order("bob", fmt.Sprint(i)).Code)
		}
		if fmt.Sprint(codes) != "[200 200 429 429]" {
			t.Errorf("%v: five and two are seven", codes)
		}
		time.Sleep(10 * time.Second)
		if n := len(b.arrivals()); n != 7 {
			t.Errorf("%d came, want 7", n)
		}
	})
}

// What cannot be kept is refused as without defer.
func TestNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules)
		defer b.close()
		b.accept("ann", 0, 2)
		upgrade := newRequest("ann", "")
		upgrade.Header.Set("Upgrade", "websocket")
		grpc := newRequest("ann", "")
		grpc.Header.Set("Content-Type", "application/grpc+proto")
		large := newRequest("ann", strings.Repeat("x", 1001))
		unknown := newRequest("ann", strings.Repeat("x", 1001))
		unknown.ContentLength = -1
		for name, r := range map[string]*http.Request{"upgrade": upgrade, "large": large, "unknown": unknown} {
			if w := b.serve(r); w.Code != 429 || w.Header().Get("Retry-After") == "" {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
		if w := b.serve(grpc); w.Code == 202 {
			t.Errorf("gRPC: %d", w.Code)
		}
		b.queue.Drain(true)
		if w := b.order("ann", "x"); w.Code != 429 {
			t.Errorf("draining: %d", w.Code)
		}
		b.queue.Drain(false)
		if w := b.order("ann", strings.Repeat("x", 1000)); w.Code != 202 {
			t.Errorf("the largest: %d %s", w.Code, w.Body)
		}
		if st, _ := b.store.Stats(t.Context()); st.Waiting != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// The body is kept whole, also where a rule has read of it.
func TestBodyThatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, strings.Replace(testRules, "    limits: 2/second\n", "    limits: 2/second\n    cost: { reserve: body.n, else: 1, max: 10 }\n", 1))
		defer b.close()
		body := `{"n":2,"text":"` + strings.Repeat("x", 900) + `"}`
		for _, want := range []int{200, 202} {
			r := newRequest("ann", body)
			r.Header.Set("Content-Type", "application/json")
			if w := b.serve(r); w.Code != want {
				t.Fatalf("%d, want %d", w.Code, want)
			}
		}
		time.Sleep(3 * time.Second)
		if got := b.arrivals(); len(got) != 2 || got[0].body != body || got[1].body != body || got[1].at.Sub(got[0].at) < time.Second-time.Microsecond {
			t.Errorf("%+v", got)
		}
	})
}

// A request that costs more than the limit can ever admit is refused at once.
func TestNeverFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, strings.Replace(testRules, "    limits: 2/second\n", "    limits: 2/second\n    cost: { reserve: body.n, else: 1, max: 10 }\n", 1))
		defer b.close()
		r := newRequest("ann", `{"n":5}`)
		r.Header.Set("Content-Type", "application/json")
		if w := b.serve(r); w.Code != 429 {
			t.Errorf("%d", w.Code)
		}
	})
}
