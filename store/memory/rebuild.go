package memory

import "sync"

// entry is a key taken out of its segment while that is rebuilt.
type entry struct {
	key  keyHash
	cell cell
	use  int // set by shed
}

var scratch = sync.Pool{New: func() any {
	e := make([]entry, 0, maxChunks*chunkSlots)
	return &e
}}

// maxGrowths is how often memory is reclaimed for one key before its own segment has
// to drop one.
const maxGrowths = 4

// insert stores k with the state c and reports false when there is no room, which the
// limit's OnFull decides. inserted is false when k was there already, or the table was
// dropped: the caller looks k up again.
func (s *Store) insert(lim *compiledLimit, k keyHash, c cell, now int64) (inserted, ok bool) {
	t := lim.table
	for try := 0; ; try++ {
		g := t.segment(k)
		g.mu.Lock()
		if t.segment(k) != g { // it was split or joined meanwhile
			g.mu.Unlock()
			continue
		}
		if t.dropped.Load() || g.find(k) != nil {
			g.mu.Unlock()
			return false, true
		}
		if g.used < maxKeys(int(g.slots.Load())) {
			sl := g.vacant(k)
			sl.occupy(k, c)
			lim.warm(sl, k) // a new key is likely to come again
			g.used++
			t.keys.Add(1)
			g.mu.Unlock()
			return true, true
		}
		if lim.keepsExhausted() && g.shedBackoff.active(now) {
			g.mu.Unlock()
			return false, false
		}
		s.sweeper.visit(s, t, now) // not g, which is locked
		empty := g.slots.Load() == 0
		last := try >= maxGrowths || !empty && s.mustShed(t, now)
		made, want := s.makeRoom(lim.plain, g, now, last) // a floor is for one request: by it, keys that have room would count as exhausted
		g.mu.Unlock()
		switch {
		case made:
		case last:
			return false, false
		case !s.reclaim(t, want, now, empty):
			try = maxGrowths
		}
	}
}

// mustShed reports whether a full segment of t can only grow by memory that t sheds.
func (s *Store) mustShed(t *table, now int64) bool {
	return s.budget.freePages() == 0 && s.victim(now) == t && !s.sweeper.sweep(s, t, now)
}

// makeRoom drops the idle keys of a full segment and, if that is not enough, grows or splits
// it. Without memory for that, it returns how many pages it wants or, if shed is set, drops
// the least used keys.
func (s *Store) makeRoom(lim *compiledLimit, g *segment, now int64, shed bool) (made bool, want int) {
	held := scratch.Get().(*[]entry)
	defer scratch.Put(held)
	all := s.takeOut(lim, g, (*held)[:0], now)
	slots := int(g.slots.Load())
	t := lim.table
	switch {
	case slots > 0 && len(all) <= maxKeys(slots)*7/8:
		made = true
	case slots < t.maxChunks*chunkSlots:
		want = 1
		made = s.addChunks(t, g, min(slots/chunkSlots+max(1, t.maxChunks/8), t.maxChunks))
	default:
		all, made, want = s.split(t, g, all)
	}
	if !made && shed {
		// A quarter at a time, since a rebuild costs as much as many decisions.
		all = s.shed(lim, g, all, maxKeys(slots)*3/4, now, lim.keepsExhausted())
		made = len(all) < maxKeys(slots)
		g.shedBackoff.record(made, now)
	}
	for _, e := range all {
		g.putBack(e)
	}
	return made, want
}

// takeOut vacates g and returns its keys, except the idle ones, which it drops.
func (s *Store) takeOut(lim *compiledLimit, g *segment, all []entry, now int64) []entry {
	n := int(g.slots.Load())
	for i := range n {
		sl := &g.chunks[i/chunkSlots].Load()[i%chunkSlots]
		tag := sl.tag.Load()
		if tag == 0 {
			continue
		}
		word := sl.seize()
		meta := sl.meta.Load()
		e := entry{key: keyHash{tag, meta &^ slowMask}, cell: cell{meta & slowMask, word & fastMask}}
		if g.records != nil {
			lim.budget.touch(e.cell.handle()) // all are fetched at once, not each when it is looked at
		}
		all = append(all, e)
		sl.vacate()
	}
	g.used = 0
	live := all[:0]
	for _, e := range all {
		if s.idle(lim, e.cell, now) {
			g.free(lim.table, e)
		} else {
			live = append(live, e)
		}
	}
	return live
}

func (g *segment) putBack(e entry) {
	g.vacant(e.key).occupy(e.key, e.cell)
	g.used++
}

// free gives back the memory of a key that is forgotten.
func (g *segment) free(t *table, e entry) {
	t.keys.Add(-1)
	if g.records != nil {
		g.records.release(e.cell.handle())
	}
}

// addChunks grows g to so many chunks, or as far as memory goes. All its slots are
// vacant.
func (s *Store) addChunks(t *table, g *segment, chunks int) bool {
	had := int(g.slots.Load()) / chunkSlots
	for n := had; n < chunks; n++ {
		page := s.budget.take(t)
		if page == 0 {
			return n > had
		}
		g.add(page, s.budget.chunk(page))
	}
	return true
}

// add gives g one more chunk.
func (g *segment) add(page uint32, c *chunk) {
	n := int(g.slots.Load()) / chunkSlots
	g.pages[n] = page
	g.chunks[n].Store(c)
	g.slots.Store(uint32((n + 1) * chunkSlots))
}

// removeChunks takes chunks from the end of g. All its slots are vacant.
func (s *Store) removeChunks(t *table, g *segment, chunks int) {
	had := int(g.slots.Load()) / chunkSlots
	g.slots.Store(uint32(chunks * chunkSlots))
	for i := chunks; i < had; i++ {
		g.chunks[i].Store(nil)
		s.budget.drop(t, g.pages[i])
	}
}

// split moves the keys of all whose next bit is set into a new segment, and
// returns the others, which are still g's. Both get the chunks they need, so
// that a run of keys on one side is no harm. Without memory it changes nothing
// and says how many pages it wants.
func (s *Store) split(t *table, g *segment, all []entry) (rest []entry, ok bool, want int) {
	bit := uint64(1) << (63 - g.depth)
	n := 0 // keys that stay
	for i := range all {
		if all[i].key.tag&bit == 0 {
			all[i], all[n] = all[n], all[i]
			n++
		}
	}
	mine, its := t.chunksFor(n), t.chunksFor(len(all)-n)
	var classes [len(classWords)]int
	recordPages := 0
	if g.records != nil {
		classes, recordPages = pagesFor(all[n:])
	}
	want = max(0, mine+its-t.maxChunks) + recordPages
	sibling := s.newSibling(t, want, max(0, its-(t.maxChunks-mine)), classes)
	if sibling == nil {
		return all, false, want + 1
	}
	had := int(g.slots.Load()) / chunkSlots
	g.slots.Store(uint32(mine * chunkSlots))
	for i := mine; i < had; i++ {
		c := g.chunks[i].Swap(nil)
		if int(sibling.slots.Load())/chunkSlots < its {
			sibling.add(g.pages[i], c)
		} else {
			s.budget.drop(t, g.pages[i])
		}
	}
	sibling.mu.Lock()
	defer sibling.mu.Unlock()
	t.split(g, sibling, &s.budget)
	g.records.moveTo(all[n:], sibling.records)
	for _, e := range all[n:] {
		sibling.putBack(e)
	}
	g.records.pack(all[:n])
	return all[:n], true, 0
}

// newSibling returns a new segment with that many chunks and, by class, pages for records, or nil
// when there is no memory for it. want is how many pages that takes in all.
func (s *Store) newSibling(t *table, want, chunks int, classes [len(classWords)]int) *segment {
	if s.budget.freePages() < want+1 || !s.budget.spend(t, t.segmentBytes()) {
		return nil // before anything is allocated
	}
	sibling := t.newSegment(&s.budget)
	ok := s.addChunks(t, sibling, chunks) && int(sibling.slots.Load()) == chunks*chunkSlots
	for class, n := range classes {
		for ; ok && n > 0; n-- {
			page := s.budget.take(t)
			if ok = page != 0; ok {
				sibling.records.addLocked(page, class)
			}
		}
	}
	if ok {
		return sibling
	}
	s.removeChunks(t, sibling, 0)
	sibling.records.pack(nil)
	s.budget.giveBack(t, t.segmentBytes())
	return nil
}

// chunksFor returns how many chunks hold n keys with room for an eighth more, as far
// as a segment can.
func (t *table) chunksFor(n int) int {
	chunks := 0
	for chunks < t.maxChunks && maxKeys(chunks*chunkSlots)*7/8 < n {
		chunks++
	}
	return chunks
}
