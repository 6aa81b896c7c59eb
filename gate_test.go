package tidegate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// byHost holds every request that has a host to some limits, at its cost.
type byHost []*tidegate.Limit

func (m byHost) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	if r.Host == "" {
		return dst
	}
	for _, l := range m {
		dst = append(dst, tidegate.Check{Key: r.Host, Limit: l, Cost: max(r.Cost, 1)})
	}
	return dst
}

func TestGateDecides(t *testing.T) {
	minute, hour := tidegate.PerMinute(2), tidegate.PerHour(10)
	gate := tidegate.NewGate(byHost{minute, hour}, memory.New())
	f := func(r tidegate.Request, ok bool, limit *tidegate.Limit) {
		t.Helper()
		if d := gate.Decide(t.Context(), &r); d.OK != ok || d.Limit != limit || d.Err != nil || d.Granted > 0 != ok {
			t.Errorf("%+v: %+v", r, d)
		}
	}
	f(tidegate.Request{Host: "a"}, true, minute)
	f(tidegate.Request{Host: "a"}, true, minute)
	f(tidegate.Request{Host: "a"}, false, minute)
	f(tidegate.Request{Host: "b", Cost: 2}, true, minute)
	f(tidegate.Request{Host: "b"}, false, minute)
	f(tidegate.Request{Host: "c", Cost: 11}, false, minute)
	f(tidegate.Request{}, true, nil) // nothing limits it
}

func TestGateFailMode(t *testing.T) {
	testGateFailMode(t, tidegate.PerMinute(2))
	testGateFailMode(t, tidegate.MustLimit(tidegate.Spec{Events: 2, Period: time.Minute, Terms: &tidegate.Terms{Rule: "says nothing of it"}}))
}

func testGateFailMode(t *testing.T, l *tidegate.Limit) {
	gate := tidegate.NewGate(byHost{l}, &broken{err: errDown})
	r := &tidegate.Request{Host: "a"}
	f := func(gate *tidegate.Gate, ok bool, retry time.Duration) {
		t.Helper()
		d := gate.Decide(t.Context(), r)
		entered, held := gate.Enter(t.Context(), r)
		if d != entered || held != nil {
			t.Errorf("Decide says %+v, Enter %+v and holds %v", d, entered, held)
		}
		if d.OK != ok || d.RetryAfter != retry || d.Limit != l || !errors.Is(d.Err, errDown) {
			t.Errorf("%+v", d)
		}
	}
	f(gate, true, 0)
	f(gate.OnStoreFailure(tidegate.FailClosed), false, time.Second)
	if d := gate.OnStoreFailure(tidegate.FailClosed).Decide(t.Context(), &tidegate.Request{}); !d.OK || d.Err != nil {
		t.Errorf("a request that nothing limits needs no store: %+v", d)
	}
}

// Enter holds what Decide would let run out: slots, and only slots.
func TestEnterHoldsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		minute, slots := tidegate.PerMinute(50), tidegate.Slots(1, 30*time.Second)
		gate := tidegate.NewGate(byHost{minute, slots}, memory.New())
		r := &tidegate.Request{Host: "a"}
		d, visit := gate.Enter(t.Context(), r)
		if !d.OK || !visit.Holds() || visit.ByStatus() || visit.Sources() != nil {
			t.Fatalf("%+v, %+v", d, visit)
		}
		for range 20 { // ten minutes on a lease of half of one
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if d, second := gate.Enter(t.Context(), r); d.OK || d.Limit != slots || second != nil {
				t.Fatalf("the second got in: %+v, %v", d, second)
			}
		}
		if err := visit.End(tidegate.Outcome{}); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if d, _ := gate.Enter(ctx, r); !d.OK {
			t.Errorf("after End: %+v", d)
		}
		cancel()
		synctest.Wait()
		if d := gate.Decide(t.Context(), r); !d.OK {
			t.Errorf("after the context ended: %+v", d)
		}
		time.Sleep(30*time.Second - time.Nanosecond)
		if d := gate.Decide(t.Context(), r); d.OK {
			t.Errorf("Decide holds a slot for its lease: %+v", d)
		}
		time.Sleep(time.Nanosecond)
		if d := gate.Decide(t.Context(), r); !d.OK {
			t.Errorf("after the lease: %+v", d)
		}
	})
}

func TestEnterIsNoVisitWhenNothingIsLeftToDo(t *testing.T) {
	gate := tidegate.NewGate(byHost{tidegate.PerMinute(1)}, memory.New())
	r := &tidegate.Request{Host: "a"}
	for _, ok := range []bool{true, false} {
		if d, visit := gate.Enter(t.Context(), r); d.OK != ok || visit != nil {
			t.Errorf("%+v, %v", d, visit)
		}
	}
}
