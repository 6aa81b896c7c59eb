package deferq

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
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
				locations := append(b.accept("ann", 0, 10), b.accept("bob", 0, 10)...)
				if len(locations) < 12 {
					t.Fatalf("%d kept, want at least 12 of 20", len(locations))
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
				for _, at := range locations {
					var s Status
					if w := b.status(map[bool]string{true: "ann", false: "bob"}[strings.Contains(strings.Join(locations[:len(locations)/2], " "), at)], at); json.Unmarshal(w.Body.Bytes(), &s) != nil || s.State != Done || s.Result.Status != 200 || !strings.HasPrefix(s.Result.Body, "done") {
						t.Errorf("%s: %d %s", at, w.Code, w.Body)
					}
				}
				if st, _ := b.store.Stats(t.Context()); st.Waiting != 0 || st.Lines != 0 {
					t.Errorf("%+v at the end", st)
				}
			})
		})
	}
}

// While a key has a backlog, requests of that key join it even if the limit has room; other keys
// pass.
func TestLiveRequestsJoinTheBacklog(t *testing.T) {
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
			t.Errorf("bob has no backlog, and got %d", w.Code)
		}
		b.setSend(nil)
		time.Sleep(20 * time.Second)
		got := b.arrivals()
		if n := len(got); got[n-2].body != "2" || got[n-1].body != "3" {
			t.Errorf("%+v", got[n-2:])
		}
		if w := b.order("ann", "4"); w.Code != 200 {
			t.Errorf("after the backlog: %d", w.Code)
		}
	})
}

// Attempts, whatever becomes of them, are charged to the limit; the pauses between those of one
// request grow.
func TestRetriesAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules)
		defer b.close()
		fails := 0
		b.setSend(func(*http.Request) (*http.Response, bool, error) {
			if fails++; fails%3 == 0 {
				return answered(200, ""), true, nil
			}
			return answered(503, ""), true, nil
		})
		b.accept("ann", 0, 0)
		for i := range 12 {
			if w := b.order("ann", fmt.Sprint(i)); w.Code != 202 && w.Code != 503 && w.Code != 200 {
				t.Fatal(w.Code)
			}
		}
		time.Sleep(5 * time.Minute)
		got := b.arrivals()
		for i := 2; i < len(got); i++ {
			if gap := got[i].at.Sub(got[i-2].at); gap < time.Second-time.Microsecond {
				t.Errorf("three attempts within %s", gap)
			}
		}
		last, keys := "", map[string]string{}
		for _, a := range got[2:] {
			if a.body < last && len(a.body) == len(last) {
				t.Errorf("%s after %s", a.body, last)
			}
			last = a.body
			if had := keys[a.body]; had != "" && had != a.header.Get("Idempotency-Key") || a.header.Get("Idempotency-Key") == "" {
				t.Errorf("%s: the key is %q, and was %q", a.body, a.header.Get("Idempotency-Key"), had)
			}
			keys[a.body] = a.header.Get("Idempotency-Key")
		}
		if len(keys) != 10 {
			t.Errorf("%d requests were tried, want 10", len(keys))
		}
	})
}

// What becomes of a request by the upstream's answer.
func TestJudged(t *testing.T) {
	f := func(status int, err error, want State, reason string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, testRules)
			defer b.close()
			b.accept("ann", 0, 2)
			b.setSend(func(*http.Request) (*http.Response, bool, error) {
				if err != nil {
					return nil, true, err
				}
				return answered(status, "it says"), true, nil
			})
			at := b.order("ann", "x").Header().Get("Location")
			time.Sleep(3 * time.Second)
			var s Status
			if w := b.status("ann", at); json.Unmarshal(w.Body.Bytes(), &s) != nil || s.State != want || !strings.Contains(s.Reason, reason) {
				t.Errorf("%d %v: %s", status, err, w.Body)
			}
			if want != Waiting && s.Attempts != 1 || want == Waiting && s.Attempts < 1 {
				t.Errorf("%d %v: %d attempts", status, err, s.Attempts)
			}
			if want == Done && (s.Result.Status != status || s.Result.Body != "it says") {
				t.Errorf("%d: %+v", status, s.Result)
			}
		})
	}
	f(200, nil, Done, "")
	f(302, nil, Done, "")
	f(404, nil, Done, "")
	f(409, nil, Done, "")
	f(401, nil, Dead, "401")
	f(403, nil, Dead, "403")
	f(429, nil, Waiting, "429")
	f(500, nil, Waiting, "500")
	f(503, nil, Waiting, "503")
	f(0, errors.New("connection reset"), Waiting, "connection reset")
}

// A request that cannot be sent in time is a dead letter, and lets those behind it go.
func TestExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, strings.Replace(testRules, "keep: 1h", "keep: 10m", 1))
		defer b.close()
		b.accept("ann", 0, 2)
		b.setSend(func(*http.Request) (*http.Response, bool, error) { return answered(500, ""), true, nil })
		first := b.order("ann", "first").Header().Get("Location")
		time.Sleep(9 * time.Minute)
		second := b.order("ann", "second").Header().Get("Location")
		time.Sleep(5 * time.Minute)
		b.setSend(nil)
		time.Sleep(5*time.Minute + time.Minute)
		var one, two Status
		if json.Unmarshal(b.status("ann", first).Body.Bytes(), &one) != nil || one.State != Dead || !strings.Contains(one.Reason, "10m") || !strings.Contains(one.Reason, "500") {
			t.Errorf("the first: %+v", one)
		}
		if json.Unmarshal(b.status("ann", second).Body.Bytes(), &two) != nil || two.State != Done {
			t.Errorf("the second: %+v", two)
		}
		if err := b.store.Retry(t.Context(), strings.TrimPrefix(first, "/deferred/"), time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if json.Unmarshal(b.status("ann", first).Body.Bytes(), &one); one.State != Done {
			t.Errorf("after a retry: %+v", one)
		}
	})
}

// A replay that hangs ends with its time, and is tried again; other keys go on meanwhile.
func TestHangingReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules)
		defer b.close()
		b.accept("ann", 0, 2)
		b.accept("bob", 0, 2)
		hang := true
		b.setSend(func(r *http.Request) (*http.Response, bool, error) {
			if r.Header.Get("X-User") == "ann" && hang {
				hang = false
				<-r.Context().Done()
				return nil, true, r.Context().Err()
			}
			return answered(200, ""), true, nil
		})
		ann := b.order("ann", "x").Header().Get("Location")
		bob := b.order("bob", "y").Header().Get("Location")
		time.Sleep(3 * time.Second)
		var s Status
		if json.Unmarshal(b.status("bob", bob).Body.Bytes(), &s); s.State != Done {
			t.Errorf("bob waits behind ann: %+v", s)
		}
		if json.Unmarshal(b.status("ann", ann).Body.Bytes(), &s); s.State != Trying {
			t.Errorf("%+v", s)
		}
		time.Sleep(9 * time.Second)
		if json.Unmarshal(b.status("ann", ann).Body.Bytes(), &s); s.Attempts < 1 || s.State == Waiting && !strings.Contains(s.Reason, "did not answer within 10s") {
			t.Errorf("%+v", s)
		}
		time.Sleep(5 * time.Second)
		if json.Unmarshal(b.status("ann", ann).Body.Bytes(), &s); s.State != Done {
			t.Errorf("%+v", s)
		}
	})
}

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

// A change of the limit holds for what is kept; without the rule, the limit that the request was
// accepted under does.
func TestRulesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Replace(testRules, "per_key: 40", "per_key: 80", 1)
		b := newBench(t, text)
		defer b.close()
		swap := func(text string) {
			set, err := rules.Parse("rules.yaml", []byte(text), rules.Config{})
			if err != nil {
				t.Fatal(err)
			}
			b.live.Swap(set)
		}
		b.accept("ann", 0, 60)
		time.Sleep(5 * time.Second)
		if n := len(b.arrivals()); n > 12 {
			t.Errorf("%d after 5 s at 2/second", n)
		}
		swap(strings.Replace(text, "2/second", "10/second", 1))
		time.Sleep(2 * time.Second) // one of which it may wait for the limit of before
		if n := len(b.arrivals()); n < 20 || n > 44 {
			t.Errorf("%d after two more at 10/second", n)
		}
		swap("version: 1\nrules: [{ name: other, per: ip, limits: 5/minute }]\n")
		before := len(b.arrivals())
		time.Sleep(2 * time.Second)
		if n := len(b.arrivals()) - before; n < 2 || n > 6 {
			t.Errorf("%d in 2 s without the rule, want about 4: it was accepted at 2/second", n)
		}
		time.Sleep(25 * time.Second)
		if n := len(b.arrivals()); n != 60 {
			t.Errorf("%d in the end", n)
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

// Credentials can be left out, and others set.
func TestCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules, func(o *Options) {
			o.Strip = []string{"Cookie"}
			o.Credentials = map[string]func() (string, error){"Authorization": func() (string, error) { return "Bearer replay", nil }}
		})
		defer b.close()
		b.accept("ann", 0, 2)
		r := newRequest("ann", "x")
		r.Header.Set("Cookie", "secret")
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Idempotency-Key", "mine")
		b.serve(r)
		time.Sleep(2 * time.Second)
		got := b.arrivals()
		h := got[len(got)-1].header
		if h.Get("Cookie") != "" || h.Get("Authorization") != "Bearer replay" || h.Get("Idempotency-Key") != "mine" {
			t.Errorf("%v", h)
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

func TestPauses(t *testing.T) {
	for attempts := 1; attempts < 80; attempts++ {
		whole := min(time.Duration(1)<<min(attempts-1, 30)*time.Second, maxPause)
		for range 20 {
			if p := pauseAfter(attempts); p < whole/2 || p >= whole {
				t.Fatalf("%s after %d attempts, want %s to %s", p, attempts, whole/2, whole)
			}
		}
	}
}

// An upstream that is limited itself says when to come again, and is not asked before.
func TestRetryAfterIsHonoured(t *testing.T) {
	f := func(header string, status int, least, most time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, testRules)
			defer b.close()
			b.accept("ann", 0, 2)
			text := strings.Replace(header, "DATE", time.Now().Add(20*time.Minute).UTC().Format(http.TimeFormat), 1)
			b.setSend(func(*http.Request) (*http.Response, bool, error) {
				res := answered(status, "")
				res.Header.Set("Retry-After", text)
				return res, true, nil
			})
			b.order("ann", "x")
			for len(b.arrivals()) < 4 {
				time.Sleep(100 * time.Millisecond)
			}
			got := b.arrivals()
			if gap := got[3].at.Sub(got[2].at); gap < least || gap > most {
				t.Errorf("%s: again after %s, want %s to %s", header, gap, least, most)
			}
		})
	}
	f("7", 429, 7*time.Second, 8*time.Second)
	f("7", 503, 7*time.Second, 8*time.Second)
	f("1200", 429, 20*time.Minute, 21*time.Minute)
	f("DATE", 429, 19*time.Minute, 21*time.Minute)
	f("0", 429, firstPause/2, 3*time.Second)
	f("-1", 429, firstPause/2, 3*time.Second)
	f("soon", 429, firstPause/2, 3*time.Second)
}

func TestRetryAfterIsBounded(t *testing.T) {
	now := time.Now()
	for _, text := range []string{"3601", "99999999999", now.Add(48 * time.Hour).UTC().Format(http.TimeFormat)} {
		if got := retryAfter(text, now); got != maxRetryAfter {
			t.Errorf("%s: %s, want %s", text, got, maxRetryAfter)
		}
	}
	if got := retryAfter(now.Add(-time.Hour).UTC().Format(http.TimeFormat), now); got != 0 {
		t.Errorf("a date that has passed: %s", got)
	}
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
