package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// cutter is a proxy before Redis that is away, or cuts connections: before a request is
// passed on, or before its answer is.
type cutter struct {
	net.Listener
	target string
	away   atomic.Bool
	cuts   atomic.Int64 // of a thousand pieces that are passed on
	cut    atomic.Int64 // so often it did
	mu     sync.Mutex
	open   map[net.Conn]bool // under mu
}

func newCutter(t testing.TB, target string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l, target: target, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return c
}

func (c *cutter) serve(down net.Conn) {
	defer down.Close()
	if c.away.Load() {
		return
	}
	up, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer up.Close()
	c.mu.Lock()
	c.open[down] = true
	c.mu.Unlock()
	go c.pass(up, down)
	c.pass(down, up)
}

func (c *cutter) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if rand.Int64N(1000) < c.cuts.Load() {
			c.cut.Add(1)
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// leave closes all connections, and takes no others.
func (c *cutter) leave() {
	c.away.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Close()
	}
	clear(c.open)
}

// What was admitted in an outage is charged to Redis once, although connections break
// while it is posted: before posts arrive, and before their answers do.
func TestPostsAreChargedOnce(t *testing.T) {
	server := testdep.Redis(t)
	way := newCutter(t, server.Addr)
	s := open(t, "redis://"+way.Addr().String(), fleet.Options{})
	var limits []*tidegate.Limit
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Quota,
	} {
		spec := tidegate.Spec{Name: a.String(), Scope: "user", Algorithm: a, Events: 1000, Period: 300 * 24 * time.Hour}
		switch a {
		case tidegate.Quota:
			spec.Period, spec.Calendar = 0, tidegate.Year
		case tidegate.LeakyBucket:
			spec.Burst = 999
		}
		limits = append(limits, tidegate.MustLimit(spec))
	}
	const keys = 100
	check := func(l *tidegate.Limit, k int, cost int64) []tidegate.Check {
		return []tidegate.Check{{Key: fmt.Sprint(k), Limit: l, Cost: cost, MaxWait: l.Period}}
	}
	admitted := map[string]int64{}
	for outage := range 2 {
		way.leave()
		testdep.Eventually(t, "degraded", func() bool {
			_, _ = s.Take(t.Context(), check(limits[0], -1, 1), 1)
			return s.Health().Status == fleet.Degraded
		})
		for _, l := range limits {
			for k := range keys {
				d, err := s.Unqueued().Take(t.Context(), check(l, k, int64(1+k%5)), 1)
				if err != nil || !d.OK {
					t.Fatalf("%s: %+v, %v", l, d, err)
				}
				admitted[fmt.Sprint(l, k)] += int64(1 + k%5)
			}
		}
		way.cuts.Store(300)
		way.away.Store(false)
		testdep.Eventually(t, fmt.Sprintf("connections are cut in outage %d", outage), func() bool { return way.cut.Load() > int64(50*(outage+1)) })
		way.cuts.Store(0)
		testdep.Eventually(t, "all is posted", func() bool { h := s.Stats(); return h.Backlog == 0 && s.Health().Status == fleet.OK })
	}
	if h := s.Stats(); h.Lost != 0 {
		t.Errorf("%d amounts are lost", h.Lost)
	}
	direct := open(t, "redis://"+server.Addr, fleet.Options{Deadline: patient, JoinLater: true})
	for _, l := range limits {
		for k := range keys {
			d, err := direct.Unqueued().Take(t.Context(), check(l, k, 0), 1)
			if err != nil || d.Err != nil {
				t.Fatal(d, err)
			}
			used := l.Capacity() - d.Remaining
			if l.Algorithm == tidegate.TokenBucket || l.Algorithm == tidegate.LeakyBucket {
				used = int64((d.ResetAfter*time.Duration(l.Events) + l.Period - 1) / l.Period)
			}
			if want := admitted[fmt.Sprint(l, k)]; used != want {
				t.Errorf("%s: %d charged to %d, %d were admitted", l, used, k, want)
			}
		}
	}
}
