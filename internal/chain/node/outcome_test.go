package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// A refusal is an answer: it trips nothing, and no fallback looks at it again.
func TestTrap12RefusalIsNotAFailure(t *testing.T) {
	for _, mode := range []tidegate.FailMode{tidegate.FailOpen, tidegate.FailClosed, tidegate.FailLocal} {
		way := &faulty{}
		g := newNode(way, Options{Deadline: patient, DenyEntries: -1})
		l := limit("l", 1, mode)
		for i := range 1000 {
			d, err := g.Take(t.Context(), []tidegate.Check{one(l)}, 1)
			if err != nil || d.OK != (i == 0) || d.Err != nil || byFallback(&d) {
				t.Fatalf("request %d = %+v, %v", i+1, d, err)
			}
		}
		if h := g.Health(); h.State != OK || h.Answered != 1000 || h.Allowed+h.Closed+h.Admitted+h.Refused != 0 {
			t.Errorf("%+v", h)
		}
		if n := g.local.Stats().Keys; n != 0 || way.asked() != 1000 {
			t.Errorf("%d keys in the local store after %d calls", n, way.asked())
		}
		_ = g.Close()
	}
}

// Nor are the other ways to say no: a lease that was lost, a reservation that is
// settled, a store that is full.
func TestTrap12SayingNoIsNotAFailure(t *testing.T) {
	g := newNode(memory.Open(memory.Config{MaxBytes: 1}), Options{Deadline: patient})
	defer g.Close()
	slots := tidegate.Slots(1, time.Minute)
	few := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: time.Hour, Algorithm: tidegate.FixedWindow, OnFull: tidegate.RefuseNew})
	full := 0
	for i := range 500 {
		if err := g.Renew(t.Context(), tidegate.Receipt{At: 1}, []tidegate.Check{one(slots)}); !errors.Is(err, tidegate.ErrLeaseLost) {
			t.Fatalf("Renew: %v", err)
		}
		if err := g.Settle(t.Context(), tidegate.Receipt{}, 1); !errors.Is(err, tidegate.ErrSettled) {
			t.Fatalf("Settle: %v", err)
		}
		d, err := g.Take(t.Context(), []tidegate.Check{{Key: string(rune('a' + i)), Limit: few, Cost: 1}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if errors.Is(d.Err, tidegate.ErrFull) {
			full++
		}
	}
	if h := g.Health(); h.State != OK || h.Errors != 0 || h.Admitted+h.Refused != 0 || full == 0 {
		t.Errorf("%d times full: %+v", full, h)
	}
}

// A store without the optional abilities says so, and is not broken for it.
func TestUnsupported(t *testing.T) {
	g := newNode(struct{ tidegate.Store }{memory.New()}, Options{Deadline: patient})
	defer g.Close()
	_, err := g.Reserve(t.Context(), nil, time.Hour)
	for _, err := range []error{err, g.Renew(t.Context(), tidegate.Receipt{At: 1}, nil), g.Settle(t.Context(), tidegate.Receipt{}, 1), g.Reset(t.Context(), nil)} {
		if !errors.Is(err, tidegate.ErrUnsupported) {
			t.Errorf("%v, want %v", err, tidegate.ErrUnsupported)
		}
	}
	if h := g.Health(); h.State != OK || h.Errors != 0 {
		t.Errorf("%+v", h)
	}
}

// Callers that leave say nothing about the store: what becomes of their calls does.
func TestCallersThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{}
		g := newNode(way, Options{})
		keys := 0
		leave := func(after time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			keys++ // otherwise they would wait for one call
			d, err := g.Take(ctx, []tidegate.Check{{Key: fmt.Sprint(keys), Limit: perSecond, Cost: 1}}, 1)
			if err == nil || d.OK || !errors.Is(err, ctx.Err()) {
				t.Errorf("left after %s: %+v, %v", after, d, err)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			if _, err := g.Take(gone, []tidegate.Check{one(perSecond)}, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		}
		if way.asked() != 0 {
			t.Errorf("asked %d times for nobody", way.asked())
		}
		way.set(frozen)
		for range DefaultFailures {
			leave(time.Millisecond)
		}
		if h := g.Health(); h.State != OK || h.Timeouts != 0 || h.InFlight != DefaultFailures {
			t.Errorf("before the deadline: %+v", h)
		}
		time.Sleep(DefaultDeadline)
		if h := g.Health(); h.State != OK || h.Timeouts != DefaultFailures || h.InFlight != DefaultFailures {
			t.Errorf("after it: %+v", h)
		}
		time.Sleep(lateFor) // their replies would still be of interest
		if h := g.Health(); h.State != OK || h.Timeouts != DefaultFailures || h.InFlight != 0 {
			t.Errorf("when nobody waits for them any more: %+v", h)
		}
		leave(time.Millisecond)
		time.Sleep(DefaultDeadline)
		if h := g.Health(); h.State != Degraded {
			t.Errorf("when it goes on: %+v", h)
		}
		time.Sleep(lateFor)
		_ = g.Close()
	})
}
