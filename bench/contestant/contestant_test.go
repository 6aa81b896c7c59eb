package contestant

import (
	"slices"
	"testing"
	"time"
)

func all() []Contestant {
	return slices.Concat(Rivals(), Tidegate())
}

// A rival that admits everything would look fast: each contestant is to admit
// its quota at once, and then refuse, and not mix up its keys.
func TestContestantLimits(t *testing.T) {
	const events = 10
	for _, c := range all() {
		t.Run(c.Name, func(t *testing.T) {
			run := c.Make(Quota{Events: events, Period: time.Hour, Burst: events})()
			for _, key := range []string{"anne", "bob"} {
				if got := run(slices.Repeat([]string{key}, 3*events)); got != events {
					t.Errorf("%s: %d of %d admitted, want %d", key, got, 3*events, events)
				}
			}
		})
	}
}

// The quota is one per key, not one per Run.
func TestRunsShareCounters(t *testing.T) {
	const events = 10
	for _, c := range all() {
		t.Run(c.Name, func(t *testing.T) {
			newRun := c.Make(Quota{Events: events, Period: time.Hour, Burst: events})
			keys := slices.Repeat([]string{"anne"}, events-1)
			if got := newRun()(keys) + newRun()(keys); got != events {
				t.Errorf("two runs of %d: %d admitted, want %d", len(keys), got, events)
			}
		})
	}
}

// What is used comes back: a contestant that refuses for ever would look fast
// as well. The quota of 50 in 100 ms is used up, and again half a second later,
// by when buckets and sliding windows are as good as new.
func TestContestantRefills(t *testing.T) {
	const events = 50
	for _, c := range all() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			run := c.Make(Quota{Events: events, Period: 100 * time.Millisecond, Burst: events})()
			keys := slices.Repeat([]string{"anne"}, events)
			run(keys)
			time.Sleep(500 * time.Millisecond) // what has come back later than that has come back, too
			if got := run(keys); got != events {
				t.Errorf("after five periods %d of %d admitted", got, events)
			}
		})
	}
}

func TestBatchIsAllOrNone(t *testing.T) {
	run := Batch(4).Make(Quota{Events: 2, Period: time.Hour, Burst: 2})()
	keys := []string{"a", "b", "c", "d", "a", "b", "c", "d", "a", "b", "c", "d", "d", "e", "f", "g", "e", "f", "g", "h"}
	if got, want := run(keys), 4+4+0+0+4; got != want {
		t.Errorf("%d admitted, want %d", got, want)
	}
}

func TestFit(t *testing.T) {
	q := Contestant{MaxEvents: 10}.Fit(Quota{Events: 50, Period: time.Second, Burst: 60})
	if q.Events != 10 || q.Burst != 10 {
		t.Errorf("a quota of 50 for one that takes 10: %+v", q)
	}
}
