package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
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

// counted is a context that knows how many functions are to be called at its end.
type counted struct {
	context.Context
	set atomic.Int64
}

// Value hides what is inside: package context would go there directly.
func (c *counted) Value(any) any { return nil }

func (c *counted) AfterFunc(f func()) (stop func() bool) {
	c.set.Add(1)
	undo := context.AfterFunc(c.Context, f)
	return func() bool {
		if undo() {
			c.set.Add(-1)
			return true
		}
		return false
	}
}

// within is a context for some time.
func within(t *testing.T, d time.Duration) (*counted, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return &counted{Context: ctx}, cancel
}

// inLine is how many wait.
func inLine(s *Store) (n int) {
	for i := range s.lanes {
		at := &s.lanes[i]
		at.mu.Lock()
		for f := at.first; f != nil; f = f.behind {
			n += f.aboard.waiting()
			if f.next != nil {
				n += f.next.waiting()
			}
		}
		at.mu.Unlock()
	}
	return n
}

// Callers whose contexts end together are back together, whatever the inner store does;
// others wait as long as theirs. One function is called at the end of each context, and
// one for whoever came first under it.
func TestContextsThatEndTogether(t *testing.T) {
	with(t, plain, Options{Deadline: time.Second}, func(t *testing.T, c *crowd, inner *slow) {
		inner.deaf = make(chan struct{})
		short, _ := within(t, 7*time.Millisecond)
		long, _ := within(t, 11*time.Millisecond)
		other := hundred
		other.Key = "bob"
		for _, who := range []struct {
			ctx   *counted
			check tidegate.Check
		}{{short, hundred}, {short, hundred}, {short, other}, {short, hundred}, {long, hundred}, {long, other}, {long, other}, {long, hundred}} {
			c.comeUnder(who.ctx, who.check)
		}
		if a, b := short.set.Load(), long.set.Load(); a != 2 || b != 2 {
			t.Errorf("%d and %d functions for two ends, want 2 and 2", a, b)
		}
		time.Sleep(9 * time.Millisecond)
		synctest.Wait()
		if n := inLine(c.store.(*Store)); n != 4 {
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

// Contexts that live on know nothing of those who have waited under them, however many
// others came in between.
func TestContextsThatLiveOn(t *testing.T) {
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		a, end := within(t, time.Hour)
		b, _ := within(t, time.Hour)
		for range 20 {
			c.comeUnder(a, hundred)
			c.comeUnder(a, hundred)
			c.comeUnder(b, hundred)
			c.comeUnder(b, hundred)
			c.Wait()
		}
		if a, b := a.set.Load(), b.set.Load(); a != 0 || b != 0 {
			t.Errorf("%d and %d functions are left", a, b)
		}
		late := c.comeUnder(b, hundred)
		end()
		c.Wait()
		if late.err != nil || !late.d.OK {
			t.Errorf("who waited under another was told %+v, %v", late.d, late.err)
		}
		if got := c.granted(); got != 81 {
			t.Errorf("%d granted of 81", got)
		}
	})
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
	for end := time.Now().Add(30 * time.Second); s.Stats().InFlight > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("calls do not come back")
		}
	}
	charged := 1_000_000 - inner.left(t, l)
	if passed == 0 || left == 0 || charged < passed || charged > passed+left {
		t.Errorf("%d passed and %d left without an answer; %d were charged", passed, left, charged)
	}
}
