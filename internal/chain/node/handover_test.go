package node

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// Three successors take over one after the other while the store is away: nobody is
// refilled, and in the end all that was admitted is charged once.
func TestHandOversInAnOutageRefillNobody(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.Quota, tidegate.SlidingLog, tidegate.TokenBucket, tidegate.FixedWindow} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Hour) // not at the edge of a day
			spec := tidegate.Spec{Name: "day", Events: 10, Period: 24 * time.Hour, Algorithm: a, Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}}}
			if a == tidegate.Quota {
				spec.Period, spec.Calendar = 0, tidegate.Day
			}
			l := tidegate.MustLimit(spec)
			way := &faulty{}
			instances := 2
			open := func() *Node { return newNode(way, Options{Instances: func() int { return instances }}) }
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
			if got := way.posted(l, "fresh"); got != 5 || n.Health().Owed != 0 {
				t.Errorf("%s: %d posted, want 5: %+v", a, got, n.Health())
			}
			_ = n.Close()
		})
	}
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
