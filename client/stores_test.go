package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// Three instances share limits of every algorithm, for many accounts, in memory and in Redis.
// Each account gets as many calls as its limit has, and every other call is refused with the
// limit that refused it.
func TestProviderSharesEveryAlgorithm(t *testing.T) {
	const events, long = 5, 30 * 24 * time.Hour
	limits := []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Period: long},
		{Algorithm: tidegate.LeakyBucket, Period: long, Burst: 3}, // of which one leaves at once
		{Algorithm: tidegate.FixedWindow, Period: long},
		{Algorithm: tidegate.SlidingLog, Period: long},
		{Algorithm: tidegate.SlidingWindow, Period: long},
		{Algorithm: tidegate.SubWindows, Period: long},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Year},
	}
	t.Run("memory", func(t *testing.T) {
		shared := memory.New()
		for _, spec := range limits {
			testShared(t, spec, events, [3]tidegate.Store{shared, shared, shared})
		}
	})
	t.Run("redis", func(t *testing.T) {
		redis := testdep.Redis(t)
		var stores [3]tidegate.Store
		for i := range stores {
			store, err := fleet.Open("redis://"+redis.Addr, fleet.Options{Deadline: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			stores[i] = store
		}
		for _, spec := range limits {
			testShared(t, spec, events, stores)
		}
	})
}

func testShared(t *testing.T, spec tidegate.Spec, events int64, stores [3]tidegate.Store) {
	t.Run(spec.Algorithm.String(), func(t *testing.T) {
		spec.Name, spec.Events = "calls "+spec.Algorithm.String(), events
		limit := tidegate.MustLimit(spec)
		const accounts = 10
		var mu sync.Mutex
		served := map[string]int64{}
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			served[r.Header.Get("Account")]++
		}))
		defer server.Close()
		var all sync.WaitGroup
		for _, store := range stores {
			p := mustProvider(t, ProviderOptions{
				Store: store, Limits: []*tidegate.Limit{limit}, MaxWait: -1,
				Key: func(r *http.Request) string { return r.Header.Get("Account") },
			})
			for i := range accounts * int(events) {
				all.Go(func() {
					req, _ := http.NewRequest(http.MethodGet, server.URL, nil)
					req.Header.Set("Account", fmt.Sprint(i%accounts))
					res, err := p.RoundTrip(req)
					if err == nil {
						res.Body.Close()
					} else if !errors.Is(err, ErrLimit) {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		want := events
		if spec.Algorithm == tidegate.LeakyBucket {
			want = 1
		}
		for i := range accounts {
			if n := served[fmt.Sprint(i)]; n != want {
				t.Errorf("account %d: %d calls, want %d", i, n, want)
			}
		}
	})
}
