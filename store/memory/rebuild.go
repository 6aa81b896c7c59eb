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

// insert settles k with the state c and reports false when there is no room,
// which a limit's OnFull decides. inserted is false when k was there already.
func (s *Store) insert(b *bound, k keyHash, c cell, now int64) (inserted, ok bool) {
	t := b.table
	for try := 0; ; try++ {
		g := t.segment(k)
		g.mu.Lock()
		if t.segment(k) != g { // it was split meanwhile
			g.mu.Unlock()
			continue
		}
		if g.find(k) != nil {
			g.mu.Unlock()
			return false, true
		}
		if g.used < most(int(g.slots.Load())) {
			g.vacant(k).settle(k, c)
			g.used++
			t.keys.Add(1)
			g.mu.Unlock()
			return true, true
		}
		if g.full(b, now) {
			g.mu.Unlock()
			return false, false
		}
		larger := s.muchLarger(t)
		made := s.makeRoom(b, g, now, larger == nil || try >= reclaims)
		g.mu.Unlock()
		s.sweeper.step(s, now)
		if made {
			continue
		}
		if larger == nil || try >= reclaims {
			return false, false
		}
		s.reclaim(larger, now)
	}
}

// reclaims is how often a larger table is asked for memory before one's own keys
// have to go: a split needs a few chunks.
const reclaims = 8

// makeRoom drops what is idle in a full segment and, if that is not enough,
// grows or splits it; at the memory bound it drops what matters least, if it may.
func (s *Store) makeRoom(b *bound, g *segment, now int64, shed bool) bool {
	held := scratch.Get().(*[]entry)
	defer scratch.Put(held)
	all := s.takeOut(b, g, (*held)[:0], now)
	slots := int(g.slots.Load())
	keep := most(slots) * 7 / 8
	roomy := len(all) <= keep
	switch {
	case roomy:
	case slots < maxChunks*chunkSlots:
		roomy = s.widen(b.table, g, min(slots/chunkSlots+growChunks, maxChunks))
	default:
		all, roomy = s.split(b.table, g, all)
	}
	if !roomy && shed {
		// A quarter at a time, since a rebuild costs as much as many decisions.
		all = s.shed(b, all, most(slots)*3/4, now)
		roomy = len(all) < most(slots)
		g.searched(roomy, now)
	}
	for _, e := range all {
		g.putBack(e)
	}
	return roomy
}

// takeOut vacates g and returns its keys, except the idle ones, which it drops.
func (s *Store) takeOut(b *bound, g *segment, all []entry, now int64) []entry {
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
		if s.idle(b, e.cell, now) {
			s.dropped(b.table, e)
		} else {
			all = append(all, e)
		}
		sl.vacate()
	}
	g.used = 0
	return all
}

func (g *segment) putBack(e entry) {
	g.vacant(e.key).settle(e.key, e.cell)
	g.used++
}

// dropped frees what a key that is no longer remembered has held.
func (s *Store) dropped(t *table, e entry) {
	t.keys.Add(-1)
	if t.kind.inRecord() {
		t.arena.release(handle(e.cell.slow))
	}
}

// growChunks is by how much a full segment grows: by an eighth to a quarter once
// it is large. Less would rebuild more often, more would leave more empty.
const growChunks = 2

// widen grows g to so many chunks, or as far as memory goes. All its slots are
// vacant.
func (s *Store) widen(t *table, g *segment, chunks int) bool {
	had := int(g.slots.Load()) / chunkSlots
	for n := had; n < chunks; n++ {
		c := s.budget.chunk(t, false)
		if c == nil {
			return n > had
		}
		g.chunks[n].Store(c)
		g.slots.Store(uint32((n + 1) * chunkSlots))
	}
	return true
}

// narrow takes chunks from the end of g. All its slots are vacant.
func (s *Store) narrow(t *table, g *segment, chunks int) {
	had := int(g.slots.Load()) / chunkSlots
	g.slots.Store(uint32(chunks * chunkSlots))
	for i := chunks; i < had; i++ {
		s.budget.drop(t, g.chunks[i].Swap(nil))
	}
}

// split moves the keys of all whose next bit is set into a new segment, and
// returns the others, which are still g's. Both get the chunks they need, so
// that a run of keys on one side is no harm.
func (s *Store) split(t *table, g *segment, all []entry) (rest []entry, ok bool) {
	bit := uint64(1) << (63 - g.depth)
	ones := 0
	for _, e := range all {
		if e.key.tag&bit != 0 {
			ones++
		}
	}
	twin := s.share(t, g, chunksFor(len(all)-ones), chunksFor(ones))
	if twin == nil {
		return all, false
	}
	rest = all[:0]
	for _, e := range all {
		if e.key.tag&bit != 0 {
			twin.putBack(e)
		} else {
			rest = append(rest, e)
		}
	}
	t.split(g, twin, &s.budget)
	return rest, true
}

// chunksFor is how many chunks hold n keys with room for an eighth more, as far
// as a segment can.
func chunksFor(n int) int {
	chunks := 1
	for chunks < maxChunks && most(chunks*chunkSlots)*7/8 < n {
		chunks++
	}
	return chunks
}

// share divides the chunks of g, which is at its largest, between g and a new
// segment. It returns nil, and leaves no garbage, when there is no memory for that.
func (s *Store) share(t *table, g *segment, mine, its int) *segment {
	if !s.budget.spend(t, segmentBytes, false) {
		return nil
	}
	var room [2 * maxChunks]*chunk
	spare := room[:0]
	for len(spare) < mine+its-maxChunks {
		c := s.budget.chunk(t, false)
		if c == nil {
			for _, c := range spare {
				s.budget.drop(t, c)
			}
			s.budget.giveBack(t, segmentBytes)
			return nil
		}
		spare = append(spare, c)
	}
	twin := new(segment)
	g.slots.Store(uint32(mine * chunkSlots))
	for i := mine; i < maxChunks; i++ {
		spare = append(spare, g.chunks[i].Swap(nil))
	}
	for i, c := range spare {
		if i < its {
			twin.chunks[i].Store(c)
		} else {
			s.budget.drop(t, c)
		}
	}
	twin.slots.Store(uint32(its * chunkSlots))
	return twin
}
