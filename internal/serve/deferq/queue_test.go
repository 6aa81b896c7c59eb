package deferq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// What the limit has no room for is answered 202 and sent as there is room, in the order of each
// key, and never more than the limit admits.
func TestSentLaterInOrder(t *testing.T) {
	for _, limit := range []string{
		"2/second", "{ rate: 2/second, algorithm: token_bucket, burst: 2 }", "{ rate: 2/second, algorithm: fixed_window }",
		"{ rate: 2/second, algorithm: sliding_window }", "{ rate: 2/second, algorithm: sub_windows }", "[2/second, 100/minute]",
	} {
		t.Run(limit, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, strings.Replace(testRules, "2/second", limit, 1))
				defer b.close()
				kept := map[string][]string{"ann": b.accept("ann", 0, 10), "bob": b.accept("bob", 0, 10)}
				if n := len(kept["ann"]) + len(kept["bob"]); n < 12 {
					t.Fatalf("%d kept, want at least 12 of 20", n)
				}
				time.Sleep(15 * time.Second)
				next := map[string]int{}
				seen := map[string][]time.Time{}
				for _, a := range b.arrivals() {
					if a.body != fmt.Sprint(next[a.key]) {
						t.Fatalf("%s: order %s came, want %d", a.key, a.body, next[a.key])
					}
					next[a.key]++
					seen[a.key] = append(seen[a.key], a.at)
				}
				if next["ann"] != 10 || next["bob"] != 10 {
					t.Errorf("%v came, want 10 of each", next)
				}
				most, apart := 2, time.Second-time.Microsecond
				if strings.Contains(limit, "sub_windows") {
					apart -= time.Second / 60 // a part
				}
				if strings.Contains(limit, "bucket") || strings.Contains(limit, "fixed") {
					most = 4 // in any second: what is saved up, and what refills; or the end of one window and the next
				}
				for key, times := range seen {
					for i := most; i < len(times); i++ {
						if gap := times[i].Sub(times[i-most]); gap < apart {
							t.Errorf("%s: %d within %s", key, most+1, gap)
						}
					}
				}
				for user, locations := range kept {
					for _, at := range locations {
						if s := b.read(user, at); s.State != Done || s.Result.Status != 200 || !strings.HasPrefix(s.Result.Body, "done") {
							t.Errorf("%s: %+v", at, s)
						}
					}
				}
				if st, _ := b.store.Stats(t.Context()); st.Waiting != 0 || st.Lines != 0 {
					t.Errorf("%+v at the end", st)
				}
			})
		})
	}
}

// While requests of a key wait, others of that key join the line even if the limit has room; other
// keys pass.
func TestLiveRequestsJoinTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules)
		defer b.close()
		b.setSend(func(*http.Request) (*http.Response, bool, error) { return nil, true, errors.New("broken") })
		b.order("ann", "0") // 502, as they are live
		b.order("ann", "1")
		if w := b.order("ann", "2"); w.Code != 202 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		time.Sleep(5 * time.Second) // the first is retried, and the limit has room
		w := b.order("ann", "3")
		var s Status
		if err := json.Unmarshal(w.Body.Bytes(), &s); w.Code != 202 || err != nil || s.Position != 2 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if w := b.order("bob", "0"); w.Code != 502 {
			t.Errorf("nobody waits before bob, and he got %d", w.Code)
		}
		b.setSend(nil)
		time.Sleep(20 * time.Second)
		got := b.arrivals()
		if n := len(got); got[n-2].body != "2" || got[n-1].body != "3" {
			t.Errorf("%+v", got[n-2:])
		}
		if w := b.order("ann", "4"); w.Code != 200 {
			t.Errorf("after the line: %d", w.Code)
		}
	})
}

// A queue at rest sends nothing and accepts requests. Attempts in flight have the time that they are given, and what is
// cut off is sent by the next queue.
func TestRest(t *testing.T) {
	for name, takes := range map[string]time.Duration{"in time": time.Second, "cut off": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, testRules)
				defer func() { b.close() }()
				kept := b.accept("ann", 0, 3)
				b.setSend(func(r *http.Request) (*http.Response, bool, error) {
					select {
					case <-time.After(takes):
						return answered(200, "done"), true, nil
					case <-r.Context().Done():
						return nil, true, r.Context().Err()
					}
				})
				time.Sleep(time.Second) // the attempt begins
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				rested := make(chan bool)
				go func() { b.queue.Rest(ctx); close(rested) }()
				synctest.Wait()
				if w := b.order("ann", "while it ends"); w.Code != 202 {
					t.Errorf("while an attempt ends: %d", w.Code)
				}
				<-rested
				if w := b.order("ann", "at rest"); w.Code != 202 {
					t.Errorf("at rest: %d", w.Code)
				}
				n := len(b.arrivals())
				time.Sleep(time.Minute)
				if more := b.arrivals()[n:]; len(more) > 0 {
					t.Errorf("sent at rest: %v", more)
				}
				b.setSend(nil)
				b.close()
				b.open()
				time.Sleep(time.Minute)
				for _, at := range kept {
					if s := b.read("ann", at); s.State != Done {
						t.Errorf("%s: %+v", at, s)
					}
				}
				if st, _ := b.store.Stats(t.Context()); st.Waiting != 0 {
					t.Errorf("%+v at the end", st)
				}
			})
		})
	}
}

// Slots of other rules are held while an attempt runs, and not while a request waits.
func TestSlotsAreHeldByAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules+"  - { name: slots, match: /orders, per: everyone, concurrency: { slots: 1, lease: 1m } }\n")
		defer b.close()
		most, now := 0, 0
		b.setSend(func(*http.Request) (*http.Response, bool, error) {
			b.mu.Lock()
			now++
			most = max(most, now)
			b.mu.Unlock()
			time.Sleep(200 * time.Millisecond)
			b.mu.Lock()
			now--
			b.mu.Unlock()
			return answered(200, ""), true, nil
		})
		b.accept("ann", 0, 6)
		b.accept("bob", 0, 6)
		time.Sleep(time.Minute)
		b.mu.Lock()
		defer b.mu.Unlock()
		if most != 1 || len(b.got) != 12 {
			t.Errorf("%d at a time, %d in all; want 1 and 12", most, len(b.got))
		}
	})
}

// Counters that have forgotten what passed do not let more through.
func TestForgetfulCountersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, strings.Replace(testRules, "2/second", "2/10s", 1))
		b.accept("ann", 0, 4) // two are sent now
		b.close()
		fresh := newBench(t, testRules)
		fresh.close()
		b.counters = fresh.counters
		b.open(func(o *Options) { o.Forgetful = true })
		defer b.close()
		time.Sleep(9900 * time.Millisecond)
		if n := len(b.arrivals()); n != 2 {
			t.Errorf("%d within 10 s, want 2", n)
		}
		time.Sleep(time.Second)
		if n := len(b.arrivals()); n != 4 {
			t.Errorf("%d after 11 s, want 4", n)
		}
	})
}

func TestLookBack(t *testing.T) {
	f := func(s tidegate.Spec, want time.Duration) {
		t.Helper()
		if got := lookBack([]tidegate.Check{{Limit: tidegate.MustLimit(s)}}); got != want {
			t.Errorf("%+v: %s, want %s", s, got, want)
		}
	}
	f(tidegate.Spec{Events: 5, Period: time.Second}, time.Second)
	f(tidegate.Spec{Events: 5, Period: time.Hour}, time.Minute)
	f(tidegate.Spec{Events: 10, Period: time.Second, Burst: 50, Algorithm: tidegate.TokenBucket}, 5*time.Second)
	f(tidegate.Spec{Events: 5, Period: time.Second, Algorithm: tidegate.Concurrency}, 0)
}
