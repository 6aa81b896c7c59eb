package node

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// Three successors take over one after the other while the store is away: nobody is
// refilled, and in the end all that was admitted is charged once.
func TestHandOversInAnOutageRefillNobody(t *testing.T) {
	for _, a := range []tidegate.Algorithm{
		tidegate.Quota, tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows,
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Hour) // not at the edge of a day
			spec := tidegate.Spec{Name: "day", Events: 10, Period: 24 * time.Hour, Algorithm: a, Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}}}
			if a == tidegate.Quota {
				spec.Period, spec.Calendar = 0, tidegate.Day
			}
			l := tidegate.MustLimit(spec)
			way := &faulty{}
			instances := 2
			open := func() *Node { return newNode(way, forFew(Options{Instances: func() int { return instances }})) }
			n := open()
			spend(t, n, l, "used up", 12)   // and asked for in the outage
			spend(t, n, l, "not asked", 12) // but before the outage
			spend(t, n, l, "half", 4)
			time.Sleep(time.Second)
			way.set(broken)
			admitted := spend(t, n, l, "fresh", 3)
			for step := range 3 {
				if got := spend(t, n, l, "used up", 5); got != 0 {
					t.Errorf("%s: %d more of a limit that is used up, before hand-over %d", a, got, step)
				}
				file := filepath.Join(t.TempDir(), fmt.Sprint(step))
				if err := n.HandOver(file); err != nil {
					t.Fatal(err)
				}
				_ = n.Close()
				n, instances = open(), 1 // it knows of no others yet
				known, err := n.TakeOver(file)
				if err != nil || known != 2 {
					t.Fatalf("%d instances, %v", known, err)
				}
				instances = known
				if got := spend(t, n, l, "used up", 5); got != 0 {
					t.Errorf("%s: %d more of a limit that is used up, after hand-over %d", a, got, step)
				}
				admitted += spend(t, n, l, "fresh", 3)
			}
			if got := spend(t, n, l, "not asked", 5); got != 0 {
				t.Errorf("%s: %d more of a limit that was used up before the outage", a, got)
			}
			if got := spend(t, n, l, "half", 10); got != 3 { // half of the six that are left
				t.Errorf("%s: %d more of a limit with 6 left for two instances, want 3", a, got)
			}
			if admitted != 5 {
				t.Errorf("%s: %d admitted of a fresh key, want 5 as one of two", a, admitted)
			}
			way.set(none)
			time.Sleep(5 * time.Second)
			if got := way.posted(l, "fresh"); got != 5 || n.Health().Backlog != 0 {
				t.Errorf("%s: %d posted, want 5: %+v", a, got, n.Health())
			}
			_ = n.Close()
		})
	}
}

// A store that stands still takes no call of a successor either: what that admits is counted from the first request on, and
// charged when the store is back.
func TestHandOverWhileTheStoreStandsStill(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows} {
		synctest.Test(t, func(t *testing.T) {
			l := tidegate.MustLimit(tidegate.Spec{Name: "day", Events: 6, Period: 24 * time.Hour, Algorithm: a})
			way := &faulty{}
			open := func() *Node { return newNode(way, Options{}) }
			n := open()
			admitted := spend(t, n, l, "k", 1)
			way.set(frozen)
			for range 10 { // until it is known
				spend(t, n, perSecond, "other", 1)
			}
			for range 2 {
				n = pass(t, n, open)
				asked := time.Now()
				admitted += spend(t, n, l, "k", 2)
				if took := time.Since(asked); took > 0 {
					t.Errorf("%s: two requests wait for %s for a store that is known to be away", a, took)
				}
			}
			way.set(none)
			time.Sleep(5 * time.Second)
			if admitted += spend(t, n, l, "k", 6); admitted != 6 || n.Health().State != OK {
				t.Errorf("%s: %d admitted of 6, %+v", a, admitted, n.Health())
			}
			_ = n.Close()
		})
	}
}

// A successor knows that the store is away from its first request on, also by a clock that goes on between two readings, which
// that of a bubble does not.
func TestHandOverOfAnOpenCircuit(t *testing.T) {
	way := &faulty{fault: broken}
	n := newNode(way, forFew(Options{Deadline: patient}))
	for n.Health().State != Degraded {
		spend(t, n, perSecond, "k", 1)
	}
	for hops := range 20 {
		n = pass(t, n, func() *Node { return newNode(way, forFew(Options{Deadline: patient})) })
		if h := n.Health(); h.State != Degraded {
			t.Fatalf("after %d hand-overs in an outage the circuit is %s", hops+1, h.State)
		}
	}
	_ = n.Close()
}

// A refusal of the store holds until the time that it told, in the process that heard it and in
// its successors: when the events of a window came is not known otherwise.
func TestRefusalsOutliveHandOversInAnOutage(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.SubWindows, tidegate.SlidingWindow, tidegate.FixedWindow} {
		for passes := range 3 {
			synctest.Test(t, func(t *testing.T) {
				l := tidegate.MustLimit(tidegate.Spec{Name: "minute", Events: 60, Period: time.Minute, Algorithm: a})
				way := &faulty{}
				open := func() *Node { return newNode(way, forFew(Options{})) }
				n := open()
				if got := spend(t, n, l, "used up", 61); got != 60 {
					t.Fatalf("%s: %d admitted", a, got)
				}
				spend(t, n, l, "dropped", 61)
				way.set(broken)
				spend(t, n, perSecond, "k", DefaultFailures)
				time.Sleep(2 * time.Second) // refusals are not remembered for so long while it answers
				n.returned([]tidegate.Check{{Key: "dropped", Limit: l, Cost: -1}})
				for range passes {
					n = pass(t, n, open)
					n.Forget() // rules and measures are put in force
					time.Sleep(2 * time.Second)
				}
				n.Forget()
				time.Sleep(20 * time.Second)
				if got := spend(t, n, l, "used up", 30); got != 0 {
					t.Errorf("%s, after %d hand-overs: %d more in the minute of a limit that is used up", a, passes, got)
				}
				if got := len(n.handDenials()); got != 1 {
					t.Errorf("%s, after %d hand-overs: %d refusals to hand over, want that of one key", a, passes, got)
				}
				_ = n.Close()
			})
		}
	}
}

// What a key had used long ago does not count again because a process has taken over since.
func TestHandOverOfWhatHasFaded(t *testing.T) {
	for _, a := range []tidegate.Algorithm{
		tidegate.Quota, tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows,
	} {
		synctest.Test(t, func(t *testing.T) {
			spec := tidegate.Spec{Name: "hour", Events: 10, Period: time.Hour, Algorithm: a, Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}}}
			if a == tidegate.Quota {
				spec.Period, spec.Calendar = 0, tidegate.Day
			}
			l := tidegate.MustLimit(spec)
			way := &faulty{}
			open := func() *Node { return newNode(way, forFew(Options{})) }
			n := open()
			time.Sleep(time.Hour)
			spend(t, n, l, "long ago", 12)
			for range 3 {
				time.Sleep(10 * time.Hour)
				n = pass(t, n, open)
			}
			spend(t, n, l, "now", 12)
			n = pass(t, n, open)
			way.set(broken)
			if got := spend(t, n, l, "long ago", 12); got != 10 {
				t.Errorf("%s: %d of 10 admitted of what was used up 30 hours ago", a, got)
			}
			if got := spend(t, n, l, "now", 12); got != 0 {
				t.Errorf("%s: %d more of what is used up", a, got)
			}
			_ = n.Close()
		})
	}
}

// A process whose clock was set after it began hands over the times of today's.
func TestHandOverAfterTheClockWasSet(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.SubWindows, tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow} {
		for _, wasAhead := range []time.Duration{-5 * time.Hour, -time.Minute, time.Minute, 5 * time.Hour} {
			for _, denials := range []int{0, -1} {
				synctest.Test(t, func(t *testing.T) {
					l := tidegate.MustLimit(tidegate.Spec{Name: "hour", Events: 10, Period: time.Hour, Algorithm: a, Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}}})
					way := &faulty{}
					n := newNode(way, forFew(Options{Skew: wasAhead, DenyEntries: denials}))
					spend(t, n, l, "k", 12)
					told := tidegate.New(n, l).Allow(t.Context(), "k").RetryAfter
					n = pass(t, n, func() *Node { return newNode(way, forFew(Options{DenyEntries: denials})) })
					way.set(broken)
					if d := tidegate.New(n, l).Allow(t.Context(), "k"); d.OK || d.RetryAfter > told {
						t.Errorf("%s, a clock that was %s ahead: admitted %t, told to wait for %s and then for %s", a, wasAhead, d.OK, told, d.RetryAfter)
					}
					_ = n.Close()
				})
			}
		}
	}
}

// Keys are any bytes, also in what is handed over: what is owed, posts of which nobody knows whether they arrived, and
// slots that are to be given back.
func TestHandOverOfAnyKey(t *testing.T) {
	keys := []string{"", "=plain", "=日本", "=caf\xe9", "\xff", "\x00\xc0\xaf", strings.Repeat("\xfe", 100), "=caf\ufffd"}
	synctest.Test(t, func(t *testing.T) {
		l := limit("day", 10, tidegate.FailLocal)
		slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 2, Period: time.Hour, Algorithm: tidegate.Concurrency})
		way := &faulty{}
		open := func() *Node { return newNode(way, forFew(Options{})) }
		n := open()
		var held []tidegate.Receipt
		for _, key := range keys {
			d, err := n.Take(t.Context(), []tidegate.Check{{Key: key, Limit: slots, Cost: 1}}, 1)
			if err != nil || !d.OK || d.Receipt.Origin != tidegate.OriginStore {
				t.Fatalf("%+v, %v", d, err)
			}
			held = append(held, d.Receipt)
		}
		way.set(broken)
		for i, key := range keys {
			spend(t, n, l, key, 3+i)
			if err := n.Adjust(t.Context(), held[i], []tidegate.Check{{Key: key, Limit: slots, Cost: -1}}); err == nil {
				t.Error("no error of a store that is away")
			}
		}
		n = pass(t, n, open)
		way.set(none)
		time.Sleep(10 * time.Second)
		for i, key := range keys {
			if got := way.posted(l, key); got != int64(min(3+i, 10)) {
				t.Errorf("%q: %d charged, want %d", key, got, min(3+i, 10))
			}
			d, err := way.server.store().Take(t.Context(), []tidegate.Check{{Key: key, Limit: slots}}, 1)
			if err != nil || d.Remaining != 2 {
				t.Errorf("%q: %d of 2 slots are free: %v", key, d.Remaining, err)
			}
		}
		_ = n.Close()
	})
}

// Whoever has handed over does not post, unless nobody took over.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{fault: broken}
		n := newNode(way, Options{})
		l := limit("l", 10, tidegate.FailLocal)
		spend(t, n, l, "a", 5)
		if err := n.HandOver(filepath.Join(t.TempDir(), "handed")); err != nil {
			t.Fatal(err)
		}
		way.set(none)
		time.Sleep(5 * time.Second)
		if got := way.posted(l, "a"); got != 0 {
			t.Errorf("%d posted by a process that has handed over", got)
		}
		n.Resume()
		time.Sleep(5 * time.Second)
		if got := way.posted(l, "a"); got != 5 {
			t.Errorf("%d posted when nobody took over, want 5", got)
		}
		_ = n.Close()
	})
}

// What cannot be read is said, and nothing is taken up.
func TestTakeOverOfGarbage(t *testing.T) {
	n := newNode(&faulty{}, Options{Deadline: patient})
	defer n.Close()
	if _, err := n.TakeOver(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no error")
	}
}

// Names depend on the key, so that nobody can foresee them.
func TestHashIsKeyed(t *testing.T) {
	a, b := newHashKey(), newHashKey()
	same := a
	if a == b || a.string("x") == b.string("x") || a.string("x") != same.string("x") || a.string("") == a.string("\x00") {
		t.Error("the hash does not depend on its key, or not on its text")
	}
}
