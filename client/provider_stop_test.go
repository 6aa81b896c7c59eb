package client

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/sleep"
	"tidegate.dev/tidegate/store/memory"
)

// A refusal that names a time stops all instances, also those whose turn was booked before,
// and none of them asks earlier. After it they are no faster than before.
func TestProviderStop(t *testing.T) {
	for _, stop := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 30 * time.Second} {
		t.Run(stop.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testStop(t, stop) })
		})
	}
}

func testStop(t *testing.T, stop time.Duration) {
	var mu sync.Mutex
	var at []time.Duration
	began, refuse := time.Now(), true
	_, base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Since(began))
		if len(at) > 5 && refuse {
			refuse = false
			w.Header().Set("Retry-After", fmt.Sprint(stop.Seconds()))
			w.WriteHeader(429)
		}
	})
	shared := memory.New()
	var all sync.WaitGroup
	stops := 0
	for range 20 {
		p := mustProvider(t, ProviderOptions{
			Store: shared, Limits: []*tidegate.Limit{paced(10, time.Second)}, Base: base,
			OnEvent: func(_ *http.Request, e Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Kind == Stopped && e.Err == nil && e.Wait == stop && e.Status == 429 {
					stops++
				}
			},
		})
		tr := p.Transport()
		for range 2 {
			all.Go(func() {
				if a := get(tr); a.status != 200 {
					t.Errorf("%+v", a)
				}
			})
		}
	}
	all.Wait()
	if len(at) != 41 || stops != 1 {
		t.Fatalf("%d requests, %d stops", len(at), stops)
	}
	stopped := at[5]
	for i, when := range at[6:] {
		if when < stopped+stop {
			t.Errorf("request %d at %s, after a stop at %s", i+6, when, stopped)
		}
	}
	if most := mostWithin(at[6:], 990*time.Millisecond); most > 10 {
		t.Errorf("%d requests in a second after the stop, want 10 at most", most)
	}
}

// However long a server is away, the instances are no faster afterwards than before, and soon
// as fast.
func TestProviderOutage(t *testing.T) {
	for _, outage := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testOutage(t, outage) })
		})
	}
}

func testOutage(t *testing.T, outage time.Duration) {
	var mu sync.Mutex
	var at []time.Duration
	began := time.Now()
	network, base := serve(t, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Since(began))
	})
	shared := memory.New()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 20 {
		tr := mustProvider(t, ProviderOptions{Store: shared, Limits: []*tidegate.Limit{paced(50, time.Second)}, Base: base}).Transport()
		for range 4 {
			all.Go(func() {
				for ctx.Err() == nil {
					if a := do(ctx, tr, "GET", ""); a.err != nil {
						_ = sleep.For(ctx, upTo(200*time.Millisecond))
					}
				}
			})
		}
	}
	time.Sleep(5 * time.Second)
	network.setDown(true)
	time.Sleep(outage)
	network.setDown(false)
	back := time.Since(began)
	time.Sleep(30 * time.Second)
	cancel()
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	var after, late []time.Duration
	for _, when := range at {
		if when >= back {
			after = append(after, when)
		}
		if when >= back+20*time.Second {
			late = append(late, when)
		}
	}
	highest := mostWithin(after, 990*time.Millisecond)
	if highest > 60 || len(late) < 10*50*95/100 {
		t.Errorf("after %s away, at most %d requests come in a second; 20 s later %d in ten seconds", outage, highest, len(late))
	}
	t.Logf("after %s away, at most %d requests come in a second; 20 s later %d in ten seconds", outage, highest, len(late))
}

// However many instances stop each other at once, the longest stop counts, once.
func TestLongestStopCounts(t *testing.T) {
	f := func(want time.Duration, stops ...time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			p := mustProvider(t, ProviderOptions{Store: memory.New(), Limits: []*tidegate.Limit{tidegate.PerSecond(1)}})
			for _, d := range stops {
				if err := p.stopFor(t.Context(), "k", d); err != nil {
					t.Fatal(err)
				}
			}
			if got := p.stopped(t.Context(), "k"); got != want {
				t.Errorf("%s: stopped for %s, want %s", stops, got, want)
			}
			time.Sleep(want - time.Millisecond)
			if got := p.stopped(t.Context(), "k"); got != time.Millisecond {
				t.Errorf("%s: at the end stopped for %s", stops, got)
			}
			time.Sleep(time.Millisecond)
			if got := p.stopped(t.Context(), "k"); got != 0 {
				t.Errorf("%s: after its end stopped for %s", stops, got)
			}
			if got := p.stopped(t.Context(), "other"); got != 0 {
				t.Errorf("%s: another key is stopped for %s", stops, got)
			}
		})
	}
	const s = time.Second
	f(5*s, 5*s)
	f(5*s, 5*s, 5*s, 5*s, 5*s)
	f(60*s, s, 60*s, 60*s, 2*s)
	f(60*s, 60*s, 59*s, s)
	f(maxStop, maxStop, maxStop, s)
	f(2*time.Millisecond, 2*time.Millisecond)
	f(DefaultMaxStop, 20*time.Minute, 40*time.Minute, DefaultMaxStop)
}
