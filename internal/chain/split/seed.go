package split

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// seed charges a bucket that this instance knows nothing of with what others may have used:
// all of it when this instance joined them, or when turns ended, in which the others had the
// burst. Otherwise every change of their number would refill everybody.
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
		return // it will say so again
	}
	if more := (used - algo.Ticks(d.ResetAfter)) / emission(c.Limit); more > 0 {
		one[0].Cost = more
		_ = s.local.Adjust(context.Background(), tidegate.Receipt{}, one) // it has just answered
	}
}

// quickRefill is how long a bucket may take to refill whose keys start used up at an instance
// that has joined. The keys of slower ones would be refused for long after every restart.
const quickRefill = int64(time.Minute/time.Microsecond) * algo.Micro
