package node

import (
	"slices"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// someCall is a call that so many wait for.
func someCall(waiters int) *call {
	c := &call{wake: make(chan struct{}, 1)}
	for range waiters {
		c.joinLocked(time.Minute)
	}
	return c
}

// Grants go to those who are left, in the order they came, and the others are told the
// refusal.
func TestAnswersOfWaiters(t *testing.T) {
	grant, refusal := &tidegate.Decision{OK: true}, &tidegate.Decision{Remaining: 7}
	f := func(waiters int, gone []int, grants, spare int64, want ...int) {
		t.Helper()
		c := someCall(waiters)
		for _, i := range gone {
			c.leaveLocked(i)
		}
		if got := c.serve(grant, grants); got != spare {
			t.Errorf("%d waiters without %v: %d of %d grants are left over, want %d", waiters, gone, got, grants, spare)
		}
		c.conclude(refusal, nil, true)
		var served []int
		for i := range waiters {
			d, err := c.answer(i)
			if slices.Contains(gone, i) {
				continue
			}
			if *d == *grant && err == nil {
				served = append(served, i)
			} else if *d != *refusal || err != nil {
				t.Errorf("waiter %d of %d without %v is told %+v, %v", i, waiters, gone, *d, err)
			}
		}
		if !slices.Equal(served, want) {
			t.Errorf("%d grants to %d waiters without %v went to %v, want %v", grants, waiters, gone, served, want)
		}
	}
	f(3, nil, 3, 0, 0, 1, 2)
	f(3, nil, 2, 0, 0, 1)
	f(3, nil, 0, 0)
	f(3, nil, 5, 2, 0, 1, 2)
	f(6, []int{3, 1}, 3, 0, 0, 2, 4)
	f(6, []int{5, 0, 2}, 2, 0, 1, 3)
	f(4, []int{0, 1, 2}, 4, 3, 3)
	f(2, []int{1, 0}, 2, 2)
}

// Those for whom there is nothing yet are asked for again, and keep their order; those
// who were served before keep the answers they have.
func TestAnswersInParts(t *testing.T) {
	c := someCall(6)
	first, second, refusal := &tidegate.Decision{OK: true, Receipt: tidegate.Receipt{At: 1}}, &tidegate.Decision{OK: true, Receipt: tidegate.Receipt{At: 2}}, &tidegate.Decision{Receipt: tidegate.Receipt{At: 3}}
	c.leaveLocked(1)
	c.serve(first, 2)
	c.leaveLocked(4)
	if c.waiting() != 2 {
		t.Errorf("%d wait, want 2", c.waiting())
	}
	c.serve(second, 1)
	c.conclude(refusal, nil, true)
	for i, want := range []int64{1, 0, 1, 2, 0, 3} {
		if d, _ := c.answer(i); want > 0 && d.Receipt.At != want {
			t.Errorf("waiter %d is told %d, want %d", i, d.Receipt.At, want)
		}
	}
}
