package node

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// A grant whose caller has left goes to the next who waits, even one that came later.
func TestGrantOfWhoLeft(t *testing.T) {
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		first := c.come(1, hundred)
		second, third := c.come(1, hundred), c.come(1, hundred)
		first.leave()
		c.Wait()
		inner.wantCalls(t, 1, 1)
		if !errors.Is(first.err, context.Canceled) || first.after != 0 {
			t.Errorf("who left was told %+v, %v after %s", first.d, first.err, first.after)
		}
		if second.after != trip || second.d.Granted != 1 {
			t.Errorf("after %s the next was granted %d, want 1 after %s", second.after, second.d.Granted, trip)
		}
		if third.after != 2*trip || third.d.Granted != 1 {
			t.Errorf("after %s the last was granted %d, want 1 after %s", third.after, third.d.Granted, 2*trip)
		}
		if got := inner.left(t, hundred); got != 98 {
			t.Errorf("%d left of 100, want 98", got)
		}
	})
}

// Where nobody else waits, what was granted stays charged; who left before it was asked
// for costs nothing.
func TestWhoLeaves(t *testing.T) {
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		alone := c.come(1, hundred)
		early, other := c.come(1, hundred), c.come(1, hundred)
		early.leave()
		synctest.Wait()
		c.come(1, hundred)
		alone.leave()
		c.Wait()
		inner.wantCalls(t, 1, 1)
		if early.err == nil || other.d.Granted != 1 {
			t.Errorf("who left was told %v, who stayed granted %d", early.err, other.d.Granted)
		}
		c.come(2, hundred).leave()
		c.Wait()
		time.Sleep(trip)
		if got := inner.left(t, hundred); got != 96 {
			t.Errorf("%d left of 100, want 96", got)
		}
	})
}

// Who joins a crowd looks at its context only after a moment. It leaves then, at whatever place it is
// and whenever its context ends, and is not asked for; a context that has a deadline is never late.
func TestWhoLeavesACrowd(t *testing.T) {
	const many = 3 * crowded
	for _, at := range []int{0, 1, crowded - 1, crowded, crowded + 1, many - 1} {
		for _, when := range []time.Duration{0, time.Millisecond, unwatched, unwatched + time.Millisecond, 4 * time.Millisecond} {
			for _, limited := range []bool{false, true} {
				with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
					inner.deaf = make(chan struct{})
					c.come(1, hundred) // those who come now wait for the next call
					var leaves *told
					for i := range many {
						switch {
						case i != at:
							c.come(1, hundred)
						case limited:
							leaves = c.comeFor(when, hundred)
						default:
							leaves = c.come(1, hundred)
							time.AfterFunc(when, leaves.leave)
						}
					}
					time.Sleep(5 * time.Millisecond)
					synctest.Wait()
					close(inner.deaf)
					inner.deaf = nil
					c.Wait()
					want, latest := context.Canceled, max(when, unwatched+time.Millisecond)
					if limited {
						want, latest = context.DeadlineExceeded, when
					}
					if !errors.Is(leaves.err, want) || leaves.after < when || leaves.after > latest {
						t.Errorf("the one at %d, who leaves after %s (%t), was told %v after %s", at, when, limited, leaves.err, leaves.after)
					}
					if inner.wantCalls(t, 1, many-1); t.Failed() {
						t.Errorf("by the one at %d, who leaves after %s (%t)", at, when, limited)
					}
				})
			}
		}
	}
}

// A caller that has left before it asks costs nothing.
func TestCancelledBefore(t *testing.T) {
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := c.store.Take(ctx, []tidegate.Check{hundred}, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("Take: %v", err)
		}
		if err := c.store.Adjust(ctx, tidegate.Receipt{}, []tidegate.Check{hundred}); !errors.Is(err, context.Canceled) {
			t.Errorf("Adjust: %v", err)
		}
		inner.wantCalls(t)
	})
}

// A store that does not return, whatever its context says, holds up nobody: callers are
// back when their contexts end, or at the deadline, and so many goroutines wait for it.
func TestDeafStore(t *testing.T) {
	with(t, plain, Options{InFlight: 5, Deadline: 20 * time.Millisecond, Failures: 1000}, func(t *testing.T, c *crowd, inner *slow) {
		inner.deaf = make(chan struct{})
		busy := 0
		for i := range 40 {
			key := hundred
			key.Key = string(rune('a' + i%8)) // five on each
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
			start := time.Now()
			d, err := c.store.Take(ctx, []tidegate.Check{key}, 1)
			err = cmp.Or(err, d.Err)
			cancel()
			switch took := time.Since(start); {
			case errors.Is(err, ErrBusy) && took == 0:
				busy++
			case !errors.Is(err, context.DeadlineExceeded) || took != 5*time.Millisecond:
				t.Errorf("Take: %v after %s", err, took)
			}
		}
		if got := working(); got > 5 || busy == 0 {
			t.Errorf("%d goroutines wait for it, and %d were told that it is busy", got, busy)
		}
		if err := c.store.Adjust(context.Background(), tidegate.Receipt{}, []tidegate.Check{hundred}); !errors.Is(err, ErrBusy) {
			t.Errorf("Adjust: %v", err)
		}
		close(inner.deaf)
		time.Sleep(trip)
		synctest.Wait()
		who := c.come(1, hundred)
		c.Wait()
		if who.err != nil {
			t.Error(who.err)
		}
		synctest.Wait() // a flight ends after all were told
		if got := c.store.(*Node).Health(); got.Busy == 0 || got.InFlight != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// Without a deadline of its own, a caller waits for that of the Store.
func TestDeadline(t *testing.T) {
	with(t, plain, Options{Deadline: 20 * time.Millisecond}, func(t *testing.T, c *crowd, inner *slow) {
		inner.deaf = make(chan struct{})
		who := c.come(1, hundred)
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if !errors.Is(who.err, ErrTimeout) || who.after != 20*time.Millisecond {
			t.Errorf("was told %v after %s", who.err, who.after)
		}
		// The call is overdue: who comes now does not wait for it.
		close(inner.deaf)
		inner.deaf = nil
		inner.wantCalls(t, 1)
		who = c.come(1, hundred)
		c.Wait()
		inner.wantCalls(t, 1)
		if who.after != trip || who.err != nil {
			t.Errorf("was told %v after %s", who.err, who.after)
		}
	})
}

// Trap 9: what failed may have been charged, and is not asked for again. Those who came
// meanwhile were not asked for yet.
func TestTrap9FailureIsNotAskedAgain(t *testing.T) {
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		inner.lost = errors.New("the answer was lost")
		for range 4 {
			c.come(1, hundred)
		}
		c.Wait()
		inner.wantCalls(t, 1, 3)
		for i, who := range c.told {
			if !errors.Is(who.err, inner.lost) || who.d.OK {
				t.Errorf("%d was told %+v, %v", i, who.d, who.err)
			}
		}
		if got := inner.left(t, hundred); got != 96 {
			t.Errorf("%d left of 100 after 4 were charged, want 96", got)
		}
	})
}

// A panic of the inner store is an error, for all who wait for it.
func TestPanic(t *testing.T) {
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		inner.wrong = "no such thing"
		who := c.come(1, hundred)
		c.Wait()
		if who.err == nil || who.err.Error() != "the store panicked: no such thing" {
			t.Error(who.err)
		}
		inner.wrong = nil
		who = c.come(1, hundred)
		c.Wait()
		if who.err != nil {
			t.Error(who.err)
		}
	})
}

// working is how many goroutines of ours there are in this bubble.
func working() (n int) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for one := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(one, "synctest bubble") && strings.Contains(one, "(*sendQueue).work") {
			n++
		}
	}
	return n
}

// A worker goes on while there is something to send, and ends then.
func TestWorkersEnd(t *testing.T) {
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		for i := range leastAlone {
			key := hundred
			key.Key = string(rune('a' + i))
			c.come(1, key)
			c.come(1, key)
		}
		if got := working(); got != leastAlone {
			t.Errorf("%d workers for %d keys", got, leastAlone)
		}
		time.Sleep(trip)
		synctest.Wait()
		if got := working(); got != leastAlone {
			t.Errorf("%d workers for the second calls of %d keys", got, leastAlone)
		}
		c.Wait()
		synctest.Wait()
		if got := working(); got != 0 {
			t.Errorf("%d workers while nothing is asked", got)
		}
	})
}
