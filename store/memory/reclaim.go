package memory

import (
	"sync/atomic"

	"tidegate.dev/tidegate"
)

// exhausted is what Store.use returns for a key whose next request would be refused.
const exhausted = 1 << 20

// Memory is reclaimed in this order: idle keys of any table; keys of the largest table,
// one segment at a time, those that have used little of their limit before others.

// dropScope says which keys a rebuild may drop.
type dropScope int

const (
	dropIdle        dropScope = iota // those in the same state as an unknown key
	dropUnexhausted                  // also others that are not exhausted
	dropAny                          // also exhausted ones, unless the limit keeps them
)

// maxRounds bounds the rounds of one reclaim, each of a few rebuilds, and so the longest
// a decision is held up.
const maxRounds = 16

// reclaim makes room for want more pages of t, and reports whether there is room. If t
// itself has to shed keys, because it is the largest table or is rationed, it does so only
// if own is set: whoever has a full segment at hand sheds keys of that instead.
func (s *Store) reclaim(t *table, want int, now int64, own bool) bool {
	for range maxRounds {
		rationed := s.budget.rationed(t)
		if !rationed && s.budget.freePages() >= want {
			return true
		}
		if s.sweeper.sweep(s, t, now) {
			continue
		}
		v := t
		if !rationed {
			v = s.victim(now)
		}
		if v != nil && v.bytes.Load() < t.bytes.Load() {
			v = t // no table gives to a larger one
		}
		if v == nil || v == t && !own || !s.shedFrom(v, t, now) && v == t {
			return false
		}
	}
	return !s.budget.rationed(t) && s.budget.freePages() >= want
}

// shedFrom makes v give a page to t. If t is not much smaller than v, t sheds its own
// keys that are not exhausted before v sheds exhausted ones.
func (s *Store) shedFrom(v, t *table, now int64) bool {
	if v.inShedBackoff(s, now) {
		return false
	}
	nth := s.sweeper.next()
	found := s.shrink(v, nth, now, dropUnexhausted) || s.shrink(v, nth+1, now, dropUnexhausted) ||
		4*t.bytes.Load() >= v.bytes.Load() && s.shrink(t, nth, now, dropUnexhausted) ||
		s.shrink(v, nth, now, dropAny)
	if v != t {
		s.dropIfEmpty(v)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.shedBackoff.record(found, now)
	return found
}

func (t *table) inShedBackoff(s *Store, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.shedBackoff.active(now)
}

// victim returns the largest table that may have keys to drop. If there are very many
// tables, it looks at a part of them each time.
func (s *Store) victim(now int64) (largest *table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	consider := func(t *table) {
		if t != nil && !t.shedBackoff.active(now) && (largest == nil || t.bytes.Load() > largest.bytes.Load()) {
			largest = t
		}
	}
	consider(s.largest)
	n := len(s.tables)
	for range min(n, 64) {
		if s.victimCursor++; s.victimCursor >= n {
			s.victimCursor = 0
		}
		consider(s.tables[s.victimCursor])
	}
	if s.largest = largest; largest != nil && largest.bytes.Load() < pageBytes {
		return nil
	}
	return largest
}

// keepsExhausted reports whether exhausted keys are never dropped. All keys with leases
// count as exhausted: if one were forgotten, what its leases hold would be granted twice.
func (lim *compiledLimit) keepsExhausted() bool {
	return lim.limit.OnFull == tidegate.RefuseNew || lim.kind == leases
}

// shed drops keys of all until target are left: the least used first, to within a
// sixty-fourth of the capacity. With keepExhausted it drops no exhausted ones, and may leave more.
func (s *Store) shed(lim *compiledLimit, g *segment, all []entry, target int, now int64, keepExhausted bool) []entry {
	drop := len(all) - target
	if drop <= 0 {
		return all
	}
	const shift = 14
	var used [exhausted>>shift + 1]int // how many keys there are, by use
	for i := range all {
		all[i].cell = s.settle(lim, all[i].cell, now)
		all[i].use = s.use(lim, all[i].cell, now)
		used[all[i].use>>shift]++
	}
	last := 0 // the last group of which some go
	for drop > used[last] {
		drop -= used[last]
		last++
	}
	if last == exhausted>>shift && keepExhausted {
		if target == 0 {
			return all // no page becomes free unless all go
		}
		last--
		drop = used[last]
	}
	left := all[:0]
	for _, e := range all {
		group := e.use >> shift
		if group > last || group == last && drop == 0 {
			left = append(left, e)
			continue
		}
		if group == last {
			drop--
		}
		lim.table.forgotten.Add(1)
		if e.use < exhausted {
			lim.table.evicted.Add(1)
		}
		g.free(lim.table, e)
	}
	return left
}

// shrink rebuilds a segment of t and reports whether that gave anything back.
func (s *Store) shrink(t *table, nth uint64, now int64, m dropScope) bool {
	lim := t.lastLimit.Load()
	if lim == nil {
		return false
	}
	d := t.dir.Load()
	g := d.segs[nth%uint64(len(d.segs))].Load()
	if !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	if g.slots.Load() == 0 {
		return t.join(g, &s.budget)
	}
	if m == dropIdle && !s.worthSweeping(lim, g, now) {
		return false
	}
	return s.rebuild(lim, g, now, m)
}

// rebuild drops the idle keys of g and, if that frees no page, others as far as m allows.
// It gives back the pages that g then does not need, and reports whether it freed anything.
// The caller holds g's lock.
func (s *Store) rebuild(lim *compiledLimit, g *segment, now int64, m dropScope) bool {
	held := scratch.Get().(*[]entry)
	defer scratch.Put(held)
	t := lim.table
	before, keys := t.bytes.Load(), t.keys.Load()
	all := s.takeOut(lim, g, (*held)[:0], now)
	s.releasePages(t, g, all, m)
	few := len(all) <= chunkSlots/4 // no page becomes free unless all go
	if m != dropIdle && t.bytes.Load() >= before && (!few || g.depth == 0) {
		target := len(all) * 3 / 4
		if few {
			target = 0
		}
		all = s.shed(lim, g, all, target, now, m == dropUnexhausted || lim.keepsExhausted())
		s.releasePages(t, g, all, m)
	}
	for _, e := range all {
		g.putBack(e)
	}
	if len(all) == 0 {
		t.join(g, &s.budget)
	}
	return t.bytes.Load() < before || m == dropAny && t.keys.Load() < keys
}

// releasePages gives back the pages that all, the keys of g, do not need. A sweep gives
// back chunks only if half of them are free: a few more keys would need the others.
func (s *Store) releasePages(t *table, g *segment, all []entry, m dropScope) {
	had, chunks := int(g.slots.Load())/chunkSlots, t.chunksFor(len(all))
	if chunks < had && (m != dropIdle || chunks <= had/2) {
		s.removeChunks(t, g, chunks)
	}
	g.records.pack(all)
}

// worthSweeping looks at a few slots of g and reports whether enough of them are
// idle or vacant for a rebuild to pay.
func (s *Store) worthSweeping(lim *compiledLimit, g *segment, now int64) bool {
	const samples = 16
	n := int(g.slots.Load())
	live := 0
	for i := range samples {
		at := i * n / samples
		sl := &g.chunks[at/chunkSlots].Load()[at%chunkSlots]
		if sl.tag.Load() != 0 && !s.sampleIdle(lim, sl, now) {
			live++
		}
	}
	return live < samples*9/16 // a full segment has 12 of 16
}

// sampleIdle reports whether the key in a slot is idle. A record is read only under the
// busyBit of its slot; if another goroutine has set it, the key counts as not idle.
func (s *Store) sampleIdle(lim *compiledLimit, sl *slot, now int64) bool {
	word := sl.word.Load()
	if !lim.kind.inRecord() {
		return s.idle(lim, cell{sl.meta.Load() & slowMask, word & fastMask}, now)
	}
	if word&busyBit != 0 || !sl.word.CompareAndSwap(word, word|busyBit) {
		return false
	}
	idle := s.idle(lim, cell{sl.meta.Load() & slowMask, word & fastMask}, now)
	sl.word.Store(word)
	return idle
}

// sweeper visits the segments of all tables in turn: one whenever a segment is found full, so
// that tables into which nothing is inserted shrink, too; and a few whenever memory is short.
type sweeper struct {
	at      atomic.Uint64 // counts the calls of next, by which keys are shed from the segments of a table in turn
	table   atomic.Uint64 // the table that is being swept, and
	segment atomic.Uint64 // its next segment
}

const maxSweeps = 2 // segments that one call of sweep visits at most

func (w *sweeper) next() uint64 { return w.at.Add(1) }

// sweep visits a few segments, until one gives memory back, and reports whether one did.
func (w *sweeper) sweep(s *Store, user *table, now int64) bool {
	for range maxSweeps {
		if w.visit(s, user, now) {
			return true
		}
	}
	return false
}

// visit sweeps the next segment of the current table; the last is followed by the next table.
// It drops an empty table, unless that is user, which is about to be filled.
func (w *sweeper) visit(s *Store, user *table, now int64) bool {
	s.mu.Lock()
	n := uint64(len(s.tables))
	if n == 0 {
		s.mu.Unlock()
		return false
	}
	nth := w.table.Load()
	if nth >= n { // modulo n would never start again while n grows as fast
		nth = 0
		w.table.Store(0)
	}
	t := s.tables[nth]
	s.mu.Unlock()
	at := w.segment.Add(1) - 1
	if at+1 >= uint64(len(t.dir.Load().segs)) {
		w.segment.Store(0)
		w.table.Add(1)
	}
	found := s.shrink(t, at, now, dropIdle)
	return t != user && s.dropIfEmpty(t) || found
}
