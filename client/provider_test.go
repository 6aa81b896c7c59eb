package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// paced is a limit that spaces calls evenly.
func paced(events int64, period time.Duration) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{Name: "calls", Events: events, Period: period, Algorithm: tidegate.TokenBucket, Burst: 1})
}

func mustProvider(t testing.TB, o ProviderOptions) *Provider {
	t.Helper()
	if o.Name == "" {
		o.Name = "api"
	}
	p, err := NewProvider(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Calls of several instances under a limit of each algorithm never exceed the same limit at
// the server, which sees them when they are made, and use most of it.
func TestProviderKeepsUnderEveryAlgorithm(t *testing.T) {
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Burst: 1},
		{Algorithm: tidegate.TokenBucket},
		{Algorithm: tidegate.LeakyBucket, Burst: 500},
		{Algorithm: tidegate.FixedWindow},
		{Algorithm: tidegate.SlidingLog},
		{Algorithm: tidegate.SlidingWindow},
		{Algorithm: tidegate.SubWindows},
	} {
		t.Run(fmt.Sprint(spec.Algorithm, spec.Burst), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec.Name, spec.Events, spec.Period = "calls", 20, time.Second
				limit := tidegate.MustLimit(spec)
				var mu sync.Mutex
				refused, served := 0, 0
				o := httplimit.Options{OnDecision: func(_ *http.Request, d tidegate.Decision) {
					mu.Lock()
					defer mu.Unlock()
					if served++; !d.OK {
						refused++
					}
				}}
				at := limit
				if spec.Algorithm == tidegate.LeakyBucket { // for which the middleware would wait
					at = paced(20, time.Second)
				}
				_, base := serve(t, o.Limit(tidegate.New(memory.New(), at), everyone)(http.NotFoundHandler()).ServeHTTP)
				shared := memory.New()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				var all sync.WaitGroup
				for range 3 {
					p := mustProvider(t, ProviderOptions{Store: shared, Limits: []*tidegate.Limit{limit}, Base: base})
					for range 4 {
						all.Go(func() {
							for {
								a := do(ctx, p, "GET", "")
								if a.err != nil { // the time is over, or would be
									return
								}
								if a.status != 404 {
									t.Errorf("%+v", a)
								}
							}
						})
					}
				}
				all.Wait()
				mu.Lock() // a call whose caller has left may still be served
				defer mu.Unlock()
				if refused > 0 || served < 20*8 {
					t.Errorf("%d calls in 10 s, %d of them refused", served, refused)
				}
				t.Logf("%d calls", served)
			})
		})
	}
}

// Slots are held until a response is read, and free again when a call ends in any way.
func TestProviderSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		open, most := 0, 0
		_, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			open++
			most = max(most, open)
			mu.Unlock()
			w.(http.Flusher).Flush() // the headers are out, the call goes on
			select {
			case <-time.After(100 * time.Millisecond):
			case <-r.Context().Done():
			}
			mu.Lock()
			open--
			mu.Unlock()
			if r.Method == http.MethodDelete {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, "done")
		})
		shared := memory.New()
		slots := tidegate.Slots(3, time.Minute)
		var all sync.WaitGroup
		for i := range 30 {
			p := mustProvider(t, ProviderOptions{Store: shared, Limits: []*tidegate.Limit{slots}, Base: base})
			all.Go(func() {
				switch i % 3 {
				case 0:
					if a := get(p); a.body != "done" {
						t.Errorf("%+v", a)
					}
				case 1: // the server breaks the connection
					if a := do(t.Context(), p, "DELETE", ""); a.err == nil {
						t.Errorf("%+v", a)
					}
				case 2: // the caller leaves
					ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
					defer cancel()
					do(ctx, p, "GET", "")
				}
			})
		}
		all.Wait()
		mu.Lock()
		defer mu.Unlock()
		if most != 3 {
			t.Errorf("%d calls at a time, want 3", most)
		}
		if d := tidegate.New(shared, slots).Peek(t.Context(), tidegate.Key("api")); d.Remaining != 3 {
			t.Errorf("%d of 3 slots are free in the end", d.Remaining)
		}
	})
}

// A budget of a day is used up, and there again the next day.
func TestProviderBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		_, base := serve(t, func(http.ResponseWriter, *http.Request) { calls++ })
		day := tidegate.MustLimit(tidegate.Spec{Name: "day", Algorithm: tidegate.Quota, Calendar: tidegate.Day, Events: 100})
		month := tidegate.MustLimit(tidegate.Spec{Name: "month", Algorithm: tidegate.Quota, Calendar: tidegate.Month, Events: 250})
		p := mustProvider(t, ProviderOptions{Store: memory.New(), Limits: []*tidegate.Limit{day, month}, Base: base})
		tr := p.Transport()
		time.Sleep(15 * time.Hour)
		use := func(want int, limit *tidegate.Limit, after time.Duration) {
			t.Helper()
			calls = 0
			for range 150 {
				if a := get(tr); a.err != nil {
					var refused *RefusedError
					if !errors.As(a.err, &refused) || !errors.Is(a.err, ErrLimit) || refused.RetryAfter != after || !strings.Contains(a.err.Error(), limit.String()) {
						t.Fatalf("%+v", a)
					}
				}
			}
			if calls != want {
				t.Errorf("%d calls, want %d", calls, want)
			}
		}
		use(100, day, 9*time.Hour)
		time.Sleep(9 * time.Hour)
		use(100, day, 24*time.Hour)
		time.Sleep(24 * time.Hour)
		use(50, month, 29*24*time.Hour)
	})
}

// Tokens are reserved by an estimate, and settled by what the response says was used.
func TestProviderTokens(t *testing.T) {
	tokens := tidegate.MustLimit(tidegate.Spec{
		Name: "tokens", Events: 1000, Period: time.Hour, Algorithm: tidegate.FixedWindow,
		Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Settle: "response.body.usage.total_tokens"}},
	})
	inHeader := tidegate.MustLimit(tidegate.Spec{
		Name: "tokens", Events: 1000, Period: time.Hour, Algorithm: tidegate.FixedWindow,
		Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Settle: "response.header.X-Used"}},
	})
	f := func(name string, limit *tidegate.Limit, want int64, answer http.HandlerFunc) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, base := serve(t, answer)
				network.setDown(answer == nil)
				store := memory.New()
				p := mustProvider(t, ProviderOptions{
					Store: store, Limits: []*tidegate.Limit{limit}, Base: base, MaxWait: -1,
					Cost: func(r *http.Request) int64 { return r.ContentLength },
				})
				do(t.Context(), p, "POST", strings.Repeat("x", 400))
				used := 1000 - tidegate.New(store, limit).Peek(t.Context(), tidegate.Key("api")).Remaining
				if used != want {
					t.Errorf("%d tokens are used, want %d", used, want)
				}
				a := do(t.Context(), p, "POST", strings.Repeat("x", 1001))
				if !errors.Is(a.err, ErrLimit) || !errors.Is(a.err, tidegate.ErrNever) {
					t.Errorf("more than there ever are: %+v", a)
				}
			})
		})
	}
	says := func(kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, text)
		}
	}
	f("less", tokens, 37, says("application/json", `{"usage":{"total_tokens":37}}`))
	f("more", tokens, 730, says("application/json", `{"usage":{"total_tokens":730}}`))
	f("stream", tokens, 55, says("text/event-stream", "data: {\"usage\":null}\n\ndata: {\"usage\":{\"total_tokens\":55}}\n\ndata: [DONE]\n\n"))
	f("unsaid", tokens, 400, says("application/json", `{}`))
	f("in a header", inHeader, 12, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Used", "12") })
	f("refused", tokens, 0, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) })
	f("not connected", tokens, 0, nil)
	f("broken", tokens, 400, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
}

// A call that ends while it waits gives back what it has not used, and its turn.
func TestProviderContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, base := serve(t, func(http.ResponseWriter, *http.Request) {})
		day := tidegate.MustLimit(tidegate.Spec{Name: "day", Algorithm: tidegate.Quota, Calendar: tidegate.Day, Events: 100})
		store := memory.New()
		p := mustProvider(t, ProviderOptions{Store: store, Limits: []*tidegate.Limit{paced(1, 10*time.Second), day}, Base: base})
		get(p)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if a := do(ctx, p, "GET", ""); !errors.Is(a.err, context.Canceled) || a.took != time.Second {
				t.Errorf("%+v", a)
			}
		}
		if left := tidegate.New(store, day).Peek(t.Context(), tidegate.Key("api")).Remaining; left != 99 {
			t.Errorf("%d are left of a day's 100 after one call", left)
		}
		if a := get(p); a.status != 200 || a.took != 7*time.Second {
			t.Errorf("the next one: %+v", a)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if a := do(ctx, p, "GET", ""); !errors.Is(a.err, ErrLimit) || a.took != 0 {
			t.Errorf("a turn after the deadline: %+v", a)
		}
	})
}

// When a call leaves, those behind it move up by a turn: none goes together with another.
func TestProviderPassesTurnsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		began := time.Now()
		_, base := serve(t, func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(began))
		})
		p := mustProvider(t, ProviderOptions{Store: memory.New(), Limits: []*tidegate.Limit{paced(1, time.Second)}, Base: base})
		var all sync.WaitGroup
		for i := range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			all.Go(func() { do(ctx, p, "GET", "") })
			synctest.Wait()
			if i%3 == 1 {
				time.AfterFunc(500*time.Millisecond, cancel)
			}
		}
		all.Wait()
		get(p)
		for i, when := range at {
			if when != time.Duration(i)*time.Second {
				t.Errorf("calls at %s, want one a second", at)
				break
			}
		}
		if len(at) != 8 {
			t.Errorf("%d calls", len(at))
		}
	})
}

// A call is charged to a day, and holds a slot, from when it is made, not from when it books its turn.
func TestProviderChargesAtTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := map[int]int{}
		var mu sync.Mutex
		_, base := serve(t, func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			calls[time.Now().UTC().Day()]++
		})
		day := tidegate.MustLimit(tidegate.Spec{Name: "day", Algorithm: tidegate.Quota, Calendar: tidegate.Day, Events: 30})
		slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Algorithm: tidegate.Concurrency, Events: 1, Period: time.Minute})
		p := mustProvider(t, ProviderOptions{Store: memory.New(), Limits: []*tidegate.Limit{day, paced(1, time.Second), slots}, Base: base})
		time.Sleep(24*time.Hour - 10*time.Second)
		var all sync.WaitGroup
		for range 60 {
			all.Go(func() { get(p) })
		}
		all.Wait()
		for range 5 {
			if a := get(p); !errors.Is(a.err, ErrLimit) {
				t.Errorf("%+v", a)
			}
		}
		if fmt.Sprint(calls) != "map[1:10 2:30]" {
			t.Errorf("calls by day: %v, want 10 before midnight and 30 after it", calls)
		}
	})
}

func TestProviderOptions(t *testing.T) {
	limits := []*tidegate.Limit{tidegate.PerSecond(1)}
	deny := tidegate.MustLimit(tidegate.Spec{Name: "no", Algorithm: tidegate.Deny})
	f := func(word string, o ProviderOptions) {
		t.Helper()
		if p, err := NewProvider(o); err == nil || !strings.Contains(err.Error(), word) || p != nil {
			t.Errorf("%+v: %v, want an error about %q", o, err, word)
		}
	}
	f("Name", ProviderOptions{Store: memory.New(), Limits: limits})
	f("Store", ProviderOptions{Name: "a", Limits: limits})
	f("Limits or Rules", ProviderOptions{Name: "a", Store: memory.New()})
	f("nil", ProviderOptions{Name: "a", Store: memory.New(), Limits: []*tidegate.Limit{nil}})
	f("not made by tidegate.NewLimit", ProviderOptions{Name: "a", Store: memory.New(), Limits: []*tidegate.Limit{{Spec: tidegate.Spec{Events: 5, Period: time.Minute}}}})
	f("access rule", ProviderOptions{Name: "a", Store: memory.New(), Limits: []*tidegate.Limit{deny}})
	f("share a counter", ProviderOptions{Name: "a", Store: memory.New(), Limits: []*tidegate.Limit{limits[0], tidegate.PerSecond(2)}})
	f("MaxStop", ProviderOptions{Name: "a", Store: memory.New(), Limits: limits, MaxStop: -1})
	f("MaxStop", ProviderOptions{Name: "a", Store: memory.New(), Limits: limits, MaxStop: maxStop + 1})
}
