package node

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// seen is what this node last saw of counters in the backend: how many events were used,
// and when. It is a table of a fixed size in sets of four, read without locks: an entry is a
// word with both, and the same word mixed with the name of the counter, so that the halves of
// two entries never match. A reader finds nothing in an entry that is being written.
type seen struct {
	key     hashKey
	sets    [][4]seenEntry
	writing [64]sync.Mutex // each guards writing to some of the sets
}

type seenEntry struct{ mixed, word atomic.Uint64 }

// A word is used<<seenBits | when. when counts from seenBefore before the Node was made, because a
// predecessor or another node may have seen something earlier. It is in milliseconds for the first
// half year, and then in units of 64 ms, marked by the bit seenCoarse: enough for 34 years. Later
// times saturate.
const (
	seenBits   = 35
	seenMost   = 1<<(64-seenBits) - 1
	seenCoarse = 1 << (seenBits - 1)
	seenShift  = 6
	seenBefore = 30 * 24 * time.Hour
)

func seenTime(when time.Duration) uint64 {
	ms := uint64(max(when+seenBefore, 0) / time.Millisecond)
	if ms < seenCoarse {
		return ms
	}
	return seenCoarse | min(ms>>seenShift, seenCoarse-1)
}

// An answer is not written if less than 1/seenLeast of the limit is used, or if it is lower by less
// than that than what was written within seenFresh. A higher one is always written: otherwise the
// difference would be admitted again.
const (
	seenLeast = 32
	seenFresh = 100 * time.Millisecond
)

func newSeen(keys int) *seen {
	return &seen{key: newHashKey(), sets: make([][4]seenEntry, max(keys/4, 1))}
}

func (s *seen) hash(key string) uint64 { return s.key.string(key) }

// name returns the name of a counter in the table.
func (s *seen) name(l *tidegate.Limit, key string) uint64 {
	return s.hash(key)*31 + s.hash(l.Identity())
}

func (s *seen) set(name uint64) (*[4]seenEntry, *sync.Mutex) {
	i, _ := bits.Mul64(name, uint64(len(s.sets)))
	return &s.sets[i], &s.writing[i%uint64(len(s.writing))]
}

// note writes that used events of capacity were used at now, if that is worth a write.
func (s *seen) note(name uint64, used, capacity int64, now time.Duration) {
	used = min(used, seenMost)
	set, writing := s.set(name)
	if place(set, name, used, capacity, now) == nil {
		return
	}
	writing.Lock()
	defer writing.Unlock()
	if at := place(set, name, used, capacity, now); at != nil {
		word := uint64(used)<<seenBits | seenTime(now)
		at.mixed.Store(word ^ name)
		at.word.Store(word)
	}
}

// place returns the entry for note to write; nil means that it is not worth a write.
func place(set *[4]seenEntry, name uint64, used, capacity int64, now time.Duration) (at *seenEntry) {
	oldest := time.Duration(math.MaxInt64)
	for i := range set {
		e := &set[i]
		word := e.word.Load()
		was, when := split(word)
		if e.mixed.Load()^word == name {
			if now <= when && used <= was { // a later answer was written first
				return nil
			}
			if now-when < seenFresh && used <= was && (was-used)*seenLeast < capacity {
				return nil
			}
			return e
		}
		if when < oldest {
			at, oldest = e, when
		}
	}
	return at
}

func split(word uint64) (used int64, when time.Duration) {
	ms := word & (seenCoarse - 1)
	if word&seenCoarse != 0 {
		ms <<= seenShift
	}
	return int64(word >> seenBits), time.Duration(ms)*time.Millisecond - seenBefore
}

// look finds what was seen of a counter; word is to be given to forget, and is 0 if there is nothing.
func (s *seen) look(name uint64) (used int64, when time.Duration, word uint64) {
	set, _ := s.set(name)
	for i := range set {
		word = set[i].word.Load()
		if set[i].mixed.Load()^word == name && word != 0 {
			used, when = split(word)
			return used, when, word
		}
	}
	return 0, 0, 0
}

// forget drops what look found, unless it was replaced by something newer.
func (s *seen) forget(name, word uint64) {
	set, _ := s.set(name)
	for i := range set {
		if set[i].mixed.Load()^word == name {
			set[i].word.CompareAndSwap(word, 0)
		}
	}
}

// handSeen returns everything that was seen, to be handed over.
func (n *Node) handSeen() (all []handedSeen) {
	for i := range n.seen.sets {
		for j := range n.seen.sets[i] {
			e := &n.seen.sets[i][j]
			if word := e.word.Load(); word != 0 {
				used, when := split(word)
				all = append(all, handedSeen{e.mixed.Load() ^ word, used, n.toHandOver(when).UnixMilli()})
			}
		}
	}
	return all
}

// takeOverSeen adds what a predecessor saw.
func (n *Node) takeOverSeen(all []handedSeen) {
	now := n.now()
	for _, h := range all {
		when := now
		if h.When != 0 {
			when = min(time.UnixMilli(h.When).Sub(n.start), now)
		}
		n.seen.put(h.Name, h.Used, when)
	}
}

// put adds an entry that was handed over, if its set has room.
func (s *seen) put(name uint64, used int64, when time.Duration) {
	set, writing := s.set(name)
	writing.Lock()
	defer writing.Unlock()
	for i := range set {
		if e := &set[i]; e.word.Load() == 0 {
			word := uint64(min(used, seenMost))<<seenBits | seenTime(when)
			e.mixed.Store(word ^ name)
			e.word.Store(word)
			return
		}
	}
}

// see notes what an answer of the backend shows of the counter that it is about. An answer without
// a receipt comes from an earlier one, and shows nothing new.
func (n *Node) see(checks []tidegate.Check, d *tidegate.Decision, now time.Duration) {
	l := d.Limit
	if l == nil || d.Receipt.At == 0 || d.Err != nil {
		return
	}
	if d.OK {
		n.seeUnblocked(checks, now)
		n.seeRoom(checks, now)
	}
	if l.Algorithm == tidegate.Concurrency {
		return
	}
	capacity, used := l.Capacity(), usedOf(d)
	for i := range checks {
		c := &checks[i]
		if !c.Advisory && (c.Limit == l || c.Limit.Identity() == l.Identity()) {
			if !isBucket(l) { // Remaining is above the floor, so up to the floor less may be used
				used -= min(c.Floor, used)
			}
			if used*seenLeast < capacity { // also if much was used before, and was reset or given back elsewhere
				n.forgetSeenBefore(c, now)
				return
			}
			name := n.seen.name(l, c.Key)
			if d.Remaining == 0 { // a wider version of the limit may have used more
				if was, when, word := n.seen.look(name); word != 0 && was > capacity {
					used = max(used, int64(math.Ceil(fade(l, float64(was), n.wall(when), n.wall(now)))))
				}
			}
			if final(l) && !isBucket(l) { // a block: it fades from when it began
				now -= l.Period - min(d.ResetAfter, l.Period)
			}
			n.seen.note(name, used, capacity, now)
			return
		}
	}
}

// seeUnblocked forgets the blocks that checks peek at, since none was in force when the backend was asked.
func (n *Node) seeUnblocked(checks []tidegate.Check, asked time.Duration) {
	for i := range checks {
		if c := &checks[i]; final(c.Limit) && c.Cost == 0 && !c.Advisory {
			n.forgetSeenBefore(c, asked)
		}
	}
}

// forgetSeenBefore forgets what was seen of the counter of c if that was before an instant.
func (n *Node) forgetSeenBefore(c *tidegate.Check, before time.Duration) {
	name := n.seen.name(c.Limit, c.Key)
	if _, when, word := n.seen.look(name); word != 0 && when < before {
		n.seen.forget(name, word)
	}
}

// usedOf returns how many events are used according to d. For a bucket it goes by ResetAfter,
// since Remaining is 0 whether or not more is booked ahead.
func usedOf(d *tidegate.Decision) int64 {
	if !isBucket(d.Limit) {
		return d.Limit.Capacity() - d.Remaining
	}
	return int64(math.Ceil(float64(d.ResetAfter) / float64(d.Limit.Period) * float64(d.Limit.Events)))
}

func isBucket(l *tidegate.Limit) bool {
	return l.Algorithm == tidegate.TokenBucket || l.Algorithm == tidegate.LeakyBucket
}
