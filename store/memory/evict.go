package memory

import (
	"sync/atomic"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// exhausted is the use of a key that holds somebody back.
const exhausted = 1 << 20

// evictRecords drops the keys of k's segment with the least to remember, an
// eighth of them, to make room for a record. It reports false when that was in
// vain: where limits spare keys that hold somebody back, and there are no others.
func (s *Store) evictRecords(b *bound, k keyHash, now int64) bool {
	g := b.table.segment(k)
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.table.arena.spare() {
		return true // somebody else has made room
	}
	if g.full(b, now) {
		return false
	}
	held := scratch.Get().(*[]entry)
	defer scratch.Put(held)
	keep := g.used * 7 / 8
	all := s.takeOut(b, g, (*held)[:0], now)
	for _, e := range s.shed(b, all, keep, now) {
		g.putBack(e)
	}
	ok := b.table.arena.spare()
	g.searched(ok, now)
	return ok
}

// A segment in which nothing may be dropped is not searched again for a while,
// and for longer each time that was in vain: a search takes as long as a thousand
// decisions, and there are thousands of segments.
const (
	minPause = 10_000 * algo.Micro
	maxPause = 8_000_000 * algo.Micro
)

// searched notes whether a search for something to drop found anything.
func (g *segment) searched(ok bool, now int64) {
	if ok {
		g.pause = 0
		return
	}
	g.pause = min(max(minPause, 4*g.pause), maxPause)
	g.fullUntil = now + g.pause
}

// full reports whether another search would come too early. The caller holds mu.
func (g *segment) full(b *bound, now int64) bool {
	wait := g.fullUntil - now
	return wait > 0 && wait <= g.pause && b.spares()
}

// spares reports whether keys that hold somebody back are kept at all costs: a
// lease forgotten would be a slot given twice.
func (b *bound) spares() bool { return b.limit.OnFull == tidegate.RefuseNew || b.kind == leases }

// shed drops keys until keep are left, the least used first, as far as a
// sixty-fourth of the capacity tells them apart.
func (s *Store) shed(b *bound, all []entry, keep int, now int64) []entry {
	drop := len(all) - keep
	if drop <= 0 {
		return all
	}
	const shift = 14
	var used [exhausted>>shift + 1]int // keys by use
	for i := range all {
		all[i].use = s.use(b, all[i].cell, now)
		used[all[i].use>>shift]++
	}
	least := 0 // the last group of which some go
	for below := used[0]; below < drop; below += used[least] {
		least++
	}
	if least == exhausted>>shift && b.spares() {
		least--
	}
	left := all[:0]
	for _, e := range all {
		if drop == 0 || e.use>>shift > least {
			left = append(left, e)
			continue
		}
		drop--
		if e.use == exhausted {
			b.table.forgotten.Add(1)
		} else {
			b.table.evicted.Add(1)
		}
		s.dropped(b.table, e)
	}
	return left
}

// muchLarger is the largest table, if that is another and much larger than t: a
// flood of one rule's keys must not crowd out the others.
func (s *Store) muchLarger(t *table) *table {
	largest := t
	for _, other := range *s.tables.Load() {
		if other.slotBytes() > largest.slotBytes() {
			largest = other
		}
	}
	if largest.slotBytes() < 2*t.slotBytes()+chunkBytes {
		return nil
	}
	return largest
}

// slotBytes is what a table can give back: records stay with their arena.
func (t *table) slotBytes() int64 { return t.bytes.Load() - t.arena.bytes.Load() }

// reclaim makes a table give a chunk.
func (s *Store) reclaim(t *table, now int64) {
	for range 4 {
		if s.shrink(t, s.sweeper.next(), now, true) {
			return
		}
	}
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
	return live < samples*9/16 // a full segment has 24 of 32
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
