package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/storetest"
)

// tokens has a limit of 120 of every algorithm, so slow that nothing comes back.
func tokens(a tidegate.Algorithm, mode tidegate.FailMode) *tidegate.Limit {
	spec := tidegate.Spec{Name: "tokens", Events: 120, Period: 24 * time.Hour, Algorithm: a, Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: mode}}}
	if a == tidegate.Quota {
		spec.Period, spec.Calendar = 0, tidegate.Month
	}
	if a == tidegate.TokenBucket {
		spec.Burst = 120
	}
	return tidegate.MustLimit(spec)
}

var countingAlgorithms = []tidegate.Algorithm{
	tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows, tidegate.Quota,
}

// What is reserved while the backend is away is held to this node's share, settled here
// alone, and owed as it was settled.
func TestReserveInAnOutage(t *testing.T) {
	f := func(a tidegate.Algorithm, actual, charged int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			limit := tokens(a, tidegate.FailLocal)
			way := &faulty{}
			two := Options{Instances: func() int { return 2 }}
			n, other := newNode(way, two), newNode(way, two)
			lim := tidegate.New(n, limit)
			way.set(broken)
			spend(t, n, perSecond, "k", DefaultFailures)
			r := lim.Reserve(t.Context(), "ann", 40)
			if !r.OK || r.Err != nil || r.Receipt.Origin != tidegate.OriginLocal || r.Receipt.Handle.IsZero() {
				t.Fatalf("%s: %+v", a, r.Decision)
			}
			if d := lim.Reserve(t.Context(), "ann", 30); d.OK { // more than half
				t.Errorf("%s: 40 and 30 of 60: %+v", a, d.Decision)
			}
			if err := other.Settle(t.Context(), r.Receipt, 0); !errors.Is(err, tidegate.ErrElsewhere) {
				t.Errorf("%s: settled at another node: %v", a, err)
			}
			if actual >= 0 {
				if err := tidegate.New(n).Settle(t.Context(), r.Receipt, actual); err != nil {
					t.Errorf("%s: %v", a, err)
				}
				if err := r.Settle(0); !errors.Is(err, tidegate.ErrSettled) {
					t.Errorf("%s: settled twice: %v", a, err)
				}
			}
			way.set(none)
			time.Sleep(10 * time.Second)
			if got := way.posted(limit, "ann"); got != charged {
				t.Errorf("%s, settled at %d: %d charged to the backend, want %d", a, actual, got, charged)
			}
			if d := lim.Peek(t.Context(), "ann"); d.Remaining != 120-charged || byFallback(&d) {
				t.Errorf("%s, settled at %d: %+v", a, actual, d)
			}
			_, _ = n.Close(), other.Close()
		})
	}
	for _, a := range countingAlgorithms {
		f(a, 10, 10)
		f(a, 0, 0)
		f(a, 40, 40)
		f(a, 55, 55)
		f(a, -1, 40) // never settled
	}
}

// Rules that fail open or closed do so for reservations as well, and leave nothing to settle.
func TestReserveByFailMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{}
		n := newNode(way, Options{})
		defer n.Close()
		way.set(broken)
		for mode, ok := range map[tidegate.FailMode]bool{tidegate.FailOpen: true, tidegate.FailClosed: false} {
			r := tidegate.New(n, tokens(tidegate.FixedWindow, mode)).Reserve(t.Context(), "ann", 40)
			if r.OK != ok || r.Err == nil || r.Receipt.Origin != tidegate.OriginRule || !r.Receipt.Handle.IsZero() {
				t.Errorf("mode %d: %+v", mode, r.Decision)
			}
			if err := r.Settle(1); err != nil {
				t.Errorf("mode %d: %v", mode, err)
			}
		}
	})
}

// A local reservation that is not settled in time stays charged.
func TestLocalReservationExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{}
		n := newNode(way, Options{})
		defer n.Close()
		way.set(broken)
		spend(t, n, perSecond, "k", DefaultFailures)
		lim := tidegate.New(n, tokens(tidegate.FixedWindow, tidegate.FailLocal))
		r := lim.Reserve(t.Context(), "ann", 40)
		time.Sleep(tidegate.ReserveTTL)
		if err := r.Settle(0); !errors.Is(err, tidegate.ErrSettled) {
			t.Errorf("settled after its time: %v", err)
		}
		if d := lim.Peek(t.Context(), "ann"); d.Remaining != 80 {
			t.Errorf("%+v", d)
		}
	})
}

// farReserver grants reservations at once and takes its time to say so.
type farReserver struct {
	*memory.Store
	reply time.Duration
}

func (f *farReserver) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	defer time.Sleep(f.reply)
	return f.Store.Reserve(ctx, checks, ttl)
}

// A reservation that the backend grants too late is given back there: it was decided
// locally, and is charged once in the end.
func TestLateReservation(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			far := &farReserver{memory.New(), 200 * time.Millisecond}
			n := newNode(far, Options{})
			limit := tokens(tidegate.SlidingLog, tidegate.FailLocal)
			lim := tidegate.New(n, limit)
			ctx, cancel := context.WithCancel(t.Context())
			want := int64(10)
			if leaves { // before the deadline: nobody waits for it
				want = 0
				time.AfterFunc(time.Millisecond, cancel)
			}
			r := lim.Reserve(ctx, "ann", 40)
			if !leaves && (!r.OK || r.Receipt.Origin != tidegate.OriginLocal) {
				t.Fatalf("%+v", r.Decision)
			}
			if err := r.Settle(10); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
			if d := tidegate.New(far.Store, limit).Peek(t.Context(), "ann"); 120-d.Remaining != want {
				t.Errorf("left %t: %d used in the backend, want %d", leaves, 120-d.Remaining, want)
			}
			cancel()
			_ = n.Close()
		})
	}
}

// Slots that a reservation took too late are given back as well, whoever has decided meanwhile.
func TestLateReservationOfSlots(t *testing.T) {
	for _, mode := range []tidegate.FailMode{tidegate.FailOpen, tidegate.FailClosed, tidegate.FailLocal} {
		for _, leaves := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				far := &farReserver{memory.New(), 200 * time.Millisecond}
				n := newNode(far, Options{})
				slots := tidegate.MustLimit(tidegate.Spec{
					Name: "slots", Events: 3, Period: time.Hour, Algorithm: tidegate.Concurrency, Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: mode}},
				})
				ctx, cancel := context.WithCancel(t.Context())
				if leaves { // before the deadline: nobody waits for it
					time.AfterFunc(time.Millisecond, cancel)
				}
				checks := []tidegate.Check{{Key: "ann", Limit: slots, Cost: 2}, {Key: "ann", Limit: tokens(tidegate.FixedWindow, mode), Cost: 40, Estimate: true}}
				if d, err := n.Reserve(ctx, checks, time.Hour); (err != nil) != leaves || d.Receipt.Origin == tidegate.OriginStore && !leaves {
					t.Fatalf("%+v, %v", d, err)
				}
				time.Sleep(10 * time.Second)
				for _, c := range checks {
					c.Cost = 0
					d, err := far.Store.Take(t.Context(), []tidegate.Check{c}, 1)
					inUse := int64(0)
					if mode == tidegate.FailLocal && !leaves && c.Estimate {
						inUse = 40
					}
					if err != nil || c.Limit.Capacity()-d.Remaining != inUse {
						t.Errorf("mode %d, left %t: %d of %s in use in the store, want %d: %v", mode, leaves, c.Limit.Capacity()-d.Remaining, c.Limit, inUse, err)
					}
				}
				cancel()
				_ = n.Close()
			})
		}
	}
}

// Nodes settle what others reserved in the backend that they share.
func TestSettleByAnotherNode(t *testing.T) {
	storetest.RunShared(t, true, func(t *testing.T) (a, b tidegate.Store) {
		shared := memory.New()
		return open(t, shared, Options{Deadline: patient}), open(t, shared, Options{Deadline: patient})
	})
}

// What one node has decided locally is no other's to give back or renew.
func TestForeignReceipts(t *testing.T) {
	n := newNode(memory.New(), Options{})
	defer n.Close()
	other := tidegate.Receipt{At: 1, Origin: tidegate.OriginLocal, Instance: n.instance + 2}
	checks := []tidegate.Check{{Key: "k", Limit: perSecond, Cost: -1}}
	for _, err := range []error{n.Adjust(t.Context(), other, checks), n.Renew(t.Context(), other, nil), n.Settle(t.Context(), other, 1)} {
		if !errors.Is(err, tidegate.ErrElsewhere) {
			t.Errorf("%v, want ErrElsewhere", err)
		}
	}
}
