package memory

import (
	"context"
	"math"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Adjust implements tidegate.Store. For a lease, a negative cost releases it.
func (s *Store) Adjust(_ context.Context, at int64, checks []tidegate.Check) error {
	now := s.clock.now()
	for i := range checks {
		c := &checks[i]
		b, err := s.bind(c.Limit)
		if err != nil {
			return err
		}
		s.adjust(b, s.hash.sum(c.Key, b.table.salt), now, at, c.Cost)
	}
	return nil
}

func (s *Store) adjust(b *bound, k keyHash, now, at, cost int64) {
	if cost == 0 {
		return
	}
	s.own(b, k, now, cost > 0, func(c cell) cell {
		if cost > 0 {
			return s.force(b, c, now, cost)
		}
		if cost == math.MinInt64 {
			cost++
		}
		return s.giveBack(b, c, now, at, -cost)
	})
}

// own calls change with the state of k while its slot is owned. A key that is
// not known is inserted first, if create says so and there is room.
func (s *Store) own(b *bound, k keyHash, now int64, create bool, change func(cell) cell) {
	for turn := 0; ; turn++ {
		sl := b.table.find(k)
		if sl == nil {
			if !create {
				if b.table.holds(k) {
					continue
				}
				return
			}
			if _, ok := s.insert(b, k, cell{}, now); !ok {
				b.table.refused.Add(1)
				return
			}
			continue
		}
		old, word, ok := sl.lock(k)
		if !ok {
			pause(turn)
			continue
		}
		sl.release(word, k, old, change(old))
		return
	}
}

func (s *Store) force(b *bound, c cell, now, n int64) cell {
	switch b.kind {
	case buckets:
		law := b.law()
		return s.bucketCell(law.Force(s.bucket(c), now, n))
	case counters:
		wall := s.clock.wall(now)
		return counterCell(b.counter.Force(counter(c), b.span(wall), wall, n))
	case slidings:
		return slidingCell(b.sliding.Force(sliding(c), now, n))
	case leases:
		return c // a slot cannot be taken unasked
	}
	for {
		done := false
		if b.kind == logs {
			done = b.log.Force(b.record(c), now, n)
		} else {
			done = b.parts.Force(b.record(c), now, n)
		}
		if done {
			return c
		}
		var ok bool
		if c, ok = b.larger(c, now, algo.Ask{Cost: n, Copies: 1}); !ok {
			b.table.refused.Add(1)
			return c
		}
	}
}

func (s *Store) giveBack(b *bound, c cell, now, at, n int64) cell {
	switch b.kind {
	case buckets:
		law := b.law()
		return s.bucketCell(law.Return(s.bucket(c), now, at, n))
	case counters:
		wall := s.clock.wall(now)
		charged := spanAt(b.limit, at+wall-now)
		return counterCell(b.counter.Return(counter(c), b.span(wall), charged, wall, n))
	case slidings:
		return slidingCell(b.sliding.Return(sliding(c), now, at, n))
	case logs:
		b.log.Return(b.record(c), now, at, n)
	case parts:
		b.parts.Return(b.record(c), now, at, n)
	case leases:
		b.lease.Release(b.record(c), now, at, n)
	}
	return c
}

// Renew implements tidegate.Renewer.
func (s *Store) Renew(_ context.Context, at int64, checks []tidegate.Check) error {
	now := s.clock.now()
	var lost error
	for i := range checks {
		c := &checks[i]
		b, err := s.bind(c.Limit)
		if err != nil {
			return err
		}
		if b.kind != leases {
			continue
		}
		renewed := false
		s.own(b, s.hash.sum(c.Key, b.table.salt), now, false, func(c cell) cell {
			renewed = b.lease.Renew(b.record(c), now, at)
			return c
		})
		if !renewed {
			lost = tidegate.ErrLeaseLost
		}
	}
	return lost
}

// Reset implements tidegate.Resetter.
func (s *Store) Reset(_ context.Context, checks []tidegate.Check) error {
	now := s.clock.now()
	for i := range checks {
		c := &checks[i]
		b, err := s.bind(c.Limit)
		if err != nil {
			return err
		}
		s.own(b, s.hash.sum(c.Key, b.table.salt), now, false, func(c cell) cell {
			if b.kind.inRecord() {
				b.table.arena.release(handle(c.slow))
			}
			return cell{}
		})
	}
	return nil
}
