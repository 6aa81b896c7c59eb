package httplimit_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "hello")
})

func ask(h http.Handler, user string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if user != "" {
		r.Header.Set("X-User", user)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Whatever the algorithm: a client that does as Retry-After says is admitted,
// and one that comes a second before it is not.
func TestRetryAfterIsKept(t *testing.T) {
	for _, algorithm := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows,
	} {
		t.Run(algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := tidegate.MustLimit(tidegate.Spec{Events: 5, Period: time.Minute, Algorithm: algorithm})
				h := httplimit.Limit(tidegate.New(memory.New(), limit), httplimit.IP())(hello)
				time.Sleep(12345 * time.Millisecond) // into a window
				for i := range 5 {
					w := ask(h, "")
					if want := `"default";r=` + strconv.Itoa(4-i) + ";t="; w.Code != 200 || w.Header().Get("RateLimit")[:len(want)] != want {
						t.Fatalf("request %d: %d, RateLimit %s", i, w.Code, w.Header().Get("RateLimit"))
					}
				}
				w := ask(h, "")
				after, err := strconv.Atoi(w.Header().Get("Retry-After"))
				if w.Code != 429 || err != nil || after < 1 || after > 60 {
					t.Fatalf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
				}
				time.Sleep(time.Duration(after-1) * time.Second)
				if w := ask(h, ""); w.Code != 429 || w.Header().Get("Retry-After") != "1" {
					t.Errorf("a second early: %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
				}
				time.Sleep(time.Second)
				if w := ask(h, ""); w.Code != 200 {
					t.Errorf("after %d s: %d, Retry-After %q", after, w.Code, w.Header().Get("Retry-After"))
				}
			})
		})
	}
}

func TestTrap19EpochResetOfAWindowIsOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := tidegate.MustLimit(tidegate.Spec{Events: 20, Period: time.Minute, Algorithm: tidegate.FixedWindow})
		o := httplimit.Options{Headers: httplimit.X, Reset: httplimit.ResetEpoch}
		h := o.Limit(tidegate.New(memory.New(), limit), httplimit.IP())(hello)
		end := time.Now().Truncate(time.Minute).Add(time.Minute).Unix()
		for i := range 40 { // admitted and refused ones
			w := ask(h, "")
			if got := w.Header().Get("X-RateLimit-Reset"); got != strconv.FormatInt(end, 10) {
				t.Errorf("request %d (%d): reset %s, want %d", i, w.Code, got, end)
			}
			time.Sleep(1234567891 * time.Nanosecond)
		}
	})
}

func TestTrap20LeftOutHeaderIsHeldToTheLimit(t *testing.T) {
	h := httplimit.Limit(tidegate.New(memory.New(), tidegate.PerMinute(2)), httplimit.Header("X-User"))(hello)
	f := func(user string, want int) {
		t.Helper()
		if w := ask(h, user); w.Code != want {
			t.Errorf("user %q: %d, want %d", user, w.Code, want)
		}
	}
	f("", 200)
	f("", 200)
	f("", 429)
	f("192.0.2.1", 200) // the name of the address is not the address
	f("", 429)
	f("alice", 200)
	f("alice", 200)
	f("alice", 429)
	f("bob", 200)
}

func TestSlotsUnderLoad(t *testing.T) {
	var running, most, served, refused atomic.Int64
	lim := tidegate.New(memory.New(), tidegate.Slots(3, time.Minute))
	srv := httptest.NewServer(httplimit.Limit(lim, httplimit.IP())(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(time.Millisecond)
	})))
	defer srv.Close()
	load := func(timeout time.Duration) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					ctx, cancel := context.WithTimeout(t.Context(), timeout)
					req, _ := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
					if resp, err := srv.Client().Do(req); err == nil {
						if resp.StatusCode == 200 {
							served.Add(1)
						} else {
							refused.Add(1)
						}
						resp.Body.Close()
					}
					cancel()
				}
			})
		}
		wg.Wait()
	}
	load(time.Minute)
	if most.Load() > 3 || served.Load() == 0 || refused.Load() == 0 {
		t.Errorf("at most %d ran at once, %d served, %d refused", most.Load(), served.Load(), refused.Load())
	}
	load(800 * time.Microsecond) // clients that leave, some of them before they are answered
	srv.Close()
	// For less than a minute, after which slots come free by themselves.
	if !testdep.Await(20*time.Second, func() bool { return lim.Peek(t.Context(), "127.0.0.1").Remaining == 3 }) {
		t.Fatalf("%d slots are free in the end, want 3", lim.Peek(t.Context(), "127.0.0.1").Remaining)
	}
}

func TestLongStreamKeepsItsSlotAndLosesItAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := tidegate.New(memory.New(), tidegate.Slots(1, 30*time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		h := httplimit.Limit(lim, httplimit.IP())(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}))
		go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
		for range 20 {
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if d := lim.Peek(t.Context(), "192.0.2.1"); d.OK {
				t.Fatal("the slot of a stream that goes on is free")
			}
		}
		cancel()
		synctest.Wait()
		if d := lim.Peek(t.Context(), "192.0.2.1"); !d.OK {
			t.Error("the slot of a stream that was cancelled is taken")
		}
	})
}

// Trap 22: the cost is known afterwards. Reserve an estimate, settle the truth.
func TestTrap22ParallelCallsCannotPassTheLimitTogether(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.PerMinute(100))
	var spent atomic.Int64
	all := make(chan bool)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens := lim.Reserve(r.Context(), r.Header.Get("X-User"), 50)
		if !tokens.OK {
			w.WriteHeader(httplimit.Status(tokens.Decision))
			return
		}
		<-all
		spent.Add(40)
		_ = tokens.Settle(40)
	})
	codes := make(chan int, 5)
	for range 5 {
		go func() { codes <- ask(h, "alice").Code }()
	}
	for range 3 { // the refused ones are back while the others still work
		if code := <-codes; code != 429 {
			t.Errorf("status %d, want 429", code)
		}
	}
	close(all)
	for range 2 {
		if code := <-codes; code != 200 {
			t.Errorf("status %d, want 200", code)
		}
	}
	if spent.Load() != 80 {
		t.Errorf("%d tokens were spent", spent.Load())
	}
	if d := lim.Peek(t.Context(), "alice"); d.Remaining != 20 {
		t.Errorf("%d tokens remain, want the 20 that were not spent", d.Remaining)
	}
}
