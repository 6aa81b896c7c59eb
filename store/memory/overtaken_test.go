package memory

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// owned returns what is ready soon if the nth reading of the clock may be by the owner of a slot, as is
// any for a record but the first of the short way.
func owned(record, short bool, nth int) <-chan time.Time {
	if short && nth == 1 || !record {
		return nil
	}
	return time.After(50 * time.Millisecond)
}

// Room that is made while a request is decided admits it without a trace of the refusal, whichever
// reading of the clock it comes at: by one check and by a vector, by the short and the long way, a charge
// or a question. Where the state is in the slot, that is so even if it changes after it was read: what was
// read may never have been, since a slot is written in two steps.
func TestRoomMadeMeanwhile(t *testing.T) {
	ways := []struct {
		name    string
		cost    int64
		maxWait time.Duration
	}{
		{"spend", 1, 0},
		{"take", 1, time.Nanosecond},
		{"peek", 0, 0},
	}
	for _, a := range stateful {
		for _, way := range ways {
			for n := 1; n <= 3; n++ {
				check := tidegate.Check{Key: "a", Cost: way.cost, MaxWait: way.maxWait}
				if a == tidegate.LeakyBucket {
					check.MaxWait = farAhead
				}
				t.Run(fmt.Sprintf("%s/%s/%d", a, way.name, n), func(t *testing.T) { roomMadeMeanwhile(t, a, check, n) })
			}
		}
	}
}

// roomMadeMeanwhile asks by a vector of n checks, of which the last is refused.
func roomMadeMeanwhile(t *testing.T, a tidegate.Algorithm, check tidegate.Check, n int) {
	short := check.Cost > 0 && check.MaxWait == 0
	record := kinds[a].inRecord()
	admitted := 0
	for nth := 1; nth <= 4; nth++ {
		var mu sync.Mutex
		var others sync.WaitGroup
		var meanwhile func() // under mu
		reads := 0           // under mu
		now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
		s := Open(Config{Now: func() time.Time {
			mu.Lock()
			reads++
			do := meanwhile
			if reads == nth {
				meanwhile = nil
			} else {
				do = nil
			}
			mu.Unlock()
			if do != nil {
				done := make(chan struct{})
				others.Go(func() { do(); close(done) })
				select {
				case <-done:
				case <-owned(record, short, nth): // whoever reads the clock owns the slot, and others wait for that
				}
			}
			return now
		}})
		check.Limit = tidegate.MustLimit(specOf("limit", a, 5, 2*time.Millisecond, tidegate.EvictLeast)) // short waits are looked at again
		use := check
		use.Cost = 1
		last := tidegate.Decision{}
		for more := true; more; more = last.Remaining > 0 {
			last = takeChecks(t, s, use)
		}
		last.Receipt.At += algo.Ticks(last.Wait) // of a queue, the turn
		var checks []tidegate.Check
		wide := tidegate.MustLimit(tidegate.Spec{Name: "wide", Algorithm: tidegate.TokenBucket, Events: 1000, Period: 24 * time.Hour})
		for i := range n - 1 {
			beside := check
			beside.Key, beside.Limit = fmt.Sprint("beside", i), wide
			takeChecks(t, s, beside) // so that the short way knows it
			checks = append(checks, beside)
		}
		checks = append(checks, check)
		mu.Lock()
		reads, meanwhile = 0, func() {
			back := []tidegate.Check{{Key: "a", Limit: check.Limit, Cost: -1}}
			if err := s.Adjust(context.Background(), last.Receipt, back); err != nil {
				t.Error(err)
			}
		}
		mu.Unlock()
		d := takeChecks(t, s, checks...)
		others.Wait()
		mu.Lock()
		made := meanwhile == nil
		mu.Unlock()
		if d.OK {
			admitted++
		} else if made && !record {
			t.Errorf("reading %d: refused, although room was made: %+v", nth, d)
		}
		if d.OK != (d.RetryAfter == 0) {
			t.Errorf("reading %d: %+v", nth, d)
		}
	}
	if onlyOwned := record && !short && n == 1; admitted == 0 && !onlyOwned {
		t.Error("no reading of the clock came before the decision")
	}
}

func takeChecks(t *testing.T, s *Store, checks ...tidegate.Check) tidegate.Decision {
	t.Helper()
	d, err := s.Take(context.Background(), checks, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
