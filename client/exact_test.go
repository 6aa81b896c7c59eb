package client

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/lang/sleep"
	"tidegate.dev/tidegate/store/memory"
)

// process is one of a fleet in virtual time. Nothing happens in it while it stands still.
type process struct {
	tidegate.Store
	storeDelay time.Duration // of each question to the store, and up to half as much again

	mu    sync.Mutex
	until time.Time // it stands still
}

func (p *process) standStill(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(d)
}

// act returns when the process runs.
func (p *process) act() {
	for {
		p.mu.Lock()
		d := time.Until(p.until)
		p.mu.Unlock()
		if d <= 0 {
			return
		}
		time.Sleep(d)
	}
}

func (p *process) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	p.act()
	time.Sleep(p.storeDelay/2 + upTo(p.storeDelay/4))
	d, err := p.Store.Take(ctx, checks, n)
	time.Sleep(p.storeDelay/2 + upTo(p.storeDelay/4))
	p.act()
	return d, err
}

// fate is what disturbs a fleet.
type fate struct {
	name         string
	jitter       time.Duration // on the way to the API
	storeDelay   time.Duration
	stall, every time.Duration // each process stands still so long, so often on average
	together     bool          // all of them at once
	least        float64       // the share of the limit that has to be used; 0 means 95 %
}

// stalled is the share of the time for which a process stands still.
func (f *fate) stalled() float64 { return f.stall.Seconds() / max(f.every, time.Second).Seconds() }

// A fleet under [Pace] uses at least 95 % of what an API allows, whatever that counts by, and is
// hardly ever refused: while the network delays calls, while the store is far away, and while processes
// stand still, which costs no more than the time for which they do. Where delays are longer than
// Pace has room for, it uses less, and is hardly ever refused either. TIDEGATE_LONG=1 has more kinds of servers.
func TestFleetUnderEveryServer(t *testing.T) {
	testdep.SkipUnderRace(t)
	const limit, span = 50, 3 * time.Minute
	const ms = time.Millisecond
	servers := []tidegate.Spec{{Algorithm: tidegate.TokenBucket, Burst: 5}, {Algorithm: tidegate.SlidingLog}}
	if os.Getenv("TIDEGATE_LONG") == "1" {
		servers = append(servers, tidegate.Spec{Algorithm: tidegate.FixedWindow}, tidegate.Spec{Algorithm: tidegate.SlidingWindow})
	}
	fates := []fate{
		{name: "calm"},
		{name: "rough network", jitter: 100 * ms, least: 0.75},
		{name: "jitter", jitter: 15 * ms},
		{name: "far store", storeDelay: 30 * ms, jitter: 5 * ms},
		{name: "one stalls", stall: 300 * ms, every: 30 * time.Second, jitter: 5 * ms},
		{name: "all stall", stall: 100 * ms, every: 20 * time.Second, together: true, jitter: 5 * ms},
	}
	for _, spec := range servers {
		spec.Events, spec.Period = limit, time.Second
		for _, f := range fates {
			t.Run(fmt.Sprint(spec.Algorithm, spec.Burst, " ", f.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					served, refused := f.run(t, tidegate.MustLimit(spec), limit, span)
					share := float64(served) / (limit * span.Seconds())
					t.Logf("%.1f %% of the limit is used, %d of %d requests are refused", 100*share, refused, served+refused)
					if share < cmp.Or(f.least, 0.95)*(1-f.stalled()) || refused*100 >= served+refused {
						t.Errorf("%.1f %% of the limit is used, %d of %d requests are refused", 100*share, refused, served+refused)
					}
				})
			})
		}
	}
}

// run lets twenty processes call a server under a limit of so many a second for a span.
func (f *fate) run(t *testing.T, at *tidegate.Limit, limit int64, span time.Duration) (served, refused int) {
	var mu sync.Mutex
	counts := httplimit.Options{OnDecision: func(_ *http.Request, d tidegate.Decision) {
		mu.Lock()
		defer mu.Unlock()
		if d.OK {
			served++
		} else {
			refused++
		}
	}}
	api := counts.Limit(tidegate.New(memory.New(), at), everyone)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	shared := memory.New()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(span, cancel)
	var all sync.WaitGroup
	var processes []*process
	for range 20 {
		p := &process{Store: shared, storeDelay: f.storeDelay}
		processes = append(processes, p)
		tr := mustProvider(t, ProviderOptions{
			Store: p, Limits: []*tidegate.Limit{Pace(limit, time.Second)}, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				p.act()
				time.Sleep(time.Millisecond + upTo(f.jitter))
				w := httptest.NewRecorder()
				api.ServeHTTP(w, req)
				p.act()
				return w.Result(), nil
			}),
		}).Transport()
		for range 4 {
			all.Go(func() {
				for ctx.Err() == nil {
					do(ctx, tr, "GET", "")
				}
			})
		}
	}
	all.Go(func() { f.disturb(ctx, processes) })
	all.Wait()
	return served, refused
}

// disturb has processes stand still until ctx ends.
func (f *fate) disturb(ctx context.Context, all []*process) {
	if f.stall == 0 {
		return
	}
	pause := f.every
	if !f.together {
		pause /= time.Duration(len(all))
	}
	for sleep.For(ctx, pause/2+upTo(pause)) == nil {
		if !f.together {
			all[rand.IntN(len(all))].standStill(f.stall)
			continue
		}
		for _, p := range all {
			p.standStill(f.stall)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
