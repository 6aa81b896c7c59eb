package cluster

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// someLeg is a leg of a flight in which so many sit.
func someLeg(t *testing.T, seats int) *leg {
	s := open(t, memory.New(), Options{Deadline: patient})
	l := s.newLeg(&flight{store: s, lane: &s.lanes[0], due: patient})
	for range seats {
		l.sitLocked(new(patience))
	}
	return l
}

// Grants go to those who are left, in the order they came, and the others are told the
// refusal.
func TestSeats(t *testing.T) {
	grant, refusal := &tidegate.Decision{OK: true}, &tidegate.Decision{Remaining: 7}
	f := func(seats int, gone []int, grants, spare int, want ...int) {
		t.Helper()
		l := someLeg(t, seats)
		for _, seat := range gone {
			l.leaveLocked(seat)
		}
		if got := l.serve(grant, grants); got != spare {
			t.Errorf("%d seats without %v: %d of %d grants are left over, want %d", seats, gone, got, grants, spare)
		}
		l.conclude(refusal, nil)
		var served []int
		for seat := range seats {
			d, err := l.answer(seat)
			if slices.Contains(gone, seat) {
				continue
			}
			if d == grant && err == nil {
				served = append(served, seat)
			} else if d != refusal || err != nil {
				t.Errorf("seat %d of %d without %v is told %+v, %v", seat, seats, gone, d, err)
			}
		}
		if !slices.Equal(served, want) {
			t.Errorf("%d grants to %d seats without %v went to %v, want %v", grants, seats, gone, served, want)
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

// Those for whom there is nothing yet wait in another leg, in the same order.
func TestSeatsMove(t *testing.T) {
	l, grant := someLeg(t, 6), &tidegate.Decision{OK: true}
	l.leaveLocked(1)
	l.leaveLocked(4)
	l.serve(grant, 2)
	to := l.moveLocked()
	if to.seats != 2 || to.waiting() != 2 || l.onward != to || !l.done.Load() {
		t.Errorf("%d of %d wait elsewhere, want 2 of 2", to.waiting(), to.seats)
	}
	for seat, want := range []int{-1, -1, -1, 0, -1, 1} {
		d, err := l.answer(seat)
		if moved := d == nil && err == nil; moved != (want >= 0) && seat != 1 && seat != 4 {
			t.Errorf("seat %d is told %+v, %v", seat, d, err)
		} else if moved && want >= 0 && l.place(seat)-l.served != want {
			t.Errorf("seat %d waits at %d, want %d", seat, l.place(seat)-l.served, want)
		}
	}
}

// Whatever track somebody waits on, everybody is woken.
func TestTracks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := someLeg(t, 3*tracks)
		s := l.flight.store
		var all sync.WaitGroup
		for i := range 3 * tracks {
			all.Go(func() {
				l.lane.mu.Lock()
				l.waitLocked(i % tracks)
			})
		}
		synctest.Wait()
		l.wakeAll() // to look, which they do once more
		all.Wait()
		for i := range 3 * tracks {
			all.Go(func() {
				l.lane.mu.Lock()
				l.waitLocked(i % tracks)
				if !l.done.Load() {
					t.Errorf("seat %d was woken without an answer", i)
				} else if _, err := l.answer(i); err == nil {
					t.Errorf("seat %d was told nothing", i)
				}
			})
		}
		synctest.Wait()
		l.lane.mu.Lock()
		l.conclude(nil, errors.New("no"))
		l.lane.mu.Unlock()
		s.wakeLeg(l)
		all.Wait()
		for range 100 {
			if n := s.track(); n < 0 || n >= tracks {
				t.Fatalf("track %d of %d", n, tracks)
			}
		}
	})
}
