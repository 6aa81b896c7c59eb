package offenders

import "tidegate.dev/tidegate"

const (
	// maxEntries are in all lists together.
	maxEntries = 10 * chunkSize
	// maxOfList are in one list.
	maxOfList = 512
	chunkSize = 256
	indexSize = 8192
	// maxKey is the longest key that is kept whole: longer than [tidegate.MaxKey], by the mark of
	// a key that was hashed.
	maxKey = tidegate.MaxKey + 1
)

// entry is a key in a list.
type entry struct {
	hash  uint64
	list  *list
	limit *tidegate.Limit // that it was last seen under
	// since is when the key was listed. What it did before then is not known; in that minute it
	// was at most missed.
	since  slice
	missed uint32
	length uint8
	key    [maxKey]byte
	fine   [slices10s]uint32 // by slice
	coarse [minutes]uint32   // by minute
}

// pool has the entries of all lists. Those of a list are linked in a ring.
type pool struct {
	chunks     [maxEntries / chunkSize]*[chunkSize]entry // made when needed
	next, prev [maxEntries]uint16
	ranks      [maxEntries]uint32 // see list.rank
	index      [indexSize]uint16  // slots + 1, by hash; 0 is free
	made       int                // slots that were ever used
	free       []uint16           // of those
	largest    *list              // the one with the most entries; nil if that is not known
	salts      uint32
}

func (p *pool) at(slot uint16) *entry { return &p.chunks[slot/chunkSize][slot%chunkSize] }

func (p *pool) newList(k kind, now slice) *list {
	p.salts++
	return &list{kind: k, salt: p.salts, at: now}
}

// release frees the entries of a list.
func (p *pool) release(l *list) {
	for l.count > 0 {
		p.remove(l, l.hand)
	}
}

// each calls f for all entries of l; f may remove the one it is called for.
func (p *pool) each(l *list, f func(slot uint16, e *entry)) {
	slot := l.hand
	for range l.count {
		next := p.next[slot]
		f(slot, p.at(slot))
		slot = next
	}
}

// find returns the slot of a key in l.
func (p *pool) find(l *list, hash uint64, limit *tidegate.Limit, key string) (uint16, bool) {
	for i := hash % indexSize; p.index[i] != 0; i = (i + 1) % indexSize {
		slot := p.index[i] - 1
		e := p.at(slot)
		if e.hash == hash && e.list == l && string(e.key[:e.length]) == key &&
			(e.limit == limit || scopeOf(e.limit) == scopeOf(limit)) {
			return slot, true
		}
	}
	return 0, false
}

// slot returns a slot for another entry of l: a free one, one of the largest list if that has
// more than l, or the least entry of l itself. For a peak, worth is what it must be above.
func (p *pool) slot(l *list, worth uint32) (uint16, bool) {
	if l.count < maxOfList {
		if n := len(p.free); n > 0 {
			slot := p.free[n-1]
			p.free = p.free[:n-1]
			return slot, true
		}
		if p.made < maxEntries {
			p.made++
			slot := uint16(p.made - 1)
			if p.chunks[slot/chunkSize] == nil {
				p.chunks[slot/chunkSize] = new([chunkSize]entry)
			}
			return slot, true
		}
		if g := p.mostEntries(); g.count > l.count+1 {
			return p.evict(g), true
		}
	}
	if l.count == 0 || l.kind == nearest && p.ranks[p.least(l)] >= worth {
		return 0, false
	}
	return p.evict(l), true
}

// mostEntries returns the list with the most entries; all entries are used.
func (p *pool) mostEntries() *list {
	if p.largest == nil {
		for slot := range uint16(maxEntries) {
			if l := p.at(slot).list; p.largest == nil || l.count > p.largest.count {
				p.largest = l
			}
		}
	}
	return p.largest
}

// evict removes the least entry of a list; the list's floor keeps its upper bound.
func (p *pool) evict(l *list) uint16 {
	slot := p.least(l)
	e := p.at(slot)
	since := e.since.minute()
	for m := max(since, l.at.minute()-(minutes-1)); m <= l.at.minute(); m++ {
		c := cellOf(m)
		most := e.coarse[c]
		if m == since {
			most = l.kind.join(most, e.missed)
		}
		l.floor[c] = max(l.floor[c], most)
	}
	p.remove(l, slot)
	p.free = p.free[:len(p.free)-1]
	return slot
}

// least returns an entry of l that no other is below. Ranks only grow until the next minute, so
// the search goes on where the last one ended, for another entry as low.
func (p *pool) least(l *list) uint16 {
	lowest, at, slot := ^uint32(0), l.hand, l.hand
	for range l.count {
		rank := p.ranks[slot]
		if rank <= l.low {
			l.hand = slot
			return slot
		}
		if rank < lowest {
			lowest, at = rank, slot
		}
		slot = p.next[slot]
	}
	l.low, l.hand = lowest, at
	return at
}

// insert makes an entry of a key in a slot.
func (p *pool) insert(l *list, slot uint16, hash uint64, limit *tidegate.Limit, key string) {
	e := p.at(slot)
	*e = entry{hash: hash, list: l, limit: limit, since: l.at, missed: l.floor[cellOf(l.at.minute())]}
	e.length = uint8(copy(e.key[:], key))
	p.ranks[slot] = l.rank(e)
	if l.count == 0 {
		l.hand, p.next[slot], p.prev[slot] = slot, slot, slot
	} else { // before the hand, so that it is looked at last
		before := p.prev[l.hand]
		p.next[before], p.prev[slot] = slot, before
		p.next[slot], p.prev[l.hand] = l.hand, slot
	}
	l.count++
	i := hash % indexSize
	for p.index[i] != 0 {
		i = (i + 1) % indexSize
	}
	p.index[i] = slot + 1
	if p.largest != nil && l.count > p.largest.count {
		p.largest = l
	}
}

// remove takes an entry from l, and frees its slot.
func (p *pool) remove(l *list, slot uint16) {
	next, prev := p.next[slot], p.prev[slot]
	p.next[prev], p.prev[next] = next, prev
	if l.hand == slot {
		l.hand = next
	}
	l.count--
	if l == p.largest {
		p.largest = nil
	}
	p.unindex(slot)
	p.at(slot).list, p.at(slot).limit = nil, nil
	p.free = append(p.free, slot)
}

// unindex closes the gap that a slot leaves in the index.
func (p *pool) unindex(slot uint16) {
	i := p.at(slot).hash % indexSize
	for p.index[i] != slot+1 {
		i = (i + 1) % indexSize
	}
	for j := (i + 1) % indexSize; p.index[j] != 0; j = (j + 1) % indexSize {
		// The entry at j may move to i if i is not before its home.
		home := p.at(p.index[j]-1).hash % indexSize
		if (j+indexSize-home)%indexSize >= (j+indexSize-i)%indexSize {
			p.index[i] = p.index[j]
			i = j
		}
	}
	p.index[i] = 0
}
