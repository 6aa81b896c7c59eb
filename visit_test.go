package tidegate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// failures is a limit that only refused tries to log in are charged to.
func failures(a tidegate.Algorithm) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{Name: "login", Events: 5, Period: time.Hour, Algorithm: a, Terms: &tidegate.Terms{
		AtEnd: tidegate.AtEnd{Counts: []tidegate.StatusRange{{From: 401, To: 401}, {From: 500, To: 599}}},
	}})
}

func TestChargesCountedByStatus(t *testing.T) {
	f := func(status int, left int64) {
		t.Helper()
		for _, a := range []tidegate.Algorithm{tidegate.Auto, tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows} {
			store, l := memory.New(), failures(a)
			_, visit := tidegate.NewGate(vector{{Key: "a", Limit: l, Cost: 2}}, store).Enter(t.Context(), &tidegate.Request{})
			if !visit.ByStatus() || visit.Holds() || visit.Sources() != nil {
				t.Fatalf("%s: %+v", l, visit)
			}
			wantLeft(t, tidegate.New(store, l), "a", 3) // its place is held meanwhile
			for range 2 {
				if err := visit.End(tidegate.Outcome{Status: status}); err != nil {
					t.Error(err)
				}
			}
			wantLeft(t, tidegate.New(store, l), "a", left)
		}
	}
	f(200, 5)
	f(400, 5)
	f(401, 3)
	f(402, 5)
	f(499, 5)
	f(500, 3)
	f(599, 3)
	f(600, 5)
	f(0, 3) // nobody knows
}

// A shadow rule that counts by status counts what it would when enforced, and
// what it was not charged is not given back.
func TestAdvisoryChargesCountedByStatus(t *testing.T) {
	store, l := memory.New(), failures(tidegate.Auto)
	gate := tidegate.NewGate(vector{{Key: "a", Limit: l, Cost: 2, Advisory: true}}, store)
	enter := func() *tidegate.Visit {
		_, visit := gate.Enter(t.Context(), &tidegate.Request{})
		return visit
	}
	one, two := enter(), enter()
	if third := enter(); third != nil {
		t.Errorf("an advisory check that was over is to be ended: %+v", third)
	}
	_ = one.End(tidegate.Outcome{Status: 200})
	_ = two.End(tidegate.Outcome{Status: 401})
	wantLeft(t, tidegate.New(store, l), "a", 3)
}

func TestAdvisorySlotsAreHeldLikeOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, slots := memory.New(), tidegate.Slots(1, lease)
		gate := tidegate.NewGate(vector{{Key: "a", Limit: slots, Cost: 1, Advisory: true}}, store)
		_, visit := gate.Enter(t.Context(), &tidegate.Request{})
		if _, second := gate.Enter(t.Context(), &tidegate.Request{}); !visit.Holds() || second != nil {
			t.Fatalf("%+v, %+v", visit, second)
		}
		time.Sleep(10 * lease)
		synctest.Wait()
		wantLeft(t, tidegate.New(store, slots), "a", 0)
		_ = visit.End(tidegate.Outcome{})
		wantLeft(t, tidegate.New(store, slots), "a", 1)
	})
}

// The end of the context frees slots, and says nothing about a status or a cost.
func TestEndOfTheContextFreesSlotsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, slots, l, tokens := attentive{memory.New()}, tidegate.Slots(1, lease), failures(tidegate.Auto), estimated("tokens", "response.header.X-Cost")
		gate := tidegate.NewGate(vector{{Key: "a", Limit: slots, Cost: 1}, {Key: "a", Limit: l, Cost: 1}, tokens}, store)
		left := func(slot, login, token int64) {
			t.Helper()
			wantLeft(t, tidegate.New(store, slots), "a", slot)
			wantLeft(t, tidegate.New(store, l), "a", login)
			wantLeft(t, tidegate.New(store, tokens.Limit), "a", token)
		}
		ctx, cancel := withCancel(t)
		_, visit := gate.Enter(ctx, &tidegate.Request{})
		left(0, 4, 50)
		cancel()
		synctest.Wait()
		left(1, 4, 50)
		if err := visit.End(tidegate.Outcome{Status: 200, Cost: 10, CostKnown: true}); err != nil {
			t.Error(err)
		}
		left(1, 5, 100) // and the slot, which may be another's by now, once

		ctx, cancel = withCancel(t)
		_, visit = gate.Enter(ctx, &tidegate.Request{})
		visit.Detach()
		cancel()
		time.Sleep(10 * lease)
		synctest.Wait()
		left(0, 4, 40)
		if err := visit.End(tidegate.Outcome{}); err != nil {
			t.Error(err)
		}
		left(1, 4, 40)
	})
}

// A turn that was booked ahead is given back at its own instant, other charges at
// theirs.
func TestEndGivesBackABookedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := failures(tidegate.TokenBucket).Spec
		spec.Events, spec.Burst, spec.Period = 1, 1, 20*time.Minute
		store, line, log := memory.New(), tidegate.MustLimit(spec), failures(tidegate.SlidingLog)
		gate := tidegate.NewGate(vector{{Key: "a", Limit: line, Cost: 1, MaxWait: time.Hour}, {Key: "a", Limit: log, Cost: 1}}, store)
		enter := func() *tidegate.Visit {
			d, visit := gate.Enter(t.Context(), &tidegate.Request{})
			if !d.OK {
				t.Fatalf("%+v", d)
			}
			return visit
		}
		enter()
		enter()
		last := enter() // its turn is in 40 minutes, for 20
		time.Sleep(50 * time.Minute)
		wantLeft(t, tidegate.New(store, line), "a", 0)
		if err := last.End(tidegate.Outcome{Status: 200}); err != nil {
			t.Error(err)
		}
		wantLeft(t, tidegate.New(store, line), "a", 1)
		wantLeft(t, tidegate.New(store, log), "a", 3)
	})
}

// Keys that a Matcher made in the request's memory are used again before the
// visit ends.
func TestVisitOutlivesTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, slots, l := memory.New(), tidegate.Slots(1, lease), failures(tidegate.Auto)
		gate := tidegate.NewGate(keyed{slots, l}, store)
		r := new(tidegate.Request)
		r.Host = "a.example"
		_, visit := gate.Enter(t.Context(), r)
		r.Reset()
		r.Key("something", "else altogether")
		time.Sleep(10 * lease)
		synctest.Wait()
		key := tidegate.Key("a.example", "route")
		wantLeft(t, tidegate.New(store, slots), key, 0)
		if err := visit.End(tidegate.Outcome{Status: 200}); err != nil {
			t.Error(err)
		}
		wantLeft(t, tidegate.New(store, slots), key, 1)
		wantLeft(t, tidegate.New(store, l), key, 5)
	})
}

// keyed holds a host to limits, under a key made in the request's memory.
type keyed []*tidegate.Limit

func (m keyed) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	for _, l := range m {
		dst = append(dst, tidegate.Check{Key: r.Key(r.Host, "route"), Limit: l, Cost: 1})
	}
	return dst
}

// However many end it, and whenever its context does, all is given back once.
func TestVisitsEndOnce(t *testing.T) {
	store, slots, l := memory.New(), tidegate.Slots(50, lease), failures(tidegate.Auto)
	gate := tidegate.NewGate(vector{{Key: "a", Limit: slots, Cost: 1}, {Key: "a", Limit: l, Cost: 1}}, store)
	tidegate.New(store, slots).Acquire(t.Context(), "a") // somebody else's, which stays
	tidegate.New(store, l).Allow(t.Context(), "a")
	for range 100 {
		ctx, cancel := withCancel(t)
		d, visit := gate.Enter(ctx, &tidegate.Request{})
		if !d.OK {
			t.Fatalf("%+v", d)
		}
		var all sync.WaitGroup
		all.Go(cancel)
		for range 3 {
			all.Go(func() {
				visit.Found("nowhere", 1)
				_ = visit.End(tidegate.Outcome{Status: 200})
			})
		}
		all.Wait()
	}
	if !testdep.Await(10*time.Second, func() bool { return tidegate.New(store, slots).Peek(t.Context(), "a").Remaining == 49 }) {
		t.Fatal("slots are still taken")
	}
	wantLeft(t, tidegate.New(store, l), "a", 4)
}

func TestNoVisitCanBeEnded(t *testing.T) {
	var visit *tidegate.Visit
	visit.Detach()
	visit.Found("response.body.cost", 5)
	if visit.Holds() || visit.ByStatus() || visit.Sources() != nil || visit.End(tidegate.Outcome{Status: 200}) != nil {
		t.Error("nothing is something")
	}
}

func TestEndSaysWhyItCouldNot(t *testing.T) {
	store := &lossy{Store: memory.New()}
	_, visit := tidegate.NewGate(vector{{Key: "a", Limit: failures(tidegate.Auto), Cost: 1}}, store).Enter(t.Context(), &tidegate.Request{})
	if err := visit.End(tidegate.Outcome{Status: 200}); !errors.Is(err, errDown) {
		t.Errorf("error %v", err)
	}
	if err := visit.End(tidegate.Outcome{Status: 200}); err != nil || store.calls != 1 {
		t.Errorf("error %v, %d calls: Adjust is never retried", err, store.calls)
	}
}

// lossy can take and cannot give back.
type lossy struct {
	*memory.Store
	calls int
}

func (s *lossy) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error {
	s.calls++
	return errDown
}
