package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// scripted answers each batch as the test says, after a while.
type scripted struct {
	chain.Backend
	after   time.Duration
	granted int64 // copies of the next call
	err     error
	posts   atomic.Int64
}

func (s *scripted) TakeBatch(_ context.Context, asks []chain.Ask) error {
	time.Sleep(s.after)
	a := &asks[0]
	if a.Err = s.err; a.Err != nil {
		return nil
	}
	l := a.Checks[0].Limit
	k := min(s.granted, int64(a.Copies))
	a.Granted = tidegate.Decision{OK: k > 0, Granted: k, Limit: l, Remaining: 50, Receipt: tidegate.Receipt{At: 1}}
	if k < int64(a.Copies) {
		refusal := tidegate.Decision{Limit: l, RetryAfter: time.Millisecond, Receipt: tidegate.Receipt{At: 1}}
		if a.Rest = refusal; k == 0 {
			a.Granted = refusal
		}
	}
	return nil
}

func (s *scripted) Adjust(_ context.Context, _ tidegate.Receipt, checks []tidegate.Check) error {
	for _, c := range checks {
		s.posts.Add(c.Cost)
	}
	return nil
}

// A request that was decided locally because its call was late is settled when the reply
// comes: what was granted is its own, what was refused goes to the backlog, and a connection that
// was lost says nothing.
func TestLateRepliesSettle(t *testing.T) {
	lost := &timeout{errors.New("i/o timeout")}
	broken := fmt.Errorf("take: %w", chain.ErrNoReply)
	f := func(name string, after time.Duration, granted int64, err error, local int64, posted int64) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := &scripted{Backend: chain.Adapt(memory.New()), after: after, granted: granted, err: err}
				n := New(inner, Options{Failures: 1000})
				l := tidegate.MustLimit(tidegate.Spec{Name: "l", Events: local, Period: time.Hour, Algorithm: tidegate.FixedWindow})
				d, takeErr := n.Take(t.Context(), []tidegate.Check{one(l)}, 1)
				if takeErr != nil || d.OK != (local > 1) {
					t.Errorf("%+v, %v", d, takeErr)
				}
				time.Sleep(5 * time.Second)
				if inner.posts.Load() != posted || n.Health().Backlog != 0 {
					t.Errorf("%d posted, want %d: %+v", inner.posts.Load(), posted, n.Health())
				}
				_ = n.Close()
			})
		})
	}
	const late = 40 * time.Millisecond
	f("in time", time.Millisecond, 1, nil, 10, 0)
	f("granted", late, 1, nil, 10, 0)
	f("refused", late, 0, nil, 10, 1)
	f("surely not charged", late, 0, errors.New("connection refused"), 10, 1)
	f("lost", late, 0, lost, 10, 0)
	f("lost with the connection", late, 0, broken, 10, 0)
	f("lost with the connection in time", time.Millisecond, 0, broken, 10, 0)
	f("surely not charged in time", time.Millisecond, 0, errors.New("connection refused"), 10, 1)
}

type timeout struct{ error }

func (timeout) Timeout() bool { return true }

// A grant that came too late for a waiter which was refused locally goes to the next one, whose own grant is then given back. It
// is not if the first was admitted without being counted, or has left.
func TestLateGrantGoesToTheNext(t *testing.T) {
	f := func(name string, mode tidegate.FailMode, stays time.Duration, posted int64) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := &scripted{Backend: chain.Adapt(memory.New()), after: 40 * time.Millisecond, granted: 1}
				check := []tidegate.Check{one(limit("l", 10, mode))}
				n := New(inner, Options{Failures: 1000})
				answer := make(chan tidegate.Decision, 1)
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), stays)
					defer cancel()
					d, _ := n.Take(ctx, check, 1)
					answer <- d
				}()
				time.Sleep(20 * time.Millisecond)
				began := time.Now()
				second, _ := n.Take(t.Context(), check, 1)
				if first := <-answer; first.OK != (mode == tidegate.FailOpen) || (first.Err == nil) != (stays < DefaultDeadline) {
					t.Errorf("the first had no answer in time: %+v", first)
				}
				if took := time.Since(began); !second.OK || second.Err != nil || took != 20*time.Millisecond {
					t.Errorf("after %s the second was told %+v, want the grant of the first", took, second)
				}
				time.Sleep(5 * time.Second)
				if got := inner.posts.Load(); got != posted {
					t.Errorf("%d charged afterwards, want %d", got, posted)
				}
				_ = n.Close()
			})
		})
	}
	f("refused", tidegate.FailClosed, time.Second, -1)
	f("admitted without being counted", tidegate.FailOpen, time.Second, 0)
	f("left", tidegate.FailClosed, 10*time.Millisecond, 0)
}

// Of two that share a call, one is served by the grant of another call and one is refused locally: of what their call is granted
// too late, all is given back.
func TestLateGrantIsGivenBackOnce(t *testing.T) {
	f := func(granted, posted int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			inner := &scripted{Backend: chain.Adapt(memory.New()), after: 40 * time.Millisecond, granted: granted}
			check := []tidegate.Check{one(limit("l", 10, tidegate.FailClosed))}
			n := New(inner, Options{Failures: 1000})
			admitted := make(chan bool)
			ask := func() {
				d, _ := n.Take(t.Context(), check, 1)
				admitted <- d.OK
			}
			go ask()
			time.Sleep(20 * time.Millisecond)
			for range 2 {
				go ask()
			}
			var sum int64
			for range 3 {
				if <-admitted {
					sum++
				}
			}
			time.Sleep(5 * time.Second)
			if got := inner.posts.Load(); got != posted || 1+granted+got != sum {
				t.Errorf("%d and %d were granted, %d admitted: %d charged afterwards, want %d", 1, granted, sum, got, posted)
			}
			_ = n.Close()
		})
	}
	f(1, -1)
	f(2, -2)
}

// If nobody else wants it, it is given back. A request that was admitted without being counted keeps it.
func TestLateGrantIsGivenBack(t *testing.T) {
	f := func(mode tidegate.FailMode, copies int, want int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			inner := &scripted{Backend: chain.Adapt(memory.New()), after: 40 * time.Millisecond, granted: int64(copies)}
			n := New(inner, Options{Failures: 1000})
			c := one(limit("l", 10, mode))
			c.Cost = 2
			d, err := n.Take(t.Context(), []tidegate.Check{c}, copies)
			if err != nil || d.OK != (mode != tidegate.FailClosed) {
				t.Errorf("%+v, %v", d, err)
			}
			time.Sleep(5 * time.Second)
			if got := inner.posts.Load(); got != want {
				t.Errorf("mode %d, %d copies: %d charged afterwards, want %d", mode, copies, got, want)
			}
			_ = n.Close()
		})
	}
	f(tidegate.FailClosed, 1, -2)
	f(tidegate.FailClosed, 3, -6)
	f(tidegate.FailLocal, 3, 0)
	f(tidegate.FailLocal, 8, -6) // the local store has room for 5
	f(tidegate.FailOpen, 3, 0)
}

// A reply may come while it is decided locally, and the call be sent again for others meanwhile.
func TestReplyWhileDecided(t *testing.T) {
	f := func(granted, admitted, uncharged, unused int64, again bool) {
		t.Helper()
		const asked = 5
		l := late{undecided: asked}
		rest, toBacklog := l.settleLocked(granted, nil)
		if again {
			l = l.again()
		}
		if due, back := l.decidedLocked(asked, admitted, asked-admitted); due != uncharged || back != unused {
			t.Errorf("%d granted, %d admitted: %d go to the backlog and %d go back, want %d and %d", granted, admitted, due, back, uncharged, unused)
		}
		if rest != 0 || toBacklog != 0 || l.undecided != 0 || l.covered != 0 || l.admitted != 0 && !again {
			t.Errorf("%d granted, %d admitted: %d and %d at first, %+v in the end", granted, admitted, rest, toBacklog, l)
		}
	}
	for _, again := range []bool{false, true} {
		f(5, 5, 0, 0, again)
		f(5, 2, 0, 3, again)
		f(5, 0, 0, 5, again)
		f(2, 0, 0, 2, again)
	}
	f(2, 5, 3, 0, false)
	f(0, 5, 5, 0, false)
}

// What was never sent goes to the backlog at once.
func TestNeverSentGoesToTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &scripted{Backend: chain.Adapt(memory.New()), after: 40 * time.Millisecond}
		n := New(inner, Options{Failures: 1000, InFlight: 1})
		l := tidegate.MustLimit(tidegate.Spec{Name: "l", Events: 10, Period: time.Hour, Algorithm: tidegate.FixedWindow})
		go func() { _, _ = n.Take(t.Context(), []tidegate.Check{{Key: "a", Limit: l, Cost: 1}}, 1) }()
		synctest.Wait()
		if d, err := n.Take(t.Context(), []tidegate.Check{{Key: "b", Limit: l, Cost: 1}}, 1); err != nil || !d.OK || n.Health().Backlog != 1 {
			t.Errorf("%+v, %v: %+v", d, err, n.Health())
		}
		time.Sleep(5 * time.Second)
		if inner.posts.Load() != 2 { // the first was refused in the end
			t.Errorf("%d posted, want 2", inner.posts.Load())
		}
		_ = n.Close()
	})
}
