package split

import (
	"context"
	"strings"
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
	if at, ok := s.resets[counterOf(c)]; ok && at >= since {
		return
	}
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

// counter names a counter of a limit.
type counter struct{ identity, key string }

func counterOf(c *tidegate.Check) counter { return counter{c.Limit.Identity(), c.Key} }

// noteResets notes that counters were reset: what others may have used before that does not count any more.
func (s *Store) noteResets(checks []tidegate.Check) {
	s.seeding.Lock()
	defer s.seeding.Unlock()
	now := s.now().steady
	for i := range checks {
		id := counterOf(&checks[i])
		id.key = strings.Clone(id.key) // it may lie in memory of the request
		if s.resets == nil || len(s.resets) >= maxResets {
			s.resets = make(map[counter]int64)
		}
		s.resets[id] = now
	}
}

// handedResets returns the resets as they are handed over, by the wall clock.
func (s *Store) handedResets(now moment) (all []handedReset) {
	s.seeding.Lock()
	defer s.seeding.Unlock()
	for id, at := range s.resets {
		all = append(all, handedReset{id.identity, []byte(id.key), at + now.wall - now.steady})
	}
	return all
}

// takeOverResets takes over what handedResets of a predecessor has returned.
func (s *Store) takeOverResets(all []handedReset, now moment) {
	s.seeding.Lock()
	defer s.seeding.Unlock()
	s.resets = make(map[counter]int64, min(len(all), maxResets))
	for _, r := range all[:min(len(all), maxResets)] {
		s.resets[counter{r.Identity, string(r.Key)}] = r.At - now.wall + now.steady
	}
}

// maxResets bounds how many resets are remembered.
const maxResets = 1 << 12

// quickRefill bounds the refill time of buckets whose keys start used up at an instance that has
// joined. Slower buckets would refuse their keys for long after every restart.
const quickRefill = int64(time.Minute/time.Microsecond) * algo.Micro
