package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// take asks the law of b about the state c that is kept in a slot.
func (s *Store) take(b *compiledLimit, c cell, now int64, a algo.Ask) (cell, algo.Verdict) {
	switch b.kind {
	case buckets:
		if b.fastPath(c, a) {
			origin := s.origin.Load()
			level, ok, sure := b.bucket.Spend(origin+int64(c.fast), now, a.Cost)
			if ok && sure && inReach(origin, now) {
				c.fast = uint64(now + level - origin)
				return c, algo.Verdict{Granted: 1, Remaining: b.bucket.Left(level), Reset: level}
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

// fastPath reports whether Spend, the fast path of a token bucket, may answer a.
func (b *compiledLimit) fastPath(c cell, a algo.Ask) bool {
	return b.isTokenBucket && c.slow == uint64(b.bucket.Em) && a.Copies == 1 && a.MaxWait == 0 && a.Cost > 0
}

// fit is how many copies take would grant.
func (s *Store) fit(b *compiledLimit, c cell, now int64, a algo.Ask) int64 {
	switch b.kind {
	case buckets:
		if b.fastPath(c, a) {
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

// record returns the key's record. The caller owns the slot.
func (b *compiledLimit) record(c cell) (r algo.Record) {
	b.loadRecord(&r, c)
	return r
}

// loadRecord is record into r, which saves a copy.
func (b *compiledLimit) loadRecord(r *algo.Record, c cell) {
	switch {
	case c.slow != 0:
		b.budget.loadRecord(r, handle(c.slow))
	case b.kind == leases:
		r.SetWords(noLeases[:])
	default:
		r.SetWords(noRuns[:])
	}
}

// takeRecord asks the law of b about a state kept in a record, which grows if
// needed. It reports false when there is no memory for that.
func (s *Store) takeRecord(b *compiledLimit, g *segment, c cell, now, at int64, a algo.Ask, squeeze bool) (cell, algo.Verdict, bool) {
	for {
		var r algo.Record
		var v algo.Verdict
		var ok bool
		b.loadRecord(&r, c)
		if b.kind == runs {
			v, ok = b.runs.Take(&r, now, a)
		} else {
			v, ok = b.lease.Take(&r, now, at, a)
		}
		if ok {
			return c, v, true
		}
		if c, ok = b.growRecord(g, c, now, a, squeeze); !ok {
			return c, algo.Verdict{}, false
		}
	}
}

// growRecord moves a record of g into one with room for one more ask. If there is no
// memory for that, and will be none, squeeze merges counts of neighbouring stamps at
// the later one: the limit then holds back a little longer, and is never exceeded.
func (b *compiledLimit) growRecord(g *segment, c cell, now int64, a algo.Ask, squeeze bool) (cell, bool) {
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

func (b *compiledLimit) move(old, dst *algo.Record) {
	if b.kind == leases {
		old.Copy(dst)
	} else {
		old.CopyTo(dst)
	}
}

// idle reports whether the state of a key is the same as that of an unknown key.
func (s *Store) idle(b *compiledLimit, c cell, now int64) bool {
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
func (s *Store) use(b *compiledLimit, c cell, now int64) int {
	peek := algo.Ask{Copies: 1}
	if b.limit.Algorithm == tidegate.LeakyBucket {
		peek.MaxWait = algo.Never // it is used up when its queue is full
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
