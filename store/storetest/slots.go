package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"tidegate.dev/tidegate"
)

func slots(name string, n int64) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{Name: name, Events: n, Period: 30 * time.Second, Algorithm: tidegate.Concurrency})
}

func (s *subject) renew(r tidegate.Receipt, checks ...tidegate.Check) error {
	able, _ := renewer(s.store)
	return able.Renew(context.Background(), r, checks)
}

func (s *subject) canRenew() bool {
	_, ok := renewer(s.store)
	return ok
}

// testSlots: a slot is held until it is given back, by the name of its lease.
func testSlots(s *subject) {
	l := slots("streams", 2)
	take, release := check(l, "ann", 1), check(l, "ann", -1)
	first := s.admit(take)
	second := s.admit(take)
	s.refuse(take)
	s.adjust(first.Receipt, release)
	s.wantLeft(1, take)
	s.adjust(first.Receipt, release) // given back before: it frees nobody else's
	s.wantLeft(1, take)
	third := s.admit(take)
	s.refuse(take)
	s.adjust(second.Receipt, release)
	s.adjust(third.Receipt, release)
	s.wantLeft(2, take)
}

// testSlotNames: every lease of a store has a name of its own, even when the
// clock stands still between two of them.
func testSlotNames(s *subject) {
	a, b := slots("a", 100), slots("b", 100)
	seen := map[tidegate.Receipt]bool{}
	for _, c := range []tidegate.Check{check(a, "ann", 1), check(a, "bob", 1), check(b, "ann", 1)} {
		for range 50 {
			d := s.admit(c)
			if seen[d.Receipt] {
				s.Fatalf("lease %v was handed out twice", d.Receipt)
			}
			seen[d.Receipt] = true
		}
	}
}

// testSlotCopies: copy i of a grant has a name of its own, to be given back alone.
func testSlotCopies(s *subject) {
	l := slots("copies", 5)
	take, release := check(l, "ann", 1), check(l, "ann", -1)
	d := s.takeN(3, take)
	if d.Granted != 3 {
		s.Fatalf("3 copies = %s, want granted 3", show(d))
	}
	other := s.admit(take)
	for i := range int64(3) {
		s.adjust(d.Receipt.Copy(i), release)
		s.wantLeft(2+i, take)
	}
	s.adjust(other.Receipt, release)
	s.wantLeft(5, take)
}

// testSlotCopiesFit: however many copies are asked for, those that fit are granted,
// and no more is held or needed for it.
func testSlotCopiesFit(s *subject) {
	l := slots("fit", 10)
	for i, n := range []int{3, 4, 1000, 1 << 20, 1 << 40, math.MaxInt} {
		for cost := range int64(3) {
			c := check(l, fmt.Sprint(i, cost), cost+1)
			want := min(int64(n), 10/c.Cost)
			d := s.takeN(n, c)
			if d.Granted != want || d.Remaining != 10-want*c.Cost {
				s.Errorf("%d copies of %d slots under 10 = %s, want granted %d", n, c.Cost, show(d), want)
			}
			c.Cost = -c.Cost
			for i := range want {
				s.adjust(d.Receipt.Copy(i), c)
			}
			s.wantLeft(10, c)
		}
	}
}

// testSlotNamesOrdered: thousands of leases taken at one instant have names of their
// own, and each is given back by its own alone.
func testSlotNamesOrdered(s *subject) {
	many := lessIf(s.brief, 2000, 400)
	l := slots("many", int64(many))
	take, release := check(l, "ann", 1), check(l, "ann", -1)
	names := map[tidegate.Receipt]bool{}
	const each = 5
	for range many / each {
		d := s.takeN(each, take)
		if d.Granted != each {
			s.Fatalf("Take = %s, want %d leases", show(d), each)
		}
		for i := range int64(each) {
			if names[d.Receipt.Copy(i)] {
				s.Fatalf("lease %v was handed out twice", d.Receipt.Copy(i))
			}
			names[d.Receipt.Copy(i)] = true
		}
	}
	left := int64(0)
	for name := range names {
		s.adjust(name, release)
		s.adjust(name, release) // once is enough
		if left++; left%20 == 0 {
			s.wantLeft(left, take)
		}
		if left == 100 {
			return
		}
	}
}

// testSlotsMixed: slots and counts in one vector share the receipt, and what
// is returned by it lands, also when a thousand leases were named at one instant.
func testSlotsMixed(s *subject) {
	streams, calls := slots("streams", 5000), kinds[3].slow("calls", 5000)
	var d tidegate.Decision
	for range 1000 {
		d = s.admit(check(streams, "ann", 1), check(calls, "ann", 1))
	}
	s.adjust(d.Receipt, check(streams, "ann", -1), check(calls, "ann", -1))
	s.wantLeft(4001, check(streams, "ann", 1))
	s.wantLeft(4001, check(calls, "ann", 1))
}

// testSlotExpiry: a holder that crashed loses its slot when the lease ends, not
// a step earlier, and giving it back afterwards frees nobody else's.
func testSlotExpiry(s *subject) {
	l := slots("streams", 1)
	take := check(l, "ann", 1)
	crashed := s.admit(take)
	d := s.refuse(take)
	if d.RetryAfter != 30*time.Second {
		s.Errorf("Take = %s, want a retry when the lease ends", show(d))
	}
	s.wantRetry(d.RetryAfter, take)
	s.adjust(crashed.Receipt, check(l, "ann", -1))
	s.refuse(take)
}

// testSlotStream: a stream of ten minutes keeps its slot by renewing.
func testSlotStream(s *subject) {
	if !s.canRenew() {
		return
	}
	l := slots("streams", 1)
	take := check(l, "ann", 1)
	d := s.admit(take)
	for range 60 {
		s.clock.add(10 * time.Second)
		if err := s.renew(d.Receipt, take); err != nil {
			s.Fatalf("Renew failed: %v", err)
		}
		s.refuse(take)
	}
	s.adjust(d.Receipt, check(l, "ann", -1)) // a cancelled stream frees it at once
	s.admit(take)
}

// testSlotLost: a lease that ran out, was given back, or never was cannot be
// renewed, and renewing it takes no slot.
func testSlotLost(s *subject) {
	if !s.canRenew() {
		return
	}
	l, other := slots("streams", 2), slots("others", 2)
	take := check(l, "ann", 1)
	wantLost := func(r tidegate.Receipt, checks ...tidegate.Check) {
		s.Helper()
		if err := s.renew(r, checks...); !errors.Is(err, tidegate.ErrLeaseLost) {
			s.Errorf("Renew(%s) = %v, want ErrLeaseLost", describe(checks), err)
		}
	}
	lost := s.admit(take, check(other, "ann", 1))
	wantLost(lost.Receipt, check(l, "bob", 1))
	wantLost(lost.Receipt.Copy(1<<20), take)
	s.clock.add(30 * time.Second)
	wantLost(lost.Receipt, take, check(other, "ann", 1))
	s.wantLeft(2, take)
	back := s.admit(take, check(other, "ann", 1))
	s.adjust(back.Receipt, check(l, "ann", -1))
	wantLost(back.Receipt, take)
	wantLost(back.Receipt, check(other, "ann", 1), take) // one of two is lost
	s.wantLeft(2, take)
	if err := s.renew(back.Receipt, check(other, "ann", 1)); err != nil {
		s.Errorf("Renew of a lease still held failed: %v", err)
	}
}
