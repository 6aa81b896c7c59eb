package split

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// seed charges a bucket with what others may have used before this instance joined them, or before
// requests of this cost stopped going by turns, in which the others had the burst: all of it, less
// what has refilled since then. Otherwise every change of the number of instances would refill
// everybody.
func (s *Store) seed(c *tidegate.Check, unit, room int64, last *change, now moment) {
	since := int64(0)
	full := c.Limit.Capacity() * emission(c.Limit)
	if s.history.fresh.Load() {
		joined := s.history.joined.Load()
		if full <= quickRefill {
			since = joined
		}
		if now.steady-joined > quickRefill {
			s.history.fresh.Store(false)
		}
	}
	if unit*last.before > room {
		since = max(since, last.at)
	}
	used := full - (now.steady - since)
	if since == 0 || used <= 0 {
		return
	}
	s.seeding.Lock()
	defer s.seeding.Unlock()
	one := []tidegate.Check{{Key: c.Key, Limit: c.Limit}}
	d, err := s.local.Take(context.Background(), one, 1)
	if err != nil {
		return // the request itself gets the same error
	}
	if more := (used - algo.Ticks(d.ResetAfter)) / emission(c.Limit); more > 0 {
		one[0].Cost = more
		_ = s.local.Adjust(context.Background(), tidegate.Receipt{}, one) // it has just answered
	}
}

// quickRefill bounds the refill time of buckets whose keys start used up at an instance that has
// joined. Slower buckets would refuse their keys for long after every restart.
const quickRefill = int64(time.Minute/time.Microsecond) * algo.Micro
