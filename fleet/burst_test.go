package fleet_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A burst is not a fault of Redis. 200 addresses that have used up their limit come back
// at once over three nodes with the default deadline, beside 25 that have not. None of the
// former is admitted, whether the node has seen it before or not, and none of the latter
// is refused by the limit that all share while there are places.
func TestBurst(t *testing.T) {
	single := testdep.Redis(t)
	servers := append(testdep.RedisCluster(t, 3, 0), single)
	urls := map[string]string{"single": "redis://" + single.Addr}
	var addrs []string
	for _, n := range servers[:3] {
		addrs = append(addrs, n.Addr)
	}
	urls["cluster"] = "redis-cluster://" + strings.Join(addrs, ",")
	for name, url := range urls {
		for _, free := range []int64{10, 35} { // places: for some of those who have not, and for all
			for _, seen := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d free/seen %v", name, free, seen), func(t *testing.T) {
					attempt := 0
					testdep.Undisturbed(t, disturbance, func(t testing.TB) {
						attempt++
						b := &burst{
							TB: t, url: fmt.Sprintf("%s?prefix=burst-%d-%v-%d", url, free, seen, attempt), free: free, seen: seen,
							deadline: deadlineOf(attempt),
						}
						b.run()
						b.check()
					}, servers...)
				})
			}
		}
	}
}

const (
	burstAddresses = 200
	burstEach      = 5 // events an hour
	burstHonest    = 25
	burstNodes     = 3
)

type burst struct {
	testing.TB
	url      string
	free     int64
	seen     bool
	deadline time.Duration

	ip, wide *tidegate.Limit
	nodes    []*fleet.Store
	over     atomic.Int64 // requests admitted of those who have used up theirs
	admitted atomic.Int64 // of the others
	refused  atomic.Int64 // of the others, by the limit that all share
	local    atomic.Int64
}

func (b *burst) checks(key string) []tidegate.Check {
	return []tidegate.Check{{Key: key, Limit: b.ip, Cost: 1}, {Limit: b.wide, Cost: 1}}
}

// run uses up the limits of all addresses, and then has everybody come at once.
func (b *burst) run() {
	b.ip = tidegate.MustLimit(tidegate.Spec{Name: "burst", Scope: "ip", Events: burstEach, Period: time.Hour, Algorithm: tidegate.SlidingLog})
	b.wide = tidegate.MustLimit(tidegate.Spec{Name: "burst", Scope: "everyone", Events: burstAddresses*burstEach + b.free, Period: 24 * time.Hour, Algorithm: tidegate.SlidingLog})
	calm := open(b.TB, b.url, fleet.Options{Deadline: patient})
	for range burstNodes {
		b.nodes = append(b.nodes, open(b.TB, b.url, fleet.Options{Deadline: b.deadline}))
	}
	for i, s := range b.nodes {
		testdep.Eventually(b.TB, fmt.Sprint("instances of ", i), func() bool { return s.Instances() == burstNodes+1 })
	}
	for i := range burstAddresses {
		d, err := calm.Take(b.Context(), b.checks(fmt.Sprint("10.0.0.", i)), burstEach)
		if err != nil || d.Granted != burstEach {
			b.Fatalf("%+v, %v", d, err)
		}
		for _, s := range b.nodes {
			if b.seen {
				_, _ = s.Take(b.Context(), b.checks(fmt.Sprint("10.0.0.", i)), 1)
			}
		}
	}
	if b.seen {
		time.Sleep(1100 * time.Millisecond) // refusals are remembered for a second
	}
	b.all()
}

// check fails if something happened that should not have.
func (b *burst) check() {
	b.Logf("%d of %d admitted, %d refused, %d decided locally", b.admitted.Load(), burstHonest, b.refused.Load(), b.local.Load())
	if n := b.over.Load(); n > 0 {
		b.Errorf("%d of %d requests of addresses that had used up their limit were admitted", n, burstNodes*burstAddresses)
	}
	if got, want := b.admitted.Load(), min(b.free, burstHonest); got != want {
		b.Errorf("%d of %d were admitted to %d places, and %d refused by the limit that all share", got, burstHonest, b.free, b.refused.Load())
	}
	for i, s := range b.nodes {
		if h := s.Health(); h.Status != fleet.OK {
			b.Errorf("node %d is %s: %v", i, h.Status, h.Why)
		}
	}
}

// disturbance is for how long the machine may not let this process run, or Redis beside it,
// until a deadline may be missed.
const disturbance = fleet.DefaultDeadline * 3 / 4

// deadlineOf is the default deadline at the first attempt. A machine that was disturbed is so
// much slower that later ones have more time.
func deadlineOf(attempt int) time.Duration { return fleet.DefaultDeadline << min(attempt-1, 9) }

// all has everybody come at once.
func (b *burst) all() {
	var all sync.WaitGroup
	start := make(chan struct{})
	for k, s := range b.nodes {
		for i := range burstAddresses {
			all.Go(func() {
				<-start
				d, err := s.Take(b.Context(), b.checks(fmt.Sprint("10.0.0.", i)), 1)
				if err != nil || d.OK {
					b.over.Add(1)
				}
				b.note(&d)
			})
		}
		for i := k; i < burstHonest; i += burstNodes {
			all.Go(func() {
				<-start
				d, err := s.Take(b.Context(), b.checks(fmt.Sprint("192.0.2.", i)), 1)
				switch {
				case err == nil && d.OK:
					b.admitted.Add(1)
				case err == nil && d.Limit == b.wide:
					b.refused.Add(1)
				}
				b.note(&d)
			})
		}
	}
	close(start)
	all.Wait()
}

func (b *burst) note(d *tidegate.Decision) {
	if d.Receipt.Origin == tidegate.OriginLocal {
		b.local.Add(1)
	}
}

// Whatever a burst is counted by: limits that are asked for alone, and so go in batches.
func TestBurstOfOneLimit(t *testing.T) {
	server := testdep.Redis(t)
	url := "redis://" + server.Addr
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows, tidegate.Quota} {
		t.Run(a.String(), func(t *testing.T) {
			attempt := 0
			testdep.Undisturbed(t, disturbance, func(t testing.TB) {
				attempt++
				spec := tidegate.Spec{Name: "one", Scope: "ip", Events: burstEach, Period: 24 * time.Hour, Algorithm: a}
				if a == tidegate.Quota {
					spec.Period, spec.Calendar = 0, tidegate.Month
				}
				l := tidegate.MustLimit(spec)
				url := fmt.Sprintf("%s?prefix=one-%d-%d", url, a, attempt)
				calm := open(t, url, fleet.Options{Deadline: patient})
				var nodes []*fleet.Store
				for range burstNodes {
					nodes = append(nodes, open(t, url, fleet.Options{Deadline: deadlineOf(attempt)}))
				}
				for i, s := range nodes {
					testdep.Eventually(t, fmt.Sprint("instances of ", i), func() bool { return s.Instances() == burstNodes+1 })
				}
				check := func(i int) []tidegate.Check {
					return []tidegate.Check{{Key: fmt.Sprint("10.0.0.", i), Limit: l, Cost: 1}}
				}
				for i := range burstAddresses {
					if d, err := calm.Take(t.Context(), check(i), burstEach); err != nil || d.Granted != burstEach {
						t.Fatalf("%+v, %v", d, err)
					}
				}
				var all sync.WaitGroup
				start := make(chan struct{})
				var over atomic.Int64
				for _, s := range nodes {
					for i := range burstAddresses {
						all.Go(func() {
							<-start
							if d, err := s.Take(t.Context(), check(i), 1); err != nil || d.OK {
								over.Add(1)
							}
						})
					}
				}
				close(start)
				all.Wait()
				if n := over.Load(); n > 0 {
					t.Errorf("%d of %d requests of addresses that had used up their limit were admitted", n, burstNodes*burstAddresses)
				}
			}, server)
		})
	}
}
