package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// Whoever looks while others write finds a refusal as it was written, or none.
func TestDenialsAtOnce(t *testing.T) {
	var table denials
	table.init(4) // they all meet in one set
	l := per(1, time.Hour, tidegate.TokenBucket)
	var all sync.WaitGroup
	var mu sync.Mutex
	found := 0
	for worker := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 3))
			mine := 0
			for i := range 20_000 {
				key := r.IntN(6)
				c := table.counter(l, fmt.Sprint(key))
				switch at := time.Duration(i + 1); r.IntN(20) {
				case 0:
					v := time.Duration(1 + r.IntN(1000)*8 + key)
					table.note(c, 0, 1, int64(key), refused{v, 2 * v, 3 * v, int64(4 * v)}, at)
				case 1:
					if r.IntN(50) == 0 {
						table.drop(c, 0)
					}
				default:
					got, ok := table.find(c, 1, 10)
					if !ok || got.until == 0 {
						continue
					}
					mine++
					v := got.until
					if (got != refused{v, 2 * v, 3 * v, int64(4 * v)}) || int(v-1)%8 != key {
						t.Errorf("of key %d: %+v", key, got)
					}
				}
			}
			mu.Lock()
			found += mine
			mu.Unlock()
		})
	}
	all.Wait()
	if found < 1000 {
		t.Errorf("%d were found: the test has lost its point", found)
	}
}

// When there are more refusals than places, those that end first go first.
func TestDenialsMakeRoom(t *testing.T) {
	var table denials
	table.init(4)
	l := per(1, time.Hour, tidegate.TokenBucket)
	name := func(i int) counter { return table.counter(l, fmt.Sprint(i)) }
	for i := range 5 {
		table.note(name(i), 0, 1, 1, refused{until: time.Duration(100 - i)}, 1)
	}
	for i := range 5 {
		if _, ok := table.find(name(i), 1, 1); ok != (i != 3) {
			t.Errorf("the refusal %d is known: %t", i, ok)
		}
	}
	table.note(name(0), 0, 1, 1, refused{until: 200}, 1)
	if r, ok := table.find(name(0), 1, 1); !ok || r.until != 200 {
		t.Errorf("what is known of the same was not replaced: %+v, %t", r, ok)
	}
}

// Nobody looks for refusals while there are none, and somebody does as soon as there is.
func TestNoneToFind(t *testing.T) {
	var table denials
	table.init(8)
	name := table.counter(per(1, time.Hour, tidegate.TokenBucket), "ann")
	f := func(want bool) {
		t.Helper()
		if got := table.none(); got != want {
			t.Errorf("none is %t", got)
		}
	}
	f(true)
	table.note(name, 0, 1, 1, refused{until: 2 * time.Second}, time.Second)
	f(false)
	table.pass(1900 * time.Millisecond)
	f(false)
	table.note(name, 0, 1, 1, refused{until: time.Second}, time.Second) // an answer that was late
	table.pass(2 * time.Second)                                         // too soon after the last
	f(false)
	table.pass(3 * time.Second)
	f(true)
	table.note(name, 0, 1, 1, refused{until: 4 * time.Second}, 3*time.Second)
	f(false)
}

// A refusal from memory is free of garbage. A key that is asked for alone costs its
// answer, besides what the inner store needs.
func TestAllocations(t *testing.T) {
	testdep.SkipUnderRace(t)
	s := open(t, memory.New(), Options{Deadline: patient})
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	f := func(name string, most float64, c tidegate.Check) {
		t.Helper()
		checks := make([]tidegate.Check, 1)
		if got := testing.AllocsPerRun(1000, func() {
			checks[0] = c
			if _, err := s.Take(ctx, checks, 1); err != nil {
				t.Error(err)
			}
		}); got > most {
			t.Errorf("%s: %v allocations, want at most %v", name, got, most)
		}
	}
	f("refused from memory", 0, checkOf(1, time.Hour, tidegate.TokenBucket))
	f("asked for", 1, tidegate.Check{Key: "ann", Limit: per(1_000_000, time.Hour, tidegate.FixedWindow), Cost: 1})
}
