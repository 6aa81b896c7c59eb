package memory

import (
	"context"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// owned returns what is ready soon if the nth reading of the clock is by the owner of a slot, as the
// second is for a record.
func owned(a tidegate.Algorithm, nth int) <-chan time.Time {
	if nth == 1 || a != tidegate.SubWindows && a != tidegate.SlidingLog {
		return nil
	}
	return time.After(50 * time.Millisecond)
}

// Room that is made while a request is decided admits it without a trace of the refusal, whichever
// reading of the clock it comes at.
func TestRoomMadeMeanwhile(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog} {
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
					case <-owned(a, nth): // whoever reads the clock owns the slot, and others wait for that
					}
				}
				return now
			}})
			l := tidegate.MustLimit(tidegate.Spec{Algorithm: a, Events: 5, Period: 2 * time.Millisecond}) // short waits are looked at again
			check := []tidegate.Check{{Key: "a", Limit: l, Cost: 1}}
			take := func() tidegate.Decision {
				t.Helper()
				d, err := s.Take(context.Background(), check, 1)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			last := take()
			for last.Remaining > 0 {
				last = take()
			}
			mu.Lock()
			reads, meanwhile = 0, func() {
				back := []tidegate.Check{{Key: "a", Limit: l, Cost: -1}}
				if err := s.Adjust(context.Background(), last.Receipt, back); err != nil {
					t.Error(err)
				}
			}
			mu.Unlock()
			d := take()
			others.Wait()
			if d.OK {
				admitted++
			}
			if d.OK != (d.RetryAfter == 0) {
				t.Errorf("%s, reading %d: %+v", a, nth, d)
			}
		}
		if admitted == 0 {
			t.Errorf("%s: no reading of the clock came before the decision", a)
		}
	}
}
