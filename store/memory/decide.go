package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// take asks the law of b about the state c that is kept in a slot.
func (s *Store) take(b *bound, c cell, now int64, a algo.Ask) (cell, algo.Verdict) {
	switch b.kind {
	case buckets:
		if b.short(c, a) {
			origin := s.origin.Load()
			owed, ok, sure := b.bucket.Spend(origin+int64(c.fast), now, a.Cost)
			if ok && sure && reaches(origin, now) {
				c.fast = uint64(now + owed - origin)
				return c, algo.Verdict{Granted: 1, Remaining: b.bucket.Left(owed), Reset: owed}
			}
		}
		law := b.law()
		next, v := law.Take(s.bucket(c), now, a)
		return s.bucketCell(next), v
	case counters:
		wall := s.clock.wall(now)
		next, v := b.counter.Take(counter(c), b.span(wall), wall, a)
		return counterCell(next), v
	default:
		next, v := b.sliding.Take(sliding(c), now, a)
		return slidingCell(next), v
	}
}

// short reports whether the short way of a token bucket may answer a.
func (b *bound) short(c cell, a algo.Ask) bool {
	return b.plain && c.slow == uint64(b.bucket.Em) && a.Copies == 1 && a.MaxWait == 0 && a.Cost > 0
}

// fit is how many copies take would grant.
func (s *Store) fit(b *bound, c cell, now int64, a algo.Ask) int64 {
	switch b.kind {
	case buckets:
		if b.short(c, a) {
			if _, ok, sure := b.bucket.Spend(s.origin.Load()+int64(c.fast), now, a.Cost); ok && sure {
				return 1
			}
		}
		law := b.law()
		return law.Fit(s.bucket(c), now, a)
	case counters:
		wall := s.clock.wall(now)
		return b.counter.Fit(counter(c), b.span(wall), wall, a)
	case slidings:
		return b.sliding.Fit(sliding(c), now, a)
	}
	r := b.record(c)
	if b.kind == runs {
		return b.runs.Fit(&r, now, a)
	}
	return b.lease.Fit(&r, now, a)
}

// The records of a key that has none yet: empty, and with no room to write.
var (
	noRuns   [algo.RunsHeader]uint64
	noLeases [algo.LeasesHeader]uint64
)

// record is the key's record; the slot is owned.
func (b *bound) record(c cell) (r algo.Record) {
	b.lend(&r, c)
	return r
}

// lend is record into r, which spares whoever decides a copy.
func (b *bound) lend(r *algo.Record, c cell) {
	switch {
	case c.slow != 0:
		b.budget.lend(r, handle(c.slow))
	case b.kind == leases:
		r.LieIn(noLeases[:])
	default:
		r.LieIn(noRuns[:])
	}
}

// takeRecord asks the law of b about a state kept in a record, which is made
// larger where it must be. It reports false when there is no memory for that.
func (s *Store) takeRecord(b *bound, g *segment, c cell, now, at int64, a algo.Ask, squeeze bool) (cell, algo.Verdict, bool) {
	for {
		var r algo.Record
		var v algo.Verdict
		var ok bool
		b.lend(&r, c)
		if b.kind == runs {
			v, ok = b.runs.Take(&r, now, a)
		} else {
			v, ok = b.lease.Take(&r, now, at, a)
		}
		if ok {
			return c, v, true
		}
		if c, ok = b.larger(g, c, now, a, squeeze); !ok {
			return c, algo.Verdict{}, false
		}
	}
}

// larger moves a record of g into one that takes one more ask. Where there is no
// memory for that, and there will be none, what is counted at stamps near each
// other is joined at the latest: the limit then holds back a little longer, and is
// never over.
func (b *bound) larger(g *segment, c cell, now int64, a algo.Ask, squeeze bool) (cell, bool) {
	old := b.record(c)
	words := old.Words() + 1
	if b.kind == leases {
		fit := b.lease.Fit(&old, now, a)
		words = max(words, algo.LeasesHeader+2*(old.Held()+int(fit*a.Cost)))
	} else if words > algo.PageWords {
		words += old.Words() / 2
	}
	h := g.records.alloc(words)
	switch {
	case h != 0:
		r := b.budget.record(h)
		b.move(&old, &r)
		g.records.release(handle(c.slow))
		c.slow = uint64(h)
		return c, true
	case !squeeze || b.kind == leases:
		return c, false
	}
	return c, b.runs.Squeeze(&old, now)
}

func (b *bound) move(old, dst *algo.Record) {
	if b.kind == leases {
		old.Copy(dst)
	} else {
		old.CopyTo(dst)
	}
}

// idle reports whether a key says nothing that an unknown one would not.
func (s *Store) idle(b *bound, c cell, now int64) bool {
	switch b.kind {
	case buckets:
		return s.bucket(c).Idle(now)
	case counters:
		return counter(c).Idle(b.span(s.clock.wall(now)))
	case slidings:
		return b.sliding.Idle(sliding(c), now)
	}
	r := b.record(c)
	if b.kind == runs {
		return b.runs.Idle(&r, now)
	}
	return b.lease.Idle(&r, now)
}

// use ranks keys by how much forgetting them would give away: from 0 to
// exhausted, which is a key that would be refused now.
func (s *Store) use(b *bound, c cell, now int64) int {
	peek := algo.Ask{Copies: 1}
	if b.limit.Algorithm == tidegate.LeakyBucket {
		peek.MaxWait = algo.Never // it is used up when its line is full
	}
	var v algo.Verdict
	switch {
	case b.kind == leases:
		return exhausted
	case b.kind.inRecord():
		_, v, _ = s.takeRecord(b, nil, c, now, 0, peek, false)
	default:
		_, v = s.take(b, c, now, peek)
	}
	if v.Granted == 0 {
		return exhausted
	}
	whole := b.limit.Capacity()
	return int((whole - v.Remaining) * (exhausted - 1) / whole)
}
