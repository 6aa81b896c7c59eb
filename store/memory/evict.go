package memory

import (
	"slices"
	"sync/atomic"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// exhausted is the use of a key that holds somebody back.
const exhausted = 1 << 20

// evict drops the keys of k's segment with the least to remember, an eighth of
// them, to make room for a slot or, with records, for a record. It reports false
// when none may be dropped: where limits spare keys that hold somebody back, and
// there are no others.
func (s *Store) evict(b *bound, k keyHash, now int64, records bool) bool {
	g := b.table.segment(k)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.full(b, now) {
		return false
	}
	held := scratch.Get().(*[]entry)
	defer scratch.Put(held)
	had := g.used
	all := s.takeOut(b, g, (*held)[:0], now)
	keep := most(int(g.slots.Load())) * 7 / 8
	if records {
		keep = min(keep, had*7/8)
	}
	left := s.shed(b, all, keep, now)
	for _, e := range left {
		g.putBack(e)
	}
	if records && b.table.arena.spare() || !records && len(left) < had {
		return true
	}
	g.fullUntil = now + fullPause
	return false
}

// fullPause is how long a segment in which nothing may be dropped is not searched
// again: a search takes as long as hundreds of decisions.
const fullPause = 10_000 * algo.Micro

// full reports whether a search for something to drop would be in vain. The
// caller holds mu.
func (g *segment) full(b *bound, now int64) bool {
	wait := g.fullUntil - now
	return wait > 0 && wait <= fullPause && b.spares()
}

// spares reports whether keys that hold somebody back are kept at all costs: a
// lease forgotten would be a slot given twice.
func (b *bound) spares() bool { return b.limit.OnFull == tidegate.RefuseNew || b.kind == leases }

// shed drops keys until keep are left, the least used first.
func (s *Store) shed(b *bound, all []entry, keep int, now int64) []entry {
	if len(all) <= keep {
		return all
	}
	for i := range all {
		all[i].use = s.use(b, all[i].cell, now)
	}
	slices.SortFunc(all, func(x, y entry) int { return y.use - x.use })
	n := len(all)
	for ; n > keep; n-- {
		e := all[n-1]
		if e.use < exhausted {
			b.table.evicted.Add(1)
		} else if b.spares() {
			break
		} else {
			b.table.forgotten.Add(1)
		}
		s.dropped(b.table, e)
	}
	return all[:n]
}

// reclaim makes the largest table give a chunk, when that is another and much
// larger than t: a flood of one rule's keys must not crowd out the others.
func (s *Store) reclaim(t *table, now int64) bool {
	largest := t
	for _, other := range *s.tables.Load() {
		if other.bytes.Load() > largest.bytes.Load() {
			largest = other
		}
	}
	if largest.bytes.Load() < 2*t.bytes.Load()+chunkBytes {
		return false
	}
	for range 4 {
		if s.shrink(largest, s.sweeper.next(), now, true) {
			return true
		}
	}
	return false
}

// shrink drops what is idle in a segment of t and gives back the chunks it then
// does not need; forced, it sheds keys to give back at least one.
func (s *Store) shrink(t *table, nth uint64, now int64, forced bool) bool {
	b := t.bound.Load()
	if b == nil {
		return false
	}
	d := t.dir.Load()
	g := d.segs[nth%uint64(len(d.segs))].Load()
	if !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	had := int(g.slots.Load()) / chunkSlots
	if had == 1 {
		return false
	}
	if !forced && !s.worthSweeping(b, g, now) {
		return false
	}
	held := scratch.Get().(*[]entry)
	defer scratch.Put(held)
	all := s.takeOut(b, g, (*held)[:0], now)
	if forced {
		all = s.shed(b, all, most((had-1)*chunkSlots)*7/8, now)
	}
	chunks := chunksFor(len(all))
	if chunks < had && (forced || chunks <= had/2) {
		s.narrow(t, g, chunks)
	}
	for _, e := range all {
		g.putBack(e)
	}
	return chunks < had
}

// worthSweeping looks at a few slots of g and reports whether enough of them are
// idle for a rebuild to pay. What is in an arena cannot be looked at like that.
func (s *Store) worthSweeping(b *bound, g *segment, now int64) bool {
	if b.kind.inRecord() {
		return true
	}
	const samples = 32
	n := int(g.slots.Load())
	live := 0
	for i := range samples {
		at := i * n / samples
		sl := &g.chunks[at/chunkSlots].Load()[at%chunkSlots]
		word, meta := sl.word.Load(), sl.meta.Load()
		if sl.tag.Load() != 0 && !s.idle(b, cell{meta & slowMask, word & fastMask}, now) {
			live++
		}
	}
	return live < samples*5/8 // a full segment has 26 of 32
}

// sweeper visits the segments of all tables in turn, one for every few that
// were found full, so that tables nobody inserts into shrink as well.
type sweeper struct {
	turn, at atomic.Uint64
}

const sweepEvery = 8

func (w *sweeper) next() uint64 { return w.at.Add(1) }

func (w *sweeper) step(s *Store, now int64) {
	if w.turn.Add(1)%sweepEvery != 0 {
		return
	}
	tables := *s.tables.Load()
	n := w.next()
	t := tables[n%uint64(len(tables))]
	s.shrink(t, n/uint64(len(tables)), now, false)
}
