package storetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// Buckets is a Store on a map that does token buckets and nothing else. In front of a
// database, the map becomes a table, and the lock a transaction.
type Buckets struct {
	Now func() time.Time

	mu     sync.Mutex
	levels map[string]level // by counter and key
}

// level is how much a key has used at a time. Time is in microseconds, and one event is
// worth the period of its limit: all numbers are whole, and nothing is lost in rounding.
type level struct{ used, at int64 }

// Take decides about one check, by one reading of the level.
func (b *Buckets) Take(_ context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if len(checks) != 1 || n != 1 {
		return tidegate.Decision{}, errors.New("buckets: can decide about one check and one copy at a time")
	}
	c, l := checks[0], checks[0].Limit
	if l.Algorithm != tidegate.TokenBucket || c.Cost < 0 || c.Advisory || c.Floor != 0 {
		return tidegate.Decision{}, errors.New("buckets: can decide about plain token buckets only")
	}
	event := l.Period.Microseconds()
	capacity := l.Capacity() * event

	b.mu.Lock()
	defer b.mu.Unlock()
	now, id := b.Now().UnixMicro(), l.Identity()+tidegate.Key(c.Key)
	used := b.levels[id].used
	elapsed := max(0, now-b.levels[id].at)
	used = max(0, used-min(elapsed, used/l.Events+1)*l.Events) // Events drain in a Period

	d := tidegate.Decision{Limit: l, Receipt: tidegate.Receipt{At: now * 1024}}
	cost := max(1, c.Cost) // a peek is answered as a cost of 1 would be
	switch {
	case cost > l.Capacity():
		d.Never = true
	case used+cost*event > capacity:
		d.RetryAfter = drain(used+cost*event-capacity, l)
	default:
		d.OK, d.Granted = true, 1
		used += c.Cost * event
		b.levels[id] = level{used, now}
	}
	d.Remaining, d.ResetAfter = (capacity-used)/event, drain(used, l)
	return d, nil
}

// drain is how long it takes until so much is gone, rounded up.
func drain(used int64, l *tidegate.Limit) time.Duration {
	return time.Duration((used+l.Events-1)/l.Events) * time.Microsecond
}

// Adjust would give back, or charge more than was estimated.
func (b *Buckets) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error {
	return errors.New("buckets: nothing is given back")
}
