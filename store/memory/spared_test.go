package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A flood of a rule whose keys may be dropped leaves room for rules that keep theirs, and for slots.
func TestFloodLeavesRoomForSparedRules(t *testing.T) {
	testdep.SkipUnderRace(t)
	const maxBytes = 128 << 10
	floods, spared := []tidegate.Algorithm{tidegate.TokenBucket, tidegate.SlidingLog}, append(stateful, tidegate.Concurrency)
	for _, a := range spared {
		for _, flood := range floods {
			for _, events := range []int64{1, 5} { // used up by one request, or not
				p := newPair(t, maxBytes)
				flooded := tidegate.MustLimit(specOf("flooded", flood, events, 7*24*time.Hour, tidegate.EvictLeast))
				spared := tidegate.MustLimit(specOf("spared", a, 5, time.Hour, tidegate.RefuseNew))
				for k := range maxBytes / 12 {
					ask1(t, p.bounded, flooded, fmt.Sprint("invented", k))
					if k%100 == 0 {
						p.clock.pass(time.Millisecond)
						ask1(t, p.bounded, spared, fmt.Sprint("client", k/100%25))
					}
				}
				if st := p.bounded.LimitStats(spared); st.RefusedFull+st.Forgotten > 0 || st.Keys != 25 {
					t.Errorf("%s beside a flood of %s, %d events: %+v", a, flood, events, st)
				}
				p.withinBound()
			}
		}
	}
}

// Reservations are refused before they take what other rules need.
func TestFloodOfReservations(t *testing.T) {
	testdep.SkipUnderRace(t)
	const maxBytes = 256 << 10
	for _, full := range []tidegate.OnFull{tidegate.EvictLeast, tidegate.RefuseNew} {
		for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.SlidingLog} {
			p := newPair(t, maxBytes)
			login := tidegate.MustLimit(specOf("login", tidegate.SlidingLog, 5, 24*time.Hour, full))
			flooded := tidegate.MustLimit(specOf("flooded", a, 5, 24*time.Hour, full))
			for k := range 8 {
				for range 6 {
					p.same(login, fmt.Sprint("exhausted", k))
				}
			}
			refused := 0
			for k := range maxBytes / 60 {
				p.clock.pass(time.Millisecond)
				checks := []tidegate.Check{{Key: fmt.Sprint("invented", k), Limit: flooded, Cost: 1, Estimate: true}}
				d, err := p.bounded.Reserve(context.Background(), checks, time.Hour)
				if err != nil || !d.OK && d.Err != tidegate.ErrFull {
					t.Fatal(d, err)
				}
				if !d.OK {
					refused++
				}
				p.withinBound()
			}
			if refused == 0 {
				t.Error("the flood was not large enough")
			}
			other := tidegate.MustLimit(specOf("other", tidegate.SlidingLog, 5, time.Hour, full))
			for k := range 8 {
				p.same(login, fmt.Sprint("exhausted", k))
				for range 6 {
					p.same(other, fmt.Sprint("client", k))
				}
			}
			p.clock.pass(2 * time.Hour) // they have expired
			checks := []tidegate.Check{{Key: "new", Limit: flooded, Cost: 1, Estimate: true}}
			if d, err := p.bounded.Reserve(context.Background(), checks, time.Hour); err != nil || !d.OK {
				t.Errorf("%+v (%v) once there is room", d, err)
			}
			if n := p.bounded.reservations.held.bytes.Load(); n != sizeOf(1) {
				t.Errorf("%d bytes are held for one reservation", n)
			}
		}
	}
}

// Limits that keep their keys are under the bound, too, however many there are. Those that are only looked
// at have empty tables until the next sweep.
func TestManySparedLimitsStayWithinTheBound(t *testing.T) {
	testdep.SkipUnderRace(t)
	const maxBytes = 256 << 10
	const n = 3_000
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.SlidingLog, tidegate.Concurrency} {
		for cost, most := range []int64{maxBytes + maxBytes/32, maxBytes + tableBytes} {
			s, clock := openAt(maxBytes)
			var limits []*tidegate.Limit
			for i := range n {
				limits = append(limits, tidegate.MustLimit(specOf(fmt.Sprint("limit", i), a, 1, time.Hour, tidegate.RefuseNew)))
			}
			for i, l := range limits {
				c := int64(cost)
				if i < 500 {
					c = 1
				}
				if _, err := s.TakeOne(context.Background(), "a", l, c, 0); err != nil {
					t.Fatal(err)
				}
				if st := s.Stats(); st.Bytes > most {
					t.Fatalf("%s: %d bytes after %d limits", a, st.Bytes, i)
				}
			}
			if st := s.Stats(); st.RefusedFull == 0 || st.Forgotten > 0 {
				t.Errorf("%s: %+v", a, st)
			}
			clock.pass(3 * time.Hour)
			for _, l := range limits[1000:1020] {
				if d := ask1(t, s, l, "a"); !d.OK {
					t.Errorf("%s: %+v once there is room", a, d)
				}
			}
		}
	}
}

// A check that costs nothing needs no memory, also beside one that costs something: no key makes room
// for it, and it is not refused for want of room.
func TestPeekBesideAChargeNeedsNoRoom(t *testing.T) {
	for _, a := range stateful {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s := Open(Config{MaxBytes: 64 << 10, Now: func() time.Time { return now }})
		full := tidegate.MustLimit(specOf("full", a, 1, 24*time.Hour, tidegate.RefuseNew))
		other := tidegate.MustLimit(specOf("other", a, 1000, 24*time.Hour, tidegate.EvictLeast))
		take := func(checks ...tidegate.Check) tidegate.Decision {
			d, err := s.Take(context.Background(), checks, 1)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		take(tidegate.Check{Key: "ann", Limit: other, Cost: 1})
		for i := range 5000 {
			take(tidegate.Check{Key: fmt.Sprint("key", i), Limit: full, Cost: full.Capacity(), MaxWait: 48 * time.Hour})
		}
		before := s.Stats()
		if before.RefusedFull == 0 {
			t.Fatalf("%s: the store is not full: %+v", a, before)
		}
		for range 100 {
			if d := take(tidegate.Check{Key: "new", Limit: full}, tidegate.Check{Key: "ann", Limit: other, Cost: 1, MaxWait: 48 * time.Hour}); !d.OK {
				t.Fatalf("%s: %+v", a, d)
			}
		}
		if d := take(tidegate.Check{Key: "key0", Limit: full}, tidegate.Check{Key: "ann", Limit: other, Cost: 1, MaxWait: 48 * time.Hour}); d.OK {
			t.Errorf("%s: a key that is used up is admitted beside another", a)
		}
		if after := s.Stats(); after != before {
			t.Errorf("%s: the store has %+v, and had %+v", a, after, before)
		}
	}
}
