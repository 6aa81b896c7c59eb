package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Callers of servers that answer are decided by them, whatever is the matter with another
// one, alone or in the same request, and what is said of it is about that one.
func TestTroubleIsOfOneServer(t *testing.T) {
	for name, is := range faults {
		for multi := range 2 {
			if testdep.RaceEnabled && (multi == 0) != (name == "broken" || name == "slow") {
				continue // it takes its time: each fault is seen with one kind of request
			}
			t.Run(fmt.Sprint(name, " ", multi), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testTroubleIsOfOneServer(t, is, multi == 1) })
			})
		}
	}
}

func testTroubleIsOfOneServer(t *testing.T, is fault, multi bool) {
	c := newCluster("a:1", "b:2", "c:3")
	var told []string
	g := newNode(c, Options{OnState: func(h Health) {
		line := h.State.String()
		for _, s := range h.Servers {
			if s.State != OK {
				line += " " + s.Name + " " + s.State.String()
			}
		}
		told = append(told, line)
	}})
	defer g.Close()
	l, all := limit("each", 1_000_000, tidegate.FailLocal), limit("all", 1_000_000, tidegate.FailLocal)
	for i := range 90 {
		c.move(i%3, fmt.Sprint("k", i))
	}
	c.move(1, "everyone")
	ask := func(i int) tidegate.Decision {
		checks := []tidegate.Check{{Key: fmt.Sprint("k", i%90), Limit: l, Cost: 1}}
		if multi {
			checks = append(checks, tidegate.Check{Key: "everyone", Limit: all, Cost: 1})
		}
		d, err := g.Take(t.Context(), checks, 1)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	run := func(d time.Duration) (healthy, dead, healthyLocal, deadLocal int) {
		for i, until := 0, time.Now().Add(d); time.Now().Before(until); i++ {
			d := ask(i)
			local := d.Receipt.Origin != tidegate.OriginStore
			if !d.OK {
				t.Fatalf("%+v", d)
			}
			if i%3 == 1 {
				dead++
				if local {
					deadLocal++
				}
			} else {
				healthy++
				if local {
					healthyLocal++
				}
			}
			time.Sleep(time.Millisecond)
		}
		return healthy, dead, healthyLocal, deadLocal
	}
	run(time.Second)
	c.servers[1].set(is)
	if multi { // which one it is has to be found out
		run(time.Second)
	}
	healthy, dead, healthyLocal, deadLocal := run(12 * time.Second)
	if healthyLocal > 0 || healthy < 1000 {
		t.Errorf("%d of %d requests for servers that answer were decided locally", healthyLocal, healthy)
	}
	if deadLocal < dead-5 {
		t.Errorf("%d of %d requests for the server in trouble were decided locally", deadLocal, dead)
	}
	if h := g.Health(); h.State != Partial || h.Servers[1].State != Degraded || h.Servers[0].State != OK || h.Servers[2].State != OK || h.Why == nil {
		t.Errorf("%+v", h)
	}
	c.servers[1].set(none)
	run(5 * time.Second)
	if h := g.Health(); h.State != OK || h.Backlog != 0 || h.Lost != 0 {
		t.Errorf("%+v", h)
	}
	if want := "partial b:2 degraded, partial b:2 recovering, ok"; strings.Join(told, ", ") != want {
		t.Errorf("told %q, want %q", told, want)
	}
	if _, _, h, d := run(time.Second); h+d > 0 {
		t.Errorf("%d are still decided locally", h+d)
	}
}

// degrade opens the circuit of one server.
func degrade(t *testing.T, g *Node, c *cluster, server int, key string) {
	t.Helper()
	c.servers[server].set(broken)
	l := limit("degrade", 1_000_000, tidegate.FailOpen)
	for range 20 {
		_, _ = g.Take(t.Context(), []tidegate.Check{{Key: key, Limit: l, Cost: 1}}, 1)
		time.Sleep(5 * time.Millisecond)
	}
	if h := g.Health(); h.Servers[server].State != Degraded {
		t.Fatalf("%+v", h)
	}
}

// A request of which fallbacks decide a part is charged to both parts or to none, and
// given back to both.
func TestMixedIsAllOrNone(t *testing.T) {
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Concurrency,
	} {
		for copies := range 3 {
			t.Run(fmt.Sprint(a, " ", copies+1), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testMixed(t, a, copies+1) })
			})
		}
	}
}

func testMixed(t *testing.T, a tidegate.Algorithm, copies int) {
	c := newCluster("a:1", "b:2")
	g := newNode(c, Options{DenyEntries: -1})
	defer g.Close()
	c.move(1, "there")
	made := func(name string, events int64) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: name, Events: events, Period: 24 * time.Hour, Algorithm: a})
	}
	here, there := made("here", 12), made("there", 6)
	degrade(t, g, c, 0, "here")
	checks := []tidegate.Check{{Key: "here", Limit: here, Cost: 1}, {Key: "there", Limit: there, Cost: 1}}
	left := func() (int64, int64) {
		t.Helper()
		a, err := g.local.Take(t.Context(), []tidegate.Check{{Key: "here", Limit: here}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.servers[1].Take(t.Context(), []tidegate.Check{{Key: "there", Limit: there}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return a.Remaining, b.Remaining
	}
	var granted int64
	var receipts []tidegate.Receipt
	for range 10 {
		d, err := g.Take(t.Context(), checks, copies)
		if err != nil {
			t.Fatal(err)
		}
		if d.OK && d.Receipt.Origin != tidegate.OriginStore {
			t.Errorf("%+v", d)
		}
		if !d.OK && d.Limit != there {
			t.Errorf("refused by %s", d.Limit)
		}
		for i := range d.Granted {
			receipts = append(receipts, d.Receipt.Copy(i))
		}
		granted += d.Granted
		if x, y := left(); granted > 6 || x != 12-granted || y != 6-granted {
			t.Fatalf("%d granted, %d of 12 left here, %d of 6 there", granted, x, y)
		}
	}
	if granted != 6 {
		t.Errorf("%d granted of 6", granted)
	}
	back := []tidegate.Check{{Key: "here", Limit: here, Cost: -1}, {Key: "there", Limit: there, Cost: -1}}
	for i, r := range receipts {
		if a == tidegate.Concurrency {
			if err := g.Renew(t.Context(), r, checks); err != nil {
				t.Errorf("renew %d: %v", i, err)
			}
		}
		if err := g.Adjust(t.Context(), r, back); err != nil {
			t.Errorf("give %d back: %v", i, err)
		}
	}
	if x, y := left(); x != 12 || y != 6 {
		t.Errorf("%d of 12 left here, %d of 6 there, after all was given back", x, y)
	}
	for range 3 { // what was given back is not owed
		if d, err := g.Take(t.Context(), checks, 1); err != nil || !d.OK {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	c.servers[0].set(none)
	time.Sleep(5 * time.Second)
	want := int64(3)
	if a == tidegate.Concurrency { // a lease cannot be taken unasked
		want = 0
	}
	if got := c.servers[0].posted(here, "here"); got != want {
		t.Errorf("%d were charged when the server answered again, want %d", got, want)
	}
}

// What is owed to counters of a server that does not answer follows them when they move.
func TestBacklogMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a:1", "b:2")
		g := newNode(c, Options{DenyEntries: -1})
		defer g.Close()
		l := limit("moves", 1000, tidegate.FailLocal)
		keys := []string{"x", "y", "z"}
		degrade(t, g, c, 0, "x")
		for _, k := range keys {
			for range 7 {
				if d, err := g.Take(t.Context(), []tidegate.Check{{Key: k, Limit: l, Cost: 1}}, 1); err != nil || !d.OK || d.Receipt.Origin != tidegate.OriginLocal {
					t.Fatalf("%+v, %v", d, err)
				}
			}
		}
		c.move(1, "x", "y")
		// Others may have charges for it that the server does not know.
		if d, _ := g.Take(t.Context(), []tidegate.Check{{Key: "x", Limit: l, Cost: 1}}, 1); d.Receipt.Origin != tidegate.OriginLocal {
			t.Errorf("it is asked of the server that it has just moved to: %+v", d)
		}
		time.Sleep(2 * time.Second)
		if x, y, z := c.servers[1].posted(l, "x"), c.servers[1].posted(l, "y"), c.servers[1].posted(l, "z"); x != 8 || y != 7 || z != 0 {
			t.Errorf("%d, %d and %d were charged where they live now", x, y, z)
		}
		if d, _ := g.Take(t.Context(), []tidegate.Check{{Key: "x", Limit: l, Cost: 1}}, 1); d.Receipt.Origin != tidegate.OriginStore || d.Remaining != 1000-9 {
			t.Errorf("%+v", d)
		}
		if h := g.Health(); h.Backlog != 1 || h.State != Partial {
			t.Errorf("%+v", h)
		}
		// The server is removed, and what it had lives elsewhere.
		c.move(1, "z")
		c.mu.Lock()
		c.names = []string{"", "b:2"}
		c.mu.Unlock()
		time.Sleep(2 * time.Second)
		if h := g.Health(); h.Backlog != 0 || h.State != OK || c.servers[1].posted(l, "z") != 7 {
			t.Errorf("%+v", h)
		}
		if g.impaired.Load() {
			t.Error("it is still looked where checks live")
		}
	})
}

// stuck is a store in which one key cannot be charged unasked.
type stuck struct{ *faulty }

func (s stuck) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if checks[0].Key == "stuck" {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.faulty.Adjust(ctx, r, checks)
}

// One post that fails is not in the way of others: none of them waits for longer
// than keys are held.
func TestOneAmountIsNotInTheWay(t *testing.T) {
	most := 4096
	if testdep.RaceEnabled { // which only takes time where one goroutine asks
		most = 256
	}
	for entries := 1; entries <= most; entries *= 4 {
		t.Run(fmt.Sprint(entries), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way := stuck{&faulty{}}
				g := newNode(way, Options{})
				defer g.Close()
				way.set(broken)
				l := limit("backlog", 1000, tidegate.FailLocal)
				keys := []string{"stuck"}
				for i := range entries {
					keys = append(keys, fmt.Sprint(i))
				}
				for range 10 {
					for _, k := range keys {
						_, _ = g.Take(t.Context(), []tidegate.Check{{Key: k, Limit: l, Cost: 1}}, 1)
					}
					time.Sleep(10 * time.Millisecond)
				}
				way.set(none)
				time.Sleep(heldFor)
				for _, k := range keys[1:] {
					if got := way.posted(l, k); got == 0 {
						t.Fatalf("%s was not charged", k)
					}
				}
			})
		})
	}
}

// A line before one server does not hide that another, which takes part in the same
// requests, is silent.
func TestSilenceBehindALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a:1", "b:2")
		g := newNode(c, Options{})
		defer g.Close()
		l, all := limit("each", 1_000_000, tidegate.FailLocal), limit("all", 1_000_000, tidegate.FailLocal)
		c.move(1, "everyone")
		stop := make(chan struct{})
		every := time.Millisecond
		if testdep.RaceEnabled { // which only takes time where nothing runs at once
			every = 10 * time.Millisecond
		}
		var workers sync.WaitGroup
		for i := range 4 * minQueue {
			workers.Go(func() {
				for j := 0; ; j++ {
					select {
					case <-stop:
						return
					default:
					}
					checks := []tidegate.Check{{Key: fmt.Sprint(i, " ", j%7), Limit: l, Cost: 1}, {Key: "everyone", Limit: all, Cost: 1}}
					if _, err := g.Take(t.Context(), checks, 1); err != nil {
						t.Error(err)
					}
					time.Sleep(every)
				}
			})
		}
		time.Sleep(time.Second)
		c.servers[1].set(frozen)
		time.Sleep(time.Second)
		if h := g.Health(); h.Servers[1].State != Degraded || h.Servers[0].State != OK {
			t.Errorf("%+v", h.Servers)
		}
		c.servers[1].set(none)
		close(stop)
		workers.Wait()
		time.Sleep(2 * lateFor)
	})
}

// stuckCluster is a cluster in which reservations get no answer.
type stuckCluster struct{ *cluster }

func (stuckCluster) Reserve(ctx context.Context, _ []tidegate.Check, _ time.Duration) (tidegate.Decision, error) {
	<-ctx.Done()
	return tidegate.Decision{}, ctx.Err()
}

func (stuckCluster) Settle(ctx context.Context, _ tidegate.Receipt, _ int64) error {
	<-ctx.Done()
	return ctx.Err()
}

// A crowd of calls that several servers take part in, and that get no answer, are failures like
// others: which of the servers was heard nobody asks.
func TestCrowdOfCallsOverSeveralServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a:1", "b:2")
		g := newNode(stuckCluster{c}, Options{})
		l := limit("each", 1_000_000, tidegate.FailLocal)
		c.move(1, "everyone")
		spend(t, g, l, "everyone", 1) // both servers are known
		var callers sync.WaitGroup
		for i := range 2 * minQueue {
			callers.Go(func() {
				checks := []tidegate.Check{{Key: fmt.Sprint(i), Limit: l, Cost: 1, Estimate: true}, {Key: "everyone", Limit: l, Cost: 1, Estimate: true}}
				if d, err := g.Reserve(t.Context(), checks, time.Hour); err != nil || !byFallback(&d) {
					t.Errorf("%+v, %v", d, err)
				}
			})
			callers.Go(func() {
				r := tidegate.Receipt{At: 1, Handle: tidegate.NewHandle()}
				if err := g.Settle(t.Context(), r, 1); !unsure(err) {
					t.Errorf("settle: %v", err)
				}
			})
		}
		callers.Wait()
		if h := g.Health(); h.State != OK || h.Timeouts != 4*minQueue { // they answer what they are asked by themselves
			t.Errorf("%+v", h)
		}
		_ = g.Close()
		time.Sleep(2 * lateFor)
	})
}
