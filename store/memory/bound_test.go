package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

const (
	minute   = time.Minute
	farAhead = 100 * 24 * time.Hour
)

// testClock stands still until told.
type testClock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *testClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func openAt(maxBytes int64) (*Store, *testClock) {
	c := &testClock{t: noon}
	return Open(Config{MaxBytes: maxBytes, Now: c.now}), c
}

// limitOf is a limit by an algorithm with room for n.
func limitOf(a tidegate.Algorithm, n int64, full tidegate.OnFull) *tidegate.Limit {
	spec := tidegate.Spec{Name: a.String(), Algorithm: a, Events: n, Period: 24 * time.Hour, OnFull: full}
	if a == tidegate.Quota {
		spec.Period, spec.Calendar = 0, tidegate.Month
	}
	return tidegate.MustLimit(spec)
}

var bounded = []tidegate.Algorithm{
	tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow,
	tidegate.SlidingLog, tidegate.SubWindows, tidegate.Quota,
}

// A flood of fresh keys makes nobody forget who is exhausted, and memory stays
// within the bound throughout.
func TestFloodForgetsNoExhaustedKey(t *testing.T) {
	const bound, exhaustedKeys = 60_000, 200
	flood := 6_000
	if raceEnabled { // which only takes time where one goroutine asks
		flood = 3_000
	}
	for _, a := range bounded {
		t.Run(a.String(), func(t *testing.T) {
			s, _ := openAt(bound)
			l := limitOf(a, 3, tidegate.EvictLeast)
			for k := range exhaustedKeys {
				for range 3 {
					ask1(t, s, l, fmt.Sprint("exhausted", k))
				}
			}
			for k := range flood {
				if d := ask1(t, s, l, fmt.Sprint("fresh", k)); !d.OK {
					t.Fatalf("fresh key %d was refused: %+v", k, d)
				}
				if used := s.budget.used.Load(); used > bound {
					t.Fatalf("%d bytes after %d keys, the bound is %d", used, k, bound)
				}
			}
			for k := range exhaustedKeys {
				if ask1(t, s, l, fmt.Sprint("exhausted", k)).OK {
					t.Fatalf("exhausted key %d was admitted again", k)
				}
			}
			st := s.Stats()
			if st.Evicted == 0 || st.Forgotten != st.Evicted {
				t.Errorf("%+v: want fresh keys forgotten, and none that hold somebody back", st)
			}
			if got := st.Keys + st.Forgotten; got != int64(exhaustedKeys+flood) {
				t.Errorf("%+v: %d keys kept or counted, want %d", st, got, exhaustedKeys+flood)
			}
		})
	}
}

// When the flood exhausts its keys too, there is nothing without information
// left to drop: OnFull decides, and what happened is counted.
func TestFloodThatExhaustsItsKeys(t *testing.T) {
	testdep.SkipUnderRace(t)
	const bound = 60_000
	flood := 4_000
	if raceEnabled {
		flood = 2_500
	}
	for _, a := range bounded {
		t.Run(a.String()+"/evict", func(t *testing.T) {
			s, _ := openAt(bound)
			l := limitOf(a, 1, tidegate.EvictLeast)
			for k := range flood {
				ask1(t, s, l, fmt.Sprint(k))
			}
			again := int64(0)
			st := s.Stats()
			for k := range flood {
				if ask1(t, s, l, fmt.Sprint(k)).OK {
					again++
				}
			}
			if st.Bytes > bound || st.Forgotten == 0 || st.RefusedFull != 0 || st.Keys+st.Forgotten != int64(flood) {
				t.Errorf("%+v: want what was forgotten counted", st)
			}
			if again < st.Forgotten {
				t.Errorf("%d admitted again, but %d were forgotten", again, st.Forgotten)
			}
		})
		t.Run(a.String()+"/refuse", func(t *testing.T) {
			s, _ := openAt(bound)
			l := limitOf(a, 1, tidegate.RefuseNew)
			admitted := make(map[int]bool)
			for k := range flood {
				d := ask1(t, s, l, fmt.Sprint(k))
				admitted[k] = d.OK
				if !d.OK && (!errors.Is(d.Err, tidegate.ErrFull) || d.RetryAfter <= 0) {
					t.Fatalf("key %d: %+v, want ErrFull and a time to try again", k, d)
				}
			}
			for k := range flood {
				if d := ask1(t, s, l, fmt.Sprint(k)); d.OK && admitted[k] {
					t.Fatalf("key %d was admitted twice", k)
				}
			}
			if st := s.Stats(); st.Bytes > bound || st.Forgotten != 0 || st.RefusedFull == 0 {
				t.Errorf("%+v: want nobody forgotten and refusals counted", st)
			}
		})
	}
}

// One rule's flood does not crowd out another rule's keys.
func TestFloodOfOneRuleLeavesRoomForOthers(t *testing.T) {
	testdep.SkipUnderRace(t)
	const bound = 150_000
	s, _ := openAt(bound)
	flooded := tidegate.MustLimit(tidegate.Spec{Name: "flooded", Events: 10, Period: time.Hour, Algorithm: tidegate.TokenBucket})
	quiet := tidegate.MustLimit(tidegate.Spec{Name: "quiet", Events: 1, Period: 24 * time.Hour, Algorithm: tidegate.TokenBucket})
	for k := range 10_000 {
		ask1(t, s, flooded, fmt.Sprint(k))
	}
	for k := range 800 {
		ask1(t, s, quiet, fmt.Sprint(k))
	}
	again := 0
	for k := range 800 {
		if ask1(t, s, quiet, fmt.Sprint(k)).OK {
			again++
		}
	}
	if st := s.LimitStats(quiet); again > 0 || st.Forgotten > 0 {
		t.Errorf("%d of 800 keys of the quiet rule were admitted again; %+v", again, st)
	}
	if st := s.Stats(); st.Bytes > bound {
		t.Errorf("%d bytes, the bound is %d", st.Bytes, bound)
	}
}

// A log whose record cannot grow joins its stamps: it holds back a little
// longer, and never admits more.
func TestLogAtTheBoundIsNeverOver(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.SubWindows} {
		s, clock := openAt(60_000)
		l := tidegate.MustLimit(tidegate.Spec{Events: 50, Period: 60 * time.Second, Algorithm: a, OnFull: tidegate.RefuseNew})
		var stamps []time.Time
		ask := func() {
			if ask1(t, s, l, "busy").OK {
				stamps = append(stamps, clock.now())
			}
		}
		for range 5 { // so many that it is not among the least used, which may be forgotten
			ask()
		}
		for k := range 2000 { // fill the budget with keys that hold one event
			ask1(t, s, l, fmt.Sprint(k))
		}
		for range 4 * 60 {
			clock.pass(250 * time.Millisecond)
			ask()
		}
		for i, last := range stamps {
			in := 0
			for _, earlier := range stamps[:i+1] {
				if last.Sub(earlier) < 59*time.Second {
					in++
				}
			}
			if in > 50 {
				t.Fatalf("%s: %d in 59 s, the limit is 50", a, in)
			}
		}
		if len(stamps) < 40 {
			t.Errorf("%s: only %d admitted", a, len(stamps))
		}
	}
}

// Slots in use are never forgotten: that would give them twice.
func TestLeasesAreNotEvicted(t *testing.T) {
	s, _ := openAt(60_000)
	l := tidegate.Slots(1, time.Hour)
	held := 0
	for k := range 3000 {
		if ask1(t, s, l, fmt.Sprint(k)).OK {
			held++
		}
	}
	for k := range held {
		if d := ask1(t, s, l, fmt.Sprint(k)); d.OK {
			t.Fatalf("slot of key %d was given twice", k)
		}
	}
	if st := s.Stats(); st.Forgotten != 0 || st.RefusedFull == 0 {
		t.Errorf("%+v: want refusals and nothing forgotten", st)
	}
}

// Advice for which there is no memory is left out: nobody knows that it is over.
func TestAdviceWithoutMemoryIsNotOver(t *testing.T) {
	for _, l := range []*tidegate.Limit{
		tidegate.Slots(1, time.Hour), limitOf(tidegate.TokenBucket, 1, tidegate.RefuseNew), limitOf(tidegate.SlidingLog, 1, tidegate.RefuseNew),
	} {
		s, _ := openAt(60_000)
		for k := range 3000 {
			ask1(t, s, l, fmt.Sprint(k))
		}
		fresh := ""
		for k := 0; fresh == ""; k++ { // some segments may have a place left
			if key := fmt.Sprint("fresh", k); errors.Is(ask1(t, s, l, key).Err, tidegate.ErrFull) {
				fresh = key
			}
		}
		before := s.Stats().RefusedFull
		for _, c := range []struct {
			key  string
			over bool
		}{{"0", true}, {fresh, false}} {
			checks := []tidegate.Check{{Key: c.key, Limit: l, Cost: 1, Advisory: true}, {Key: "a", Limit: tidegate.PerMinute(100), Cost: 1}}
			d, err := s.Take(context.Background(), checks, 1)
			if err != nil || !d.OK || checks[0].Over != c.over {
				t.Errorf("%s, key %s: %+v (%v), over %t, want %t", l, c.key, d, err, checks[0].Over, c.over)
			}
		}
		if before == 0 || s.Stats().RefusedFull == before {
			t.Errorf("%s: the store was not full", l)
		}
	}
}
