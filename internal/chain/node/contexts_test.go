package node

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// comeUnder is come under a context of the caller's.
func (c *crowd) comeUnder(ctx context.Context, checks ...tidegate.Check) *told {
	who := new(told)
	c.told = append(c.told, who)
	start := time.Now()
	c.Go(func() {
		who.d, who.err = c.store.Take(ctx, checks, 1)
		who.after = time.Since(start)
	})
	synctest.Wait()
	return who
}

// lasting is a context for some time.
func lasting(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// inLine is how many wait.
func inLine(s *Node) (n int) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for c := sh.first; c != nil; c = c.older {
			n += c.waiting()
		}
		sh.mu.Unlock()
	}
	return n
}

// Callers whose contexts end together are back together, whatever the inner store does;
// others wait as long as theirs.
func TestContextsThatEndTogether(t *testing.T) {
	with(t, plain, Options{Deadline: time.Second}, func(t *testing.T, c *crowd, inner *slow) {
		inner.deaf = make(chan struct{})
		short, long := lasting(t, 7*time.Millisecond), lasting(t, 11*time.Millisecond)
		other := hundred
		other.Key = "bob"
		for _, who := range []struct {
			ctx   context.Context
			check tidegate.Check
		}{{short, hundred}, {short, hundred}, {short, other}, {short, hundred}, {long, hundred}, {long, other}, {long, other}, {long, hundred}} {
			c.comeUnder(who.ctx, who.check)
		}
		time.Sleep(9 * time.Millisecond)
		synctest.Wait()
		if n := inLine(c.store.(*Node)); n != 4 {
			t.Errorf("%d wait, want 4", n)
		}
		c.Wait()
		for i, who := range c.told {
			want := 7 * time.Millisecond
			if i > 3 {
				want = 11 * time.Millisecond
			}
			if who.after != want || !errors.Is(who.err, context.DeadlineExceeded) {
				t.Errorf("%d was told %v after %s, want %s", i, who.err, who.after, want)
			}
		}
		close(inner.deaf)
		synctest.Wait()
		time.Sleep(trip)
		synctest.Wait()
		if got := inner.left(t, hundred); got != 99 {
			t.Errorf("%d left of 100: those who left before they were asked for were charged", got)
		}
	})
}

// endsAt is a context that ends when it is looked at for the nth time.
type endsAt struct {
	context.Context
	looks int
}

func (e *endsAt) Err() error {
	if e.looks--; e.looks <= 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A caller that leaves between two looks at its context has left: nothing is decided for it
// in place of a store that works.
func TestLeavesBetweenLooks(t *testing.T) {
	for looks := 1; looks <= 4; looks++ {
		s := open(t, newSlow(), Options{Deadline: patient, DenyEntries: -1})
		d, err := s.Take(&endsAt{context.Background(), looks}, []tidegate.Check{hundred}, 1)
		if n := s.Health().Calls; n == 0 && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("left at look %d: %+v, %v", looks, d, err)
		}
	}
}

// Answers and ends of contexts meet at every moment: everybody is told once, and what was
// granted was charged.
func TestEndsMeetAnswers(t *testing.T) {
	inner := newSlow()
	s := open(t, inner, Options{Deadline: patient, DenyEntries: -1})
	l := tidegate.Check{Key: "all", Limit: per(1_000_000, 24*time.Hour, tidegate.FixedWindow), Cost: 1}
	var passed, left int64
	for round := range 60 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(round)*trip/20)
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 16 {
			all.Go(func() {
				for ctx.Err() == nil {
					d, err := s.Take(ctx, []tidegate.Check{l}, 1)
					mu.Lock()
					if err == nil {
						passed += d.Granted
					} else {
						left++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		cancel()
	}
	if !testdep.Await(patient/2, func() bool { return s.Health().InFlight == 0 }) {
		t.Fatal("calls do not come back")
	}
	charged := 1_000_000 - inner.left(t, l)
	if passed == 0 || left == 0 || charged < passed || charged > passed+left {
		t.Errorf("%d passed and %d left without an answer; %d were charged", passed, left, charged)
	}
}
