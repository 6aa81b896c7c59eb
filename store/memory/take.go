package memory

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Take implements tidegate.Store. A context that has ended makes no
// difference: the answer costs less than the look.
func (s *Store) Take(_ context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if n < 1 {
		return tidegate.Decision{}, fmt.Errorf("memory: Take(n=%d): want at least 1", n)
	}
	if len(checks) == 1 {
		b, err := s.bind(checks[0].Limit)
		if err != nil {
			return tidegate.Decision{}, err
		}
		if !b.kind.inRecord() && !checks[0].Advisory {
			return s.takeOne(b, &checks[0], n)
		}
	}
	return s.takeAll(checks, n)
}

func ask(c *tidegate.Check, n int) algo.Ask {
	a := algo.Ask{Cost: c.Cost, Copies: int64(n)}
	if c.MaxWait > 0 {
		a.MaxWait = algo.Ticks(c.MaxWait)
	}
	return a
}

func checkCost(c *tidegate.Check) error {
	if c.Cost < 0 {
		return fmt.Errorf("memory: Take(%s): cost is %d; use Adjust to return", c.Limit, c.Cost)
	}
	return nil
}

// takeOne decides a single check whose state fits a slot: a refusal writes
// nothing, an admission is one compare-and-swap.
func (s *Store) takeOne(b *bound, c *tidegate.Check, n int) (tidegate.Decision, error) {
	if c.Cost < 0 {
		return tidegate.Decision{}, checkCost(c)
	}
	now := s.clock.now()
	k := s.hash.sum(c.Key, b.table.salt)
	a := ask(c, n)
	for turn := 0; ; turn++ {
		sl := b.table.find(k)
		if sl == nil {
			next, v := s.take(b, cell{}, now, a)
			if v.Never {
				return decision(b.limit, &v, now), nil
			}
			if v.Granted == 0 || c.Cost == 0 {
				if b.table.holds(k) { // it was just being moved
					continue
				}
				return decision(b.limit, &v, now), nil
			}
			switch inserted, ok := s.insert(b, k, next, now); {
			case inserted:
				return decision(b.limit, &v, now), nil
			case !ok:
				return s.full(b, now), nil
			}
			continue
		}
		old, word, ok := sl.read(k)
		if !ok {
			pause(turn)
			continue
		}
		next, v := s.take(b, old, now, a)
		if next == old { // refused or peeked: nothing to write
			if sl.word.Load() == word {
				return decision(b.limit, &v, now), nil
			}
			continue
		}
		if sl.swap(word, k, old, next) {
			return decision(b.limit, &v, now), nil
		}
	}
}

// fullRetry is when a key that found no room may try again: there is no telling
// when there will be.
const fullRetry = time.Second

// full is the answer to a new key that finds no room.
func (s *Store) full(b *bound, now int64) tidegate.Decision {
	b.table.refused.Add(1)
	d := decision(b.limit, &algo.Verdict{}, now)
	d.Err = tidegate.ErrFull
	d.RetryAfter = min(b.limit.Period, fullRetry)
	if b.limit.Algorithm == tidegate.Quota {
		d.RetryAfter = fullRetry
	}
	return d
}
