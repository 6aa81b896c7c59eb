package memory

import (
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// With no memory for another stamp, a vector that a log refuses is told a time to come back, at which there is room: by
// records of every number of entries, that may be squeezed or not, of whichever check, whether what is refused counts.
func TestRefusalWithoutMemoryForItsStamp(t *testing.T) {
	for _, counts := range []bool{false, true} {
		for entries := range 8 {
			for cost := int64(1); cost <= 3; cost++ {
				for at := range 3 {
					t.Run(fmt.Sprintf("%t/%d/%d/%d", counts, entries+1, cost, at), func(t *testing.T) {
						refusedWithoutMemory(t, counts, entries+1, cost, at)
					})
				}
			}
		}
	}
}

// refusedWithoutMemory uses up a log by so many entries of 3 events, and asks for cost by a vector with the log at
// the index at.
func refusedWithoutMemory(t *testing.T, counts bool, entries int, cost int64, at int) {
	s, clock := openAt(1 << 20)
	log := tidegate.MustLimit(tidegate.Spec{Name: "log", Algorithm: tidegate.SlidingLog, Events: 3 * int64(entries), Period: time.Minute, CountRejected: counts})
	wide := limitOf(tidegate.TokenBucket, 1000, tidegate.RefuseNew)
	checks := make([]tidegate.Check, 3)
	for i := range checks {
		checks[i] = tidegate.Check{Key: fmt.Sprint("beside", i), Limit: wide, Cost: 1}
	}
	checks[at] = tidegate.Check{Key: "key", Limit: log, Cost: 3}
	for range entries {
		clock.pass(time.Microsecond)
		if d := takeChecks(t, s, checks...); !d.OK {
			t.Fatalf("%+v", d)
		}
	}
	lim, err := s.compile(log)
	if err != nil {
		t.Fatal(err)
	}
	for s.budget.take(lim.table) != 0 {
	}
	checks[at].Cost = cost
	for range 10 {
		clock.pass(time.Microsecond)
		d := takeChecks(t, s, checks...)
		if d.OK || d.Never || d.RetryAfter <= 0 || d.RetryAfter > time.Minute*4/3 || d.Err == nil && d.Limit != log {
			t.Fatalf("%+v, want a refusal and when there is room", d)
		}
	}
	clock.pass(time.Microsecond)
	d := takeChecks(t, s, checks...)
	clock.pass(d.RetryAfter)
	if d := takeChecks(t, s, checks...); !d.OK {
		t.Fatalf("%+v at the time told, want room", d)
	}
}
