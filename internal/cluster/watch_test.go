package cluster

import (
	"context"
	"errors"
	"sync"
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

// watched is how many watches the flights have that are listed, and how many wait; one is
// any of the watches.
func watched(s *Store) (watches, waiting int, one *watch) {
	for i := range s.lanes {
		at := &s.lanes[i]
		at.mu.Lock()
		for _, f := range at.flights {
			watches += len(f.watches)
			waiting += f.aboard.count + f.next.count
			one = f.watch
		}
		at.mu.Unlock()
	}
	return watches, waiting, one
}

// Callers whose contexts end together are back together, whatever the inner store does;
// others wait as long as theirs.
func TestContextsThatEndTogether(t *testing.T) {
	with(t, plain, Options{Deadline: time.Second}, func(t *testing.T, c *crowd, inner *slow) {
		inner.deaf = make(chan struct{})
		short, cancel := context.WithTimeout(context.Background(), 7*time.Millisecond)
		defer cancel()
		long, cancelLong := context.WithTimeout(context.Background(), 11*time.Millisecond)
		defer cancelLong()
		long = context.WithValue(long, trip, "another one that ends with it")
		for _, ctx := range []context.Context{short, short, short, short, long, short, long, long, long} {
			c.comeUnder(ctx, hundred)
		}
		if n, _, _ := watched(c.store.(*Store)); n != 2 {
			t.Errorf("%d watches, want one for each end", n)
		}
		time.Sleep(9 * time.Millisecond)
		synctest.Wait()
		if n, waiting, _ := watched(c.store.(*Store)); n != 1 || waiting != 4 {
			t.Errorf("%d watches, and %d wait; want 1 and 4", n, waiting)
		}
		c.Wait()
		for i, who := range c.told {
			want := 7 * time.Millisecond
			if i == 4 || i > 5 {
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

// Contexts that outlive a flight know nothing of it afterwards, and a flight that is used
// again is not ended by them.
func TestContextOutlivesFlight(t *testing.T) {
	with(t, plain, Options{Deadline: time.Second}, func(t *testing.T, c *crowd, inner *slow) {
		shared, end := context.WithTimeout(context.Background(), time.Hour)
		for range 5 {
			c.comeUnder(shared, hundred)
		}
		_, _, old := watched(c.store.(*Store))
		if old == nil {
			t.Fatal("those who end together are not watched")
		}
		c.Wait()
		synctest.Wait()
		old.lane.mu.Lock()
		if old.flight != nil || old.stop() {
			t.Error("the flight has ended, and is still watched")
		}
		old.lane.mu.Unlock()
		other, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		for range 5 {
			c.comeUnder(other, hundred)
		}
		end()
		old.end() // as if it had been too late to stop it
		c.Wait()
		for i, who := range c.told {
			if who.err != nil || !who.d.OK {
				t.Errorf("%d was told %+v, %v", i, who.d, who.err)
			}
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
