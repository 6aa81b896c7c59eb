package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// paused is a server that answers late, as through a proxy that delays its answers. Both stand
// still together.
type paused struct {
	*remote

	mu    sync.Mutex
	until time.Time // under mu: it stands still until then
}

func newPaused(trip time.Duration) *paused {
	p := new(paused)
	p.remote = newRemote(32, p.pass, func() {
		time.Sleep(trip)
		p.pass()
	})
	return p
}

func (p *paused) pause(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(d)
}

// pass waits until the server goes on.
func (p *paused) pass() {
	p.mu.Lock()
	wait := time.Until(p.until)
	p.mu.Unlock()
	time.Sleep(wait)
}

// pauses is three nodes on a server that stands still now and then, for up to longest.
type pauses struct {
	limit   *tidegate.Limit
	trip    time.Duration
	longest time.Duration
	first   time.Duration // when the first begins
	every   time.Duration // between pauses, and up to twice that
	even    bool          // all nodes are asked; otherwise the first
	// asleep is for how long nobody asks after a second of requests; 0 means never.
	asleep time.Duration
}

// known is when the distance is known.
const known = 2 * time.Second

// run returns what was admitted, and how often a circuit opened.
func (p pauses) run(t *testing.T, d time.Duration) (admitted, opened int) {
	const offered = 360 // a second
	random := rand.New(rand.NewPCG(uint64(p.trip), uint64(p.longest)))
	server := newPaused(p.trip)
	var mu sync.Mutex
	var nodes []*Node
	for range 3 {
		nodes = append(nodes, New(server, forFew(Options{Instances: func() int { return 3 }, OnState: func(h Health) {
			mu.Lock()
			defer mu.Unlock()
			if h.State == Degraded {
				opened++
			}
		}})))
	}
	var asking sync.WaitGroup
	next, sleep := p.first, time.Second
	for start, asked := time.Now(), 0; time.Since(start) < d; asked++ {
		if now := time.Since(start); now >= sleep && p.asleep > 0 {
			time.Sleep(p.asleep)
			sleep = time.Since(start) + time.Second
			next = max(next, sleep-time.Duration(random.Int64N(int64(time.Second))))
		}
		if now := time.Since(start); now >= next {
			server.pause(p.longest/2 + time.Duration(random.Int64N(int64(p.longest/2))))
			next = now + p.every + time.Duration(random.Int64N(int64(p.every)))
		}
		n := nodes[0]
		if p.even {
			n = nodes[asked%3]
		}
		asking.Go(func() {
			d, err := n.Take(context.Background(), []tidegate.Check{{Key: "k", Limit: p.limit, Cost: 1}}, 1)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if d.OK {
				admitted++
			}
		})
		time.Sleep(time.Second / offered)
	}
	asking.Wait()
	for _, n := range nodes {
		_ = n.Close()
	}
	time.Sleep(2 * time.Second)
	return admitted, opened
}

// ofPauses are limits of 100 a second, by every algorithm that nodes can decide by themselves.
func ofPauses() (all []*tidegate.Limit) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog} {
		all = append(all, tidegate.MustLimit(tidegate.Spec{Name: "l", Events: 100, Period: time.Second, Algorithm: a}))
	}
	return all
}

// A server that pauses now and then for no longer than the deadline opens no circuit, however far away it is, and
// whatever counts.
func TestPausesOpenNoCircuit(t *testing.T) {
	testdep.SkipUnderRace(t)
	for i, l := range ofPauses() {
		for ms := i % 2; ms < 25; ms += bandStep {
			even := (ms+i/2)%2 == 0
			t.Run(fmt.Sprintf("%s/even=%t/%dms", l.Algorithm, even, ms), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := pauses{limit: l, trip: time.Duration(ms) * time.Millisecond, longest: DefaultDeadline, first: known, every: 2 * window, even: even}
					if _, opened := p.run(t, 20*time.Second); opened > 0 {
						t.Errorf("opened %d times", opened)
					}
				})
			})
		}
	}
}

// So it is before anybody knows how far away it is: at the start, and after hours without a request.
func TestPausesAtTheStartOpenNoCircuit(t *testing.T) {
	testdep.SkipUnderRace(t)
	l := tidegate.MustLimit(tidegate.Spec{Name: "bucket", Events: 100, Period: time.Second, Algorithm: tidegate.TokenBucket})
	for _, even := range []bool{true, false} {
		for ms := 0; ms < 25; ms += bandStep {
			t.Run(fmt.Sprintf("even=%t/%dms", even, ms), func(t *testing.T) {
				for _, first := range []time.Duration{0, 7 * time.Millisecond, 120 * time.Millisecond, 459 * time.Millisecond, 950 * time.Millisecond} {
					synctest.Test(t, func(t *testing.T) {
						p := pauses{limit: l, trip: time.Duration(ms) * time.Millisecond, longest: DefaultDeadline, first: first, every: time.Hour, even: even}
						if _, opened := p.run(t, first+150*time.Millisecond); opened > 0 {
							t.Errorf("a pause after %s opened %d circuits", first, opened)
						}
					})
				}
				synctest.Test(t, func(t *testing.T) {
					p := pauses{limit: l, trip: time.Duration(ms) * time.Millisecond, longest: DefaultDeadline, first: 0, every: window, even: even, asleep: time.Hour}
					if _, opened := p.run(t, 4*time.Hour); opened > 0 {
						t.Errorf("pauses after an hour without requests opened %d circuits", opened)
					}
				})
			})
		}
	}
}

// One that is dead from the start is noticed as well: within three deadlines if it does not answer, at once if it
// refuses connections.
func TestDeadAtTheStart(t *testing.T) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "bucket", Events: 100, Period: time.Second, Algorithm: tidegate.TokenBucket})
	f := func(is fault, within time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			n := newNode(&faulty{fault: is}, Options{})
			began := time.Now()
			for n.Health().State == OK && time.Since(began) < time.Second {
				go func() { _, _ = n.Take(context.Background(), []tidegate.Check{{Key: "k", Limit: l, Cost: 1}}, 1) }()
				time.Sleep(time.Millisecond)
			}
			if took := time.Since(began); took > within {
				t.Errorf("noticed after %s, want %s", took, within)
			}
			_ = n.Close()
			time.Sleep(2 * time.Second)
		})
	}
	f(frozen, 3*DefaultDeadline+time.Millisecond)
	f(broken, DefaultFailures*time.Millisecond)
}

// Longer pauses do, and whoever decides meanwhile, what is admitted stays within the limit.
func TestPausesAdmitNoMore(t *testing.T) {
	testdep.SkipUnderRace(t)
	const lasts = 30 * time.Second
	trips := []int{0, 1, 5, 10, 15, 20, 24}
	for i, l := range ofPauses() {
		for j, ms := range trips {
			even := (i+j)%2 == 0
			t.Run(fmt.Sprintf("%s/even=%t/%dms", l.Algorithm, even, ms), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := pauses{limit: l, trip: time.Duration(ms) * time.Millisecond, longest: 80 * time.Millisecond, first: known, every: window / 2, even: even}
					admitted, opened := p.run(t, lasts)
					due := l.Capacity() + 100*int64(lasts/time.Second)
					t.Logf("%d admitted, %d are due, opened %d times", admitted, due, opened)
					if int64(admitted) > due+due/100 {
						t.Errorf("%d admitted, want at most %d + 1 %%", admitted, due)
					}
				})
			})
		}
	}
}
