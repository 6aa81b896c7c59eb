package memory

import (
	"context"
	"math"
	"runtime"
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Adjust implements tidegate.Store. For a lease, a negative cost releases it.
func (s *Store) Adjust(_ context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if s.foreign(r, checks) {
		return tidegate.ErrElsewhere
	}
	now := s.now()
	for i := range checks {
		c := &checks[i]
		lim, err := s.compile(c.Limit)
		if err != nil {
			return err
		}
		s.adjust(lim, s.hash.sum(c.Key, lim.salt), now, r.At, c.Cost)
	}
	runtime.KeepAlive(s)
	return nil
}

// foreign reports whether r names slots of another process. Layers that use this store in place of
// another one write receipts of their own, and check that themselves.
func (s *Store) foreign(r tidegate.Receipt, checks []tidegate.Check) bool {
	if r.Instance == 0 || r.Instance == s.instance || r.Origin != tidegate.OriginStore {
		return false
	}
	return slices.ContainsFunc(checks, func(c tidegate.Check) bool { return c.Limit != nil && c.Limit.Algorithm == tidegate.Concurrency })
}

func (s *Store) adjust(lim *compiledLimit, k keyHash, now, at, cost int64) {
	if cost == 0 {
		return
	}
	s.withSlot(lim, k, now, cost > 0, func(lim *compiledLimit, g *segment, c cell, last bool) (cell, bool) {
		if cost > 0 {
			return s.force(lim, g, c, now, cost, last)
		}
		if cost == math.MinInt64 {
			cost++
		}
		return s.giveBack(lim, c, now, at, -cost), true
	})
}

// withSlot calls change with the state of k while it owns the slot. If create is set, an unknown key
// is inserted first, if there is room. If change reports that it lacks memory, it is called again
// after some was reclaimed; with last set, if nothing can be.
func (s *Store) withSlot(lim *compiledLimit, k keyHash, now int64, create bool, change func(lim *compiledLimit, g *segment, c cell, last bool) (cell, bool)) {
	last := false
	for attempt := 0; ; attempt++ {
		lim = s.current(lim)
		sl := lim.table.find(k)
		if sl == nil {
			if !create {
				if lim.table.holds(k) {
					continue
				}
				return
			}
			if _, ok := s.insert(lim, k, cell{}, now); !ok {
				lim.table.refused.Add(1)
				return
			}
			continue
		}
		old, word, ok := sl.lock(k)
		if !ok {
			spin(attempt)
			continue
		}
		next, ok := change(lim, lim.table.segment(k), old, last)
		sl.release(word, k, old, next)
		switch {
		case ok:
			return
		case last:
			lim.table.refused.Add(1)
			return
		}
		last = !s.roomForRecord(lim, old, algo.Ask{}, now)
	}
}

func (s *Store) force(lim *compiledLimit, g *segment, c cell, now, n int64, squeeze bool) (cell, bool) {
	switch lim.kind {
	case buckets:
		law := lim.law()
		return s.bucketCell(law.Force(s.bucket(c), now, n)), true
	case counters:
		wall := s.clock.wall(now)
		return counterCell(lim.counter.Force(counter(c), lim.span(wall), wall, n)), true
	case slidings:
		return slidingCell(lim.sliding.Force(sliding(c), now, n)), true
	case leases:
		return c, true // a slot cannot be taken unasked
	}
	return lim.forceRecord(&lim.runs, g, c, now, n, squeeze)
}

// forceRecord charges n events to a record, by law, whether there is room or not.
func (lim *compiledLimit) forceRecord(law *algo.RunsLaw, g *segment, c cell, now, n int64, squeeze bool) (cell, bool) {
	for {
		var room entryRoom
		r := lim.record(c, &room)
		if law.Force(&r, now, n) {
			return lim.keep(c, &r), true
		}
		var ok bool
		if c, ok = lim.growRecord(g, c, now, algo.Ask{Cost: n, Copies: 1}, squeeze); !ok {
			return c, false
		}
	}
}

func (s *Store) giveBack(lim *compiledLimit, c cell, now, at, n int64) cell {
	var room entryRoom
	var r algo.Record
	if lim.kind.inRecord() {
		r = lim.record(c, &room)
	}
	switch lim.kind {
	case buckets:
		law := lim.law()
		return s.bucketCell(law.Return(s.bucket(c), now, at, n))
	case counters:
		wall := s.clock.wall(now)
		charged := lim.span(wall)
		if at >= 0 {
			charged = spanAt(lim.limit, at+wall-now)
		}
		return counterCell(lim.counter.Return(counter(c), lim.span(wall), charged, wall, n))
	case slidings:
		return slidingCell(lim.sliding.Return(sliding(c), now, at, n))
	case runs:
		lim.runs.Return(&r, now, at, n)
	case leases:
		lim.lease.Release(&r, now, at, n)
	}
	return lim.keep(c, &r)
}

// Renew implements tidegate.Renewer.
func (s *Store) Renew(_ context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if s.foreign(r, checks) {
		return tidegate.ErrElsewhere
	}
	now := s.now()
	var lost error
	for i := range checks {
		c := &checks[i]
		lim, err := s.compile(c.Limit)
		if err != nil {
			return err
		}
		if lim.kind != leases {
			continue
		}
		renewed := false
		s.withSlot(lim, s.hash.sum(c.Key, lim.salt), now, false, func(lim *compiledLimit, _ *segment, c cell, _ bool) (cell, bool) {
			var room entryRoom
			rec := lim.record(c, &room)
			renewed = lim.lease.Renew(&rec, now, r.At)
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
		lim, err := s.compile(c.Limit)
		if err != nil {
			return err
		}
		s.withSlot(lim, s.hash.sum(c.Key, lim.salt), now, false, func(lim *compiledLimit, g *segment, c cell, _ bool) (cell, bool) {
			if lim.kind.inRecord() {
				g.records.release(c.handle())
			}
			return cell{}, true
		})
	}
	runtime.KeepAlive(s)
	return nil
}
