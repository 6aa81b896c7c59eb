package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// take asks the law of lim about the state c that is kept in a slot.
func (s *Store) take(lim *compiledLimit, c cell, now int64, a algo.Ask) (cell, algo.Verdict) {
	switch lim.kind {
	case buckets:
		law := lim.law()
		next, v := law.Take(s.bucket(c), now, a)
		return s.bucketCell(next), v
	case counters:
		wall := s.clock.wall(now)
		next, v := lim.counter.Take(counter(c), lim.span(wall), wall, a)
		return counterCell(next), v
	default:
		next, v := lim.sliding.Take(sliding(c), now, a)
		return slidingCell(next), v
	}
}

// fit returns how many copies take would grant.
func (s *Store) fit(lim *compiledLimit, c cell, now int64, a algo.Ask) int64 {
	switch lim.kind {
	case buckets:
		law := lim.law()
		return law.Fit(s.bucket(c), now, a)
	case counters:
		wall := s.clock.wall(now)
		return lim.counter.Fit(counter(c), lim.span(wall), wall, a)
	case slidings:
		return lim.sliding.Fit(sliding(c), now, a)
	}
	var room entryRoom
	r := lim.record(c, &room)
	if lim.kind == runs {
		return lim.runs.Fit(&r, now, a)
	}
	return lim.lease.Fit(&r, now, a)
}

// noLeases is the record of a key without leases: empty, and with no room to write.
var noLeases [algo.LeasesHeader]uint64

// entryRoom is where an entry that is kept in a slot is a record for a while.
type entryRoom = [algo.EntryWords]uint64

// record returns the key's record. The caller owns the slot, and room is zero.
func (lim *compiledLimit) record(c cell, room *entryRoom) (r algo.Record) {
	switch h := c.handle(); {
	case h != 0:
		lim.budget.loadRecord(&r, h)
	case lim.kind == leases:
		r.SetWords(noLeases[:])
	default:
		r = entryOf(c).Record(room)
	}
	return r
}

// keep returns the state that the slot has to hold after the law has written r, the record of c.
func (lim *compiledLimit) keep(c cell, r *algo.Record) cell {
	if lim.kind != runs || c.handle() != 0 {
		return c
	}
	e, _ := r.Entry() // there was no room for more
	return entryCell(e)
}

// takeRecord asks the law of lim about a state kept in a record, which grows if
// needed. It reports false when there is no memory for that.
func (s *Store) takeRecord(lim *compiledLimit, g *segment, c cell, now, at int64, a algo.Ask, squeeze bool) (cell, algo.Verdict, bool) {
	for {
		var room entryRoom
		var v algo.Verdict
		var ok bool
		r := lim.record(c, &room)
		if lim.kind == runs {
			v, ok = lim.runs.Take(&r, now, a)
		} else {
			v, ok = lim.lease.Take(&r, now, at, a)
		}
		if ok {
			return lim.keep(c, &r), v, true
		}
		if c, ok = lim.growRecord(g, c, now, a, squeeze); !ok {
			return c, algo.Verdict{}, false
		}
	}
}

// growRecord moves a record of g into one with room for one more ask, or lengthens it. If there is no
// memory for that, and will be none, squeeze merges counts of neighbouring stamps at
// the later one: the limit then holds back a little longer, and is never exceeded.
func (lim *compiledLimit) growRecord(g *segment, c cell, now int64, a algo.Ask, squeeze bool) (cell, bool) {
	var room entryRoom
	old := lim.record(c, &room)
	h := c.handle()
	if lim.kind == runs && h.class() == paged && old.InOrder() && g.records.lengthen(h, old.Words()/2) {
		return c, true
	}
	least, words := lim.grownWords(&old, now, a)
	grown := g.records.alloc(words)
	if grown == 0 && least < words {
		grown = g.records.alloc(least)
	}
	switch {
	case grown != 0:
		r := lim.budget.record(grown)
		lim.move(&old, &r)
		g.records.release(h)
		return cell{slow: uint64(grown)}, true
	case !squeeze || lim.kind == leases:
		return c, false
	}
	return c, lim.runs.Squeeze(&old, now)
}

// grownWords returns how many words the record that replaces old needs at least, and how many it
// should have: one that holds events grows by half or more, so that it is rarely moved.
func (lim *compiledLimit) grownWords(old *algo.Record, now int64, a algo.Ask) (least, words int) {
	least = old.Words() + 1
	switch {
	case lim.kind == leases:
		fit := lim.lease.Fit(old, now, a)
		least = max(least, algo.LeasesHeader+2*(old.Held()+int(fit*a.Cost)))
		return least, least
	case least > algo.PageWords:
		return least, least + old.Words()/2
	}
	return least, min(2*old.Words(), algo.PageWords)
}

func (lim *compiledLimit) move(old, dst *algo.Record) {
	if lim.kind == leases {
		old.Copy(dst)
	} else {
		old.CopyTo(dst)
	}
}

// idle reports whether the state of a key is the same as that of an unknown key.
func (s *Store) idle(lim *compiledLimit, c cell, now int64) bool {
	switch lim.kind {
	case buckets:
		return s.bucket(c).Idle(now)
	case counters:
		return counter(c).Idle(lim.span(s.clock.wall(now)))
	case slidings:
		return lim.sliding.Idle(sliding(c), now)
	}
	var room entryRoom
	r := lim.record(c, &room)
	if lim.kind == runs {
		return lim.runs.Idle(&r, now)
	}
	return lim.lease.Idle(&r, now)
}

// use ranks keys by how much forgetting them would give away: from 0 to exhausted, which means
// that the key would be refused now.
func (s *Store) use(lim *compiledLimit, c cell, now int64) int {
	peek := algo.Ask{Copies: 1}
	if lim.limit.Algorithm == tidegate.LeakyBucket {
		peek.MaxWait = algo.Never // it is used up when its queue is full
	}
	var v algo.Verdict
	switch {
	case lim.kind == leases:
		return exhausted
	case lim.kind.inRecord():
		_, v, _ = s.takeRecord(lim, nil, c, now, 0, peek, false)
	default:
		_, v = s.take(lim, c, now, peek)
	}
	if v.Granted == 0 {
		return exhausted
	}
	whole := lim.limit.Capacity()
	return int((whole - v.Remaining) * (exhausted - 1) / whole)
}

// settle returns the state to keep for a key if the clock was set back since it was written:
// without that, the key would not become idle before the old time returns. The state still drains
// at the pace of the limit under which it was written.
func (s *Store) settle(lim *compiledLimit, c cell, now int64) cell {
	peek := algo.Ask{Copies: 1}
	switch lim.kind {
	case buckets:
		b := s.bucket(c)
		law := lim.lawOf(b)
		b, _ = law.Take(b, now, peek)
		return s.bucketCell(b)
	case counters, slidings:
		c, _ = s.take(lim, c, now, peek)
		return c
	}
	var room entryRoom
	switch r := lim.record(c, &room); {
	case lim.kind == leases:
		lim.lease.Fit(&r, now, peek) // in place
	case lim.runs.Behind(&r, now):
		lim.runs.Fit(&r, now, peek)
		return lim.keep(c, &r)
	}
	return c
}
