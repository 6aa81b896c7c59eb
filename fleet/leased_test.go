package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

const (
	leasedEvents = 2000 // a second
	leasedNodes  = 3
	leasedFor    = 3 * time.Second
)

// leasedLoad is three instances on one key, under three times the load that it admits.
type leasedLoad struct {
	testing.TB
	limit *tidegate.Limit
	nodes []*fleet.Store

	mu       sync.Mutex
	admitted []time.Time
	asked    int64
	by       map[tidegate.Origin]int
}

func newLeasedLoad(t testing.TB, url string, a tidegate.Algorithm, deadline time.Duration) *leasedLoad {
	l := &leasedLoad{TB: t, by: map[tidegate.Origin]int{}}
	l.limit = tidegate.MustLimit(tidegate.Spec{
		Name: "api", Events: leasedEvents, Period: time.Second, Algorithm: a,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Leased, OnStoreFailure: tidegate.FailLocal}},
	})
	for range leasedNodes {
		s, err := fleet.Open(url, fleet.Options{Deadline: deadline, Instances: func() int { return leasedNodes }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		l.nodes = append(l.nodes, s)
	}
	return l
}

// press sends the load until the time is up.
func (l *leasedLoad) press() {
	var all sync.WaitGroup
	const callers = 4
	gap := time.Second * callers * leasedNodes / (3 * leasedEvents)
	start := time.Now()
	for _, s := range l.nodes {
		for range callers {
			all.Go(func() {
				checks := []tidegate.Check{{Key: "one", Limit: l.limit, Cost: 1}}
				for next := start; time.Since(start) < leasedFor; next = next.Add(gap) {
					time.Sleep(time.Until(next))
					d, err := s.Take(context.Background(), checks, 1)
					l.note(&d, err, time.Now())
				}
			})
		}
	}
	all.Wait()
}

func (l *leasedLoad) note(d *tidegate.Decision, err error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.Error(err)
	}
	l.asked++
	l.by[d.Receipt.Origin]++
	if d.OK {
		l.admitted = append(l.admitted, now)
	}
}

// over is how many of what was admitted an exact bucket would not have let pass.
func (l *leasedLoad) over() (n int) {
	slices.SortFunc(l.admitted, time.Time.Compare)
	const emission = time.Second / leasedEvents
	var drained time.Time
	for _, at := range l.admitted {
		if drained.Before(at) {
			drained = at
		}
		if drained = drained.Add(emission); drained.Sub(at) > time.Second {
			drained = drained.Add(-emission)
			n++
		}
	}
	return n
}

func (l *leasedLoad) calls() (sum int64) {
	for _, s := range l.nodes {
		sum += s.Stats().Calls
	}
	return sum
}

// Three instances lease one key from one Redis, single or a cluster: together they admit
// what the limit does, and ask seldom.
func TestLeased(t *testing.T) {
	t.Parallel()
	single := testdep.Redis(t)
	servers := append(testdep.RedisCluster(t, 3, 0), single)
	urls := map[string]string{"single": "redis://" + single.Addr, "cluster": "redis-cluster://" + servers[0].Addr}
	for name, url := range urls {
		for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow} {
			if !testdep.Long() && (name == "single") != (a == tidegate.TokenBucket) {
				continue
			}
			t.Run(fmt.Sprint(name, " ", a), func(t *testing.T) {
				attempt := 0
				testdep.Undisturbed(t, disturbance, func(t testing.TB) {
					attempt++
					l := newLeasedLoad(t, fmt.Sprintf("%s?prefix=leased-%s-%d", url, a, attempt), a, 500*time.Millisecond)
					l.press()
					if n := l.over(); n > 0 && a == tidegate.TokenBucket {
						t.Errorf("%d of %d admissions are too many", n, len(l.admitted))
					}
					least, most := leasedEvents*int(leasedFor/time.Second)*9/10, leasedEvents*(1+int(leasedFor/time.Second))
					if l.asked < int64(2*least) {
						t.Logf("%d requests are all that this machine brings in %s", l.asked, leasedFor)
						least = 0
					}
					if n := len(l.admitted); n < least || n > most+leasedEvents/10 {
						t.Errorf("%d are admitted in %s; want %d to %d", n, leasedFor, least, most)
					}
					// Calls go by time, and requests by what the machine brings.
					if calls := l.calls(); least > 0 && calls*20 > l.asked {
						t.Errorf("%d calls for %d requests, decided by %v", calls, l.asked, l.by)
					}
				}, servers...)
			})
		}
	}
}

// Redis is gone for a second in the middle: all requests are answered, in all not more than
// the bounds of an outage admit, and leases come back by themselves.
func TestLeasedOutage(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	attempt := 0
	testdep.Undisturbed(t, disturbance, func(t testing.TB) {
		attempt++
		l := newLeasedLoad(t, fmt.Sprintf("redis://%s?prefix=leased-%d", server.Addr, attempt), tidegate.TokenBucket, 100*time.Millisecond)
		var all sync.WaitGroup
		all.Go(l.press)
		time.Sleep(leasedFor / 3)
		server.Pause()
		time.Sleep(leasedFor / 3)
		server.Resume()
		all.Wait()
		if n, most := len(l.admitted), leasedEvents*(1+int(leasedFor/time.Second))*5/4; n > most || l.by[tidegate.OriginLocal] == 0 {
			t.Errorf("%d are admitted, by %v; want at most %d", n, l.by, most)
		}
		deadline := time.Now().Add(20 * time.Second)
		for l.nodes[0].Health().Leases == 0 {
			if time.Now().After(deadline) {
				t.Fatalf("no leases after Redis has come back: %+v", l.nodes[0].Health())
			}
			if _, err := l.nodes[0].Take(context.Background(), []tidegate.Check{{Key: "one", Limit: l.limit, Cost: 1}}, 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
	}, server)
}
