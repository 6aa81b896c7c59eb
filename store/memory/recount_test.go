package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

func windowLimit(a tidegate.Algorithm, events int64) *tidegate.Limit {
	spec := tidegate.Spec{Name: "api", Events: events, Period: time.Minute, Algorithm: a}
	if a == tidegate.Quota {
		spec.Period, spec.Calendar = 0, tidegate.Day
	}
	return tidegate.MustLimit(spec)
}

var windows = []tidegate.Algorithm{tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Quota}

// A key that was counted again is what it would be if its events had come when the counts say.
func TestRecount(t *testing.T) {
	start := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for _, a := range windows {
		for _, spread := range []time.Duration{0, 3 * time.Second, 20 * time.Second} {
			now := start
			clock := func() time.Time { return now }
			s, twin := memory.Open(memory.Config{Now: clock}), memory.Open(memory.Config{Now: clock})
			l := windowLimit(a, 100)
			one := []tidegate.Check{{Key: "ann", Limit: l, Cost: 7}}
			if _, err := s.Take(context.Background(), one, 1); err != nil { // is forgotten
				t.Fatal(err)
			}
			var counts []memory.Count
			for i := range int64(6) {
				now = start.Add(time.Duration(i) * spread)
				one[0].Cost = i + 1
				if d, err := twin.Take(context.Background(), one, 1); err != nil || !d.OK {
					t.Fatal(d, err)
				}
				counts = append(counts, memory.Count{At: now, Events: i + 1}, memory.Count{At: now})
			}
			if err := s.Recount("ann", l, counts); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				for _, cost := range []int64{0, 1, 60} {
					one[0].Cost = cost
					got, err1 := s.Take(context.Background(), one, 1)
					want, err2 := twin.Take(context.Background(), one, 1)
					if err1 != nil || err2 != nil || fmt.Sprint(got) != fmt.Sprint(want) {
						t.Fatalf("%s, %s, at %s, cost %d:\n%v\nwant\n%v", a, spread, now.Sub(start), cost, got, want)
					}
				}
				now = now.Add(7 * time.Second)
			}
		}
	}
}

// Counts of others who have a far higher limit are those that they would be if they had been charged under it.
func TestRecountAboveTheLimit(t *testing.T) {
	start := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for _, a := range windows {
		now := start
		clock := func() time.Time { return now }
		s, twin := memory.Open(memory.Config{Now: clock}), memory.Open(memory.Config{Now: clock})
		low, high := windowLimit(a, 10), windowLimit(a, 1000)
		var counts []memory.Count
		for i := range int64(4) {
			now = start.Add(time.Duration(i) * 7 * time.Second)
			if d, err := twin.Take(context.Background(), []tidegate.Check{{Key: "ann", Limit: high, Cost: 250}}, 1); err != nil || !d.OK {
				t.Fatal(d, err)
			}
			counts = append(counts, memory.Count{At: now, Events: 250})
		}
		if err := s.Recount("ann", low, counts); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			for _, l := range []*tidegate.Limit{low, high} {
				one := []tidegate.Check{{Key: "ann", Limit: l}}
				got, err1 := s.Take(context.Background(), one, 1)
				want, err2 := twin.Take(context.Background(), one, 1)
				if err1 != nil || err2 != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%s, at %s:\n%v\nwant\n%v", l, now.Sub(start), got, want)
				}
			}
			now = now.Add(3 * time.Second)
		}
	}
}

// Without counts a key begins afresh, and takes no memory.
func TestRecountToNothing(t *testing.T) {
	for _, a := range windows {
		s, l := memory.New(), windowLimit(a, 1)
		one := []tidegate.Check{{Key: "ann", Limit: l, Cost: 1}}
		for range 3 {
			if d, err := s.Take(context.Background(), one, 1); err != nil || !d.OK {
				t.Fatal(a, d, err)
			}
			if err := s.Recount("ann", l, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Recount("bob", l, []memory.Count{{At: time.Now()}}); err != nil || s.Stats().Keys > 1 {
			t.Errorf("%s: %v, %+v", a, err, s.Stats())
		}
	}
}

func TestRecountRefuses(t *testing.T) {
	s, now := memory.New(), time.Now()
	good := windowLimit(tidegate.FixedWindow, 10)
	f := func(l *tidegate.Limit, counts ...memory.Count) {
		t.Helper()
		if err := s.Recount("ann", l, counts); err == nil {
			t.Errorf("%s is counted again as %v", l, counts)
		}
	}
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.SlidingLog, tidegate.Concurrency} {
		f(tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 10, Period: time.Minute, Algorithm: a}))
	}
	f(nil)
	f(good, memory.Count{At: now, Events: -1})
	f(good, memory.Count{At: now, Events: 1}, memory.Count{At: now.Add(-time.Hour), Events: 1})
	if s.Stats().Keys != 0 {
		t.Errorf("%+v", s.Stats())
	}
}

func ExampleStore_Recount() {
	store := memory.New()
	limit := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 10, Period: time.Hour, Algorithm: tidegate.SubWindows})
	// Another process has counted 7 events just now.
	if err := store.Recount("ann", limit, []memory.Count{{At: time.Now(), Events: 7}}); err != nil {
		panic(err)
	}
	d := tidegate.New(store, limit).Allow(context.Background(), "ann")
	fmt.Println(d.OK, d.Remaining)
	// Output: true 2
}
