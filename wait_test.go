package tidegate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// waiting are limits of every kind of 4 a minute, all of it used at once.
func waiting() map[string]*tidegate.Limit {
	limits := map[string]*tidegate.Limit{}
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows,
	} {
		s := tidegate.Spec{Events: 4, Period: time.Minute, Algorithm: a}
		if a == tidegate.LeakyBucket {
			s.Burst = 3
		}
		limits[a.String()] = tidegate.MustLimit(s)
	}
	return limits
}

// inBubble runs f on each of the limits, in virtual time.
func inBubble(t *testing.T, limits map[string]*tidegate.Limit, f func(t *testing.T, l *tidegate.Limit, lim *tidegate.Limiter)) {
	for name, l := range limits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, l, tidegate.New(memory.New(), l)) })
		})
	}
}

func TestWaitReturnsWhenItMayGoAhead(t *testing.T) {
	inBubble(t, waiting(), func(t *testing.T, l *tidegate.Limit, lim *tidegate.Limiter) {
		lim.AllowN(t.Context(), "alice", 4)
		d := lim.Allow(t.Context(), "alice")
		start := time.Now()
		if err := lim.Wait(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); d.OK || waited != d.RetryAfter {
			t.Errorf("waited %s, want %s", waited, d.RetryAfter)
		}
	})
}

// The turn is beyond the deadline: better to know now. Nothing is charged.
func TestWaitRefusesAtOnceWhatWouldPassTheDeadline(t *testing.T) {
	inBubble(t, waiting(), func(t *testing.T, l *tidegate.Limit, lim *tidegate.Limiter) {
		lim.AllowN(t.Context(), "alice", 4)
		need := lim.Allow(t.Context(), "alice").RetryAfter
		f := func(timeout time.Duration, want error) {
			t.Helper()
			before := lim.Peek(t.Context(), "alice")
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			start := time.Now()
			err := lim.Wait(ctx, "alice")
			if !errors.Is(err, want) {
				t.Errorf("with %s of %s: %v, want %v", timeout, need, err, want)
			}
			if want == nil {
				return
			}
			if waited := time.Since(start); waited != 0 {
				t.Errorf("with %s of %s: refused after %s", timeout, need, waited)
			}
			if after := lim.Peek(t.Context(), "alice"); after != before {
				t.Errorf("with %s of %s: a refusal changed %+v to %+v", timeout, need, before, after)
			}
		}
		for _, timeout := range []time.Duration{time.Nanosecond, need / 3, need / 2, need * 9 / 10, need - time.Microsecond} {
			f(timeout, tidegate.ErrWait)
		}
		f(need+time.Millisecond, nil)
	})
}

// In a line that is full a leaky bucket books nothing, yet the turn can be told.
func TestWaitOnAFullLine(t *testing.T) {
	l := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: time.Second, Burst: 5, Algorithm: tidegate.LeakyBucket})
	for _, timeout := range []time.Duration{5900 * time.Millisecond, 6100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			lim := tidegate.New(memory.New(), l)
			lim.AllowN(t.Context(), "alice", 6) // one is served, five are in the queue
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			start := time.Now()
			err := lim.Wait(ctx, "alice")
			switch waited := time.Since(start); {
			case timeout > 6*time.Second && (err != nil || waited != 6*time.Second):
				t.Errorf("with %s: %v after %s, want a turn after 6s", timeout, err, waited)
			case timeout < 6*time.Second && (!errors.Is(err, tidegate.ErrWait) || waited != 0):
				t.Errorf("with %s: %v after %s, want ErrWait at once", timeout, err, waited)
			}
		})
	}
}

// Token buckets are booked an hour ahead. Beyond that a waiter is told no less
// exactly whether its turn comes in time.
func TestWaitBeyondWhatIsBooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := tidegate.New(memory.New(), bucket(1, 3*time.Hour))
		lim.Allow(t.Context(), "alice")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		start := time.Now()
		if err := lim.Wait(ctx, "alice"); !errors.Is(err, tidegate.ErrWait) || time.Since(start) != 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if err := lim.Wait(t.Context(), "alice"); err != nil || time.Since(start) != 3*time.Hour {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

func TestWaitNever(t *testing.T) {
	inBubble(t, waiting(), func(t *testing.T, l *tidegate.Limit, lim *tidegate.Limiter) {
		start := time.Now()
		err := lim.WaitN(t.Context(), "alice", 5)
		if !errors.Is(err, tidegate.ErrNever) || time.Since(start) != 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if want := `tidegate: Wait("alice", 5) on ` + l.String(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want it to begin with %s", err, want)
		}
		if d := lim.AllowN(t.Context(), "alice", 4); !d.OK {
			t.Errorf("it was charged: %+v", d)
		}
	})
}

func TestWaitOfNothingChargesNothing(t *testing.T) {
	inBubble(t, waiting(), func(t *testing.T, l *tidegate.Limit, lim *tidegate.Limiter) {
		for _, n := range []int64{0, -1, -1 << 63} {
			if err := lim.WaitN(t.Context(), "alice", n); err != nil {
				t.Errorf("WaitN(%d): %v", n, err)
			}
		}
		if d := lim.AllowN(t.Context(), "alice", 4); !d.OK {
			t.Errorf("something was charged: %+v", d)
		}
		need := lim.Peek(t.Context(), "alice").RetryAfter
		start := time.Now()
		if err := lim.WaitN(t.Context(), "alice", -1); err != nil || time.Since(start) != need {
			t.Errorf("%v after %s, want it to wait %s", err, time.Since(start), need)
		}
	})
}

func TestWaitWithAContextThatHasEnded(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.PerMinute(5))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lim.Wait(ctx, "alice"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	wantLeft(t, lim, "alice", 5)
}

// waiters queue up on a limiter and tell, in order, when they were served.
type waiters struct {
	lim    *tidegate.Limiter
	start  time.Time
	cancel map[string]context.CancelFunc

	mu     sync.Mutex
	served []string
}

func (w *waiters) add(t *testing.T, name string) {
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel[name] = cancel
	go func() {
		if err := w.lim.Wait(ctx, "alice"); err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.served = append(w.served, fmt.Sprint(name, " ", time.Since(w.start)))
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}()
	synctest.Wait() // it has booked its turn
}

func (w *waiters) leave(name string) {
	w.cancel[name]()
	synctest.Wait()
}

// all waits until everybody is served.
func (w *waiters) all() []string {
	time.Sleep(time.Hour)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.served
}

func newWaiters(l *tidegate.Limit) *waiters {
	return &waiters{lim: tidegate.New(memory.New(), l), start: time.Now(), cancel: map[string]context.CancelFunc{}}
}

func TestWaitersOnABucketGoInTheOrderTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(bucket(4, time.Minute))
		w.lim.AllowN(t.Context(), "alice", 4)
		var want []string
		for i := range 10 {
			w.add(t, fmt.Sprint("w", i))
			want = append(want, fmt.Sprint("w", i, " ", time.Duration(i+1)*15*time.Second))
			time.Sleep(time.Millisecond)
		}
		if got := w.all(); !slices.Equal(got, want) {
			t.Errorf("served %v, want %v", got, want)
		}
	})
}

func TestWaiterThatLeavesGivesItsTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(bucket(4, time.Minute))
		w.lim.AllowN(t.Context(), "alice", 4)
		for i := range 10 {
			w.add(t, fmt.Sprint("w", i))
		}
		// Later than a bucket takes to refill, but before its turn comes.
		time.Sleep(2 * time.Minute)
		w.leave("w9")
		w.add(t, "late")
		if got := w.all(); len(got) != 10 || got[9] != "late 2m30s" {
			t.Errorf("served %v, want the late one last, on the turn given back", got)
		}
	})
}

// In a leaky bucket's line a place that is left in the middle stays a hole, and
// one left at the end goes to the next who comes: no two leave at once.
func TestWaiterThatLeavesTheLineLeavesNoDoublePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(tidegate.MustLimit(tidegate.Spec{
			Algorithm: tidegate.LeakyBucket, Events: 1, Period: time.Second, Burst: 9,
		}))
		for _, name := range []string{"a", "b", "c", "d"} {
			w.add(t, name)
		}
		time.Sleep(500 * time.Millisecond)
		w.leave("b")
		w.add(t, "e")
		w.leave("e")
		w.add(t, "f")
		want := []string{"a 0s", "c 2s", "d 3s", "f 4s"}
		if got := w.all(); !slices.Equal(got, want) {
			t.Errorf("served %v, want %v", got, want)
		}
	})
}

// Waiting on several limits: what is taken from a window with the turn of a
// bucket is given back as well.
func TestWaiterThatLeavesGivesBackEveryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hour := memory.New(), tidegate.PerHour(20)
		lim := tidegate.New(store, bucket(2, time.Minute), hour)
		lim.AllowN(t.Context(), "alice", 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			time.Sleep(10 * time.Second)
			cancel()
		}()
		if err := lim.Wait(ctx, "alice"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		wantLeft(t, tidegate.New(store, hour), "alice", 18)
		if d := lim.Peek(t.Context(), "alice"); d.RetryAfter != 20*time.Second {
			t.Errorf("the next turn is in %s, want the one given back, in 20s", d.RetryAfter)
		}
	})
}

// flaky fails a number of times, then asks its store.
type flaky struct {
	tidegate.Store
	failures atomic.Int64
}

func (f *flaky) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if f.failures.Add(-1) >= 0 {
		return tidegate.Decision{}, errDown
	}
	return f.Store.Take(ctx, checks, n)
}

func (f *flaky) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error { return errDown }

func TestWaitWhenTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: memory.New()}
		open := tidegate.New(store, bucket(1, time.Minute))
		closed := open.OnStoreFailure(tidegate.FailClosed)
		start := time.Now()

		store.failures.Store(1)
		if err := open.Wait(t.Context(), "alice"); err != nil || time.Since(start) != 0 {
			t.Errorf("open: %v after %s", err, time.Since(start))
		}
		store.failures.Store(3)
		if err := closed.Wait(t.Context(), "alice"); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("closed: %v after %s, want it served by the fourth try, a second apart", err, time.Since(start))
		}
		store.failures.Store(3)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := closed.Wait(ctx, "alice"); !errors.Is(err, tidegate.ErrWait) || !errors.Is(err, errDown) {
			t.Errorf("closed, for half a second: %v, want ErrWait and why", err)
		}
		store.failures.Store(0)
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if err := open.Wait(ctx, "alice"); !errors.Is(err, context.Canceled) || !errors.Is(err, errDown) {
			t.Errorf("%v, want to know that the turn could not be given back", err)
		}
	})
}
