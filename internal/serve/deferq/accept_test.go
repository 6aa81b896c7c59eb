package deferq

import (
	"fmt"
	"io"
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

// A body takes what has come of it: neither the length that a client announces and does not send, nor one that it
// does not tell, keeps others out.
func TestSlowBodies(t *testing.T) {
	for _, length := range []int64{64 << 20, -1} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, strings.Replace(testRules, "max_body: 1KB", "max_body: 64MiB", 1))
			b.close()
			b.options.Max = 1 << 30
			b.open()
			defer b.close()
			b.accept("ann", 0, 2)
			b.accept("bob", 0, 2)
			body, client := io.Pipe()
			slow := newRequest("ann", "")
			slow.Body, slow.ContentLength = body, length
			answer := make(chan int, 1)
			go func() { answer <- b.serve(slow).Code }()
			_, _ = client.Write([]byte("x"))
			synctest.Wait()
			for i := range 3 {
				if w := b.order("bob", fmt.Sprint(i+2)); w.Code != 202 {
					t.Errorf("while a body of %d is read, another is answered %d", length, w.Code)
				}
			}
			_ = client.Close()
			if code := <-answer; code != 202 {
				t.Errorf("a body of %d is answered %d", length, code)
			}
			if n := b.queue.reading.Load(); n != 0 {
				t.Errorf("%d bytes are being read at the end", n)
			}
		})
	}
}

// However much is sent at once, not more of it is in memory than may be.
func TestManyBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, strings.Replace(testRules, "max_body: 1KB", "max_body: 64MiB", 1))
		defer b.close()
		b.accept("ann", 0, 2)
		b.queue.reading.Add(maxReading - 10) // others
		for length, want := range map[int]int{5: 202, 10: 202, 11: 429, 1000: 429} {
			if w := b.order("ann", strings.Repeat("x", length)); w.Code != want {
				t.Errorf("%d bytes: %d, want %d", length, w.Code, want)
			}
		}
		if n := b.queue.reading.Load(); n != maxReading-10 {
			t.Errorf("%d bytes are being read at the end", n)
		}
	})
}

// A request that one rule would keep does not take the room that those wait for which another rule has kept of its key.
func TestTwoRulesDefer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules+"  - { name: shop, match: /orders, per: everyone, limits: 3/second, defer: { keep: 1h, places: 100 } }\n")
		defer b.close()
		b.setSend(always(500, ""))
		f := func(user string, want int, rule string) {
			t.Helper()
			w := b.order(user, "x")
			if w.Code != want || want == 429 && !strings.Contains(w.Body.String(), rule) {
				t.Errorf("%s: %d %s, want %d", user, w.Code, w.Body, want)
			}
			if st, _ := b.store.Stats(t.Context()); want == 202 && st.Rules[rule] == 0 {
				t.Errorf("%s: %v are kept, want one of %s", user, st.Rules, rule)
			}
		}
		f("ann", 500, "")
		f("ann", 500, "")
		f("ann", 202, "orders")
		f("bob", 202, "shop")
		time.Sleep(10 * time.Second) // both limits have room, and both rules have kept a request
		f("ann", 429, "shop")
		f("bob", 202, "shop")
	})
}
