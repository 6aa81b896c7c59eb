package sampled

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Of a stream of any rate, so many are picked per second, and the others are counted.
func TestPick(t *testing.T) {
	for _, per := range []int{0, 1, 5, MaxPer, MaxPer + 5} {
		for _, rate := range []int{1, 5, 1000} {
			s, at := New(per), time.Unix(1_800_000_000, 0)
			picked, left := 0, int64(0)
			for i := range 10 * rate {
				if ok, before := s.Pick("api", at.Add(time.Duration(i)*time.Second/time.Duration(rate))); ok {
					picked++
					left += before
				}
			}
			if want := 10 * min(per, rate); picked != want {
				t.Errorf("%d a second: %d of %d were picked, want %d", per, picked, 10*rate, want)
			}
			if rest := int64(9 * (rate - min(per, rate))); per > 0 && left != rest { // those of the last second are not told yet
				t.Errorf("%d a second: %d were told as not picked, want %d", per, left, rest)
			}
		}
	}
}

// Names do not take each other's share, and a clock that is set back stops nobody.
func TestNamesAndClocks(t *testing.T) {
	s, at := New(1), time.Unix(1_800_000_000, 0)
	f := func(name string, at time.Time, want bool) {
		t.Helper()
		if ok, _ := s.Pick(name, at); ok != want {
			t.Errorf("%s at %v is picked: %v", name, at.Unix(), ok)
		}
	}
	f("a", at, true)
	f("b", at, true)
	f("a", at, false)
	f("a", at.Add(-time.Hour), true)
	f("a", at.Add(-time.Hour), false)
	f("a", at, true)
	f("", at, true)
}

// Names that somebody invents take a bounded memory, and together the share of one.
func TestNamesAreBounded(t *testing.T) {
	s, at := New(1), time.Unix(1_800_000_000, 0)
	picked := 0
	for i := range 3 * maxNames {
		if ok, _ := s.Pick(fmt.Sprint("rule ", i), at); ok {
			picked++
		}
	}
	kept := 0
	s.names.Range(func(any, any) bool { kept++; return true })
	if kept > maxNames || picked != maxNames+1 {
		t.Errorf("%d names are kept, %d were picked", kept, picked)
	}
}

// Many goroutines together get no more, and none is lost to count.
func TestPickAtOnce(t *testing.T) {
	s, at := New(100), time.Unix(1_800_000_000, 0)
	var picked, told atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10_000 {
				if ok, left := s.Pick("api", at); ok {
					picked.Add(1)
					told.Add(left)
				}
			}
		})
	}
	all.Wait()
	_, left := s.Pick("api", at.Add(time.Second))
	if picked.Load() != 100 || told.Load()+left != 79_900 {
		t.Errorf("%d were picked, %d told as not", picked.Load(), told.Load()+left)
	}
}

func TestAllocsOfPick(t *testing.T) {
	s, at := New(1), time.Unix(1_800_000_000, 0)
	s.Pick("api", at)
	if n := testing.AllocsPerRun(1000, func() { s.Pick("api", at) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
