package memory

import (
	"context"
	"math"
	"runtime"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Adjust implements tidegate.Store. For a lease, a negative cost releases it.
func (s *Store) Adjust(_ context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	now := s.now()
	for i := range checks {
		c := &checks[i]
		b, err := s.compile(c.Limit)
		if err != nil {
			return err
		}
		s.adjust(b, s.hash.sum(c.Key, b.table.salt), now, r.At, c.Cost)
	}
	runtime.KeepAlive(s)
	return nil
}

func (s *Store) adjust(b *compiledLimit, k keyHash, now, at, cost int64) {
	if cost == 0 {
		return
	}
	s.withSlot(b, k, now, cost > 0, func(b *compiledLimit, g *segment, c cell, last bool) (cell, bool) {
		if cost > 0 {
			return s.force(b, g, c, now, cost, last)
		}
		if cost == math.MinInt64 {
			cost++
		}
		return s.giveBack(b, c, now, at, -cost), true
	})
}

// withSlot calls change with the state of k while its slot is owned. A key that is not known
// is inserted first, if create is set and there is room. If change reports that it lacks
// memory, it is called again after some was reclaimed, or with last set if there is none.
func (s *Store) withSlot(b *compiledLimit, k keyHash, now int64, create bool, change func(b *compiledLimit, g *segment, c cell, last bool) (cell, bool)) {
	last := false
	for attempt := 0; ; attempt++ {
		b = s.current(b)
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
			spin(attempt)
			continue
		}
		next, ok := change(b, b.table.segment(k), old, last)
		sl.release(word, k, old, next)
		switch {
		case ok:
			return
		case last:
			b.table.refused.Add(1)
			return
		}
		last = !s.roomForRecord(b, old, algo.Ask{}, now)
	}
}

func (s *Store) force(b *compiledLimit, g *segment, c cell, now, n int64, squeeze bool) (cell, bool) {
	switch b.kind {
	case buckets:
		law := b.law()
		return s.bucketCell(law.Force(s.bucket(c), now, n)), true
	case counters:
		wall := s.clock.wall(now)
		return counterCell(b.counter.Force(counter(c), b.span(wall), wall, n)), true
	case slidings:
		return slidingCell(b.sliding.Force(sliding(c), now, n)), true
	case leases:
		return c, true // a slot cannot be taken unasked
	}
	for {
		r := b.record(c)
		if b.runs.Force(&r, now, n) {
			return c, true
		}
		var ok bool
		if c, ok = b.growRecord(g, c, now, algo.Ask{Cost: n, Copies: 1}, squeeze); !ok {
			return c, false
		}
	}
}

func (s *Store) giveBack(b *compiledLimit, c cell, now, at, n int64) cell {
	var r algo.Record
	if b.kind.inRecord() {
		r = b.record(c)
	}
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
	case runs:
		b.runs.Return(&r, now, at, n)
	case leases:
		b.lease.Release(&r, now, at, n)
	}
	return c
}

// Renew implements tidegate.Renewer.
func (s *Store) Renew(_ context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	now := s.now()
	var lost error
	for i := range checks {
		c := &checks[i]
		b, err := s.compile(c.Limit)
		if err != nil {
			return err
		}
		if b.kind != leases {
			continue
		}
		renewed := false
		s.withSlot(b, s.hash.sum(c.Key, b.table.salt), now, false, func(b *compiledLimit, _ *segment, c cell, _ bool) (cell, bool) {
			rec := b.record(c)
			renewed = b.lease.Renew(&rec, now, r.At)
			return c, true
		})
		if !renewed {
			lost = tidegate.ErrLeaseLost
		}
	}
	runtime.KeepAlive(s)
	return lost
}

// Reset implements tidegate.Resetter.
func (s *Store) Reset(_ context.Context, checks []tidegate.Check) error {
	now := s.now()
	for i := range checks {
		c := &checks[i]
		b, err := s.compile(c.Limit)
		if err != nil {
			return err
		}
		s.withSlot(b, s.hash.sum(c.Key, b.table.salt), now, false, func(b *compiledLimit, g *segment, c cell, _ bool) (cell, bool) {
			if b.kind.inRecord() {
				g.records.release(handle(c.slow))
			}
			return cell{}, true
		})
	}
	runtime.KeepAlive(s)
	return nil
}
