package queue

import (
	"context"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// slotsOf returns the checks by which a request holds slots.
func slotsOf(checks []tidegate.Check) (slots []tidegate.Check) {
	for _, c := range checks {
		if c.Limit.Algorithm == tidegate.Concurrency && c.Cost > 0 && !(c.Advisory && c.Over) {
			slots = append(slots, c)
		}
	}
	return slots
}

// freeSlots frees the slots of a request that leaves before its turn; nobody else could. Its other
// charges stand, as for any request whose client leaves.
func (s *Store) freeSlots(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) {
	slots := slotsOf(checks)
	for i := range slots {
		slots[i].Cost = -slots[i].Cost
	}
	if len(slots) > 0 {
		_ = s.Adjust(ctx, r, slots) // if it fails, they are free when their lease runs out
	}
}

// renewSlots renews the slots of a request while it waits for its turn, which may take longer than
// their lease, until stop is called.
func (s *Store) renewSlots(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) (stop func()) {
	slots := slotsOf(checks)
	if len(slots) == 0 {
		return func() {}
	}
	every := slots[0].Limit.Period / 3
	for i := range slots {
		every = min(every, slots[i].Limit.Period/3)
		slots[i].Key = strings.Clone(slots[i].Key) // it may lie in memory of the request
	}
	return repeat(s.turns.clock, every, func() {
		_ = s.Renew(context.WithoutCancel(ctx), r, slots) // after an error the next one tries again
	})
}

// repeat calls f again and again, with a pause of every, until stop is called.
func repeat(clock Clock, every time.Duration, f func()) (stop func()) {
	var mu sync.Mutex
	var alarm Alarm
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	alarm = clock.AfterFunc(every, func() {
		f()
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			alarm.Reset(every)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		alarm.Stop()
	}
}
