package registry

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// ranks wants the instances to have the ranks 0, 1, 2 and so on among so many.
func ranks(t *testing.T, all ...*Registry) {
	t.Helper()
	seen := make(map[int]bool)
	for i, f := range all {
		size, rank := f.Membership()
		if size != len(all) || rank < 0 || rank >= size || seen[rank] {
			t.Errorf("instance %d has the rank %d of %d, want one of its own among %d", i, rank, size, len(all))
		}
		seen[rank] = true
	}
}

// Every instance has a rank of its own after a heartbeat, whoever joins or leaves.
func TestRanks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(paper)
		var all []*Registry
		join := func(n int) {
			for range n {
				all = append(all, New(p, Options{}))
				if _, rank := all[len(all)-1].Membership(); rank != -1 {
					t.Errorf("the rank is %d before anybody said so", rank)
				}
				all[len(all)-1].Join()
			}
		}
		join(5)
		time.Sleep(DefaultTTL + 3*DefaultEvery) // the list has been whole for a while
		ranks(t, all...)
		for range 3 {
			all[0].Close()
			all = all[1:]
		}
		time.Sleep(DefaultEvery)
		synctest.Wait()
		ranks(t, all...)
		join(5)
		time.Sleep(DefaultEvery)
		synctest.Wait()
		ranks(t, all...)
		for _, f := range all {
			f.Close()
		}
	})
}

// Fewer are believed at once only by a list that has listed this instance for a while.
func TestTallyOfAWholeRoll(t *testing.T) {
	k := tally{size: 1}
	f := func(live int, listed bool, err error, at, want int) {
		t.Helper()
		k = k.step(chain.Roster{Live: live, Listed: listed}, err, time.Duration(at)*time.Second, 10*time.Second)
		if k.size != want {
			t.Errorf("at %d s: %d, want %d", at, k.size, want)
		}
	}
	down := errors.New("down")
	f(5, false, nil, 0, 5)
	f(4, true, nil, 3, 5)
	f(4, true, nil, 6, 5)
	f(4, true, nil, 13, 4) // both ways
	f(2, true, nil, 14, 2) // at once
	f(7, true, nil, 15, 7)
	f(3, true, down, 18, 7) // a part of it
	f(3, true, nil, 20, 7)
	f(6, true, nil, 21, 7)
	f(3, true, nil, 28, 6) // whole since 20 s, fewer since 18 s
	f(3, true, nil, 30, 3)
	f(5, true, nil, 31, 5)
	f(1, false, nil, 32, 5) // another list
	f(1, true, nil, 35, 5)
	f(2, true, nil, 42, 2)
}
