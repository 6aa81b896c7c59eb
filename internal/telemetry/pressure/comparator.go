package pressure

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	band  = 0.05        // share of the threshold, on both sides of it, within which nothing switches
	dwell = time.Second // after it has switched, a comparator stays for this long, unless the signal is lost
)

// comparator remembers whether a signal is below a threshold. It has hysteresis: near the
// threshold, and for a moment after it has switched, it stays as it is.
type comparator struct {
	room  bool          // the signal is below the threshold
	asked bool          // it has had a value; false in the zero value
	since time.Duration // when it switched last
}

// step returns the comparator after a value. An unknown signal is not below.
func (c comparator) step(value, threshold float64, known bool, now time.Duration) comparator {
	room := c.room
	switch {
	case !known:
		room = false
	case !c.asked:
		room = value < threshold
	case now-c.since < dwell:
	case value < threshold*(1-band):
		room = true
	case value >= threshold*(1+band):
		room = false
	}
	if c.asked && room == c.room {
		return c
	}
	return comparator{room: room, asked: true, since: now}
}

// pack encodes a comparator as a word; 0 is the zero comparator.
func (c comparator) pack() uint64 {
	word := uint64(c.since) << 2
	if c.room {
		word |= 2
	}
	if c.asked {
		word |= 1
	}
	return word
}

func unpack(word uint64) comparator {
	return comparator{room: word&2 != 0, asked: word&1 != 0, since: time.Duration(word >> 2)}
}

// comparators has a comparator for each threshold that rules have asked about.
type comparators struct {
	mu   sync.Mutex
	made atomic.Pointer[map[comparison]*atomic.Uint64] // replaced, never written
}

type comparison struct {
	name  string
	below float64
}

// maxComparisons is how many comparators are kept. Each reload may bring other thresholds, so when
// there are this many, all are dropped; those still in use start again.
const maxComparisons = 1024

// step gives the comparator of a threshold the value of its signal, and reports whether the signal is
// below.
func (cs *comparators) step(name string, below, value float64, known bool, now time.Duration) bool {
	word := cs.find(comparison{name, below})
	before := word.Load()
	after := unpack(before).step(value, below, known, now)
	if packed := after.pack(); packed != before && !word.CompareAndSwap(before, packed) {
		return unpack(word.Load()).room // somebody else was first
	}
	return after.room
}

// find returns the packed comparator of a comparison, and creates it if there is none.
func (cs *comparators) find(which comparison) *atomic.Uint64 {
	if made := cs.made.Load(); made != nil && (*made)[which] != nil {
		return (*made)[which]
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	after := make(map[comparison]*atomic.Uint64)
	if made := cs.made.Load(); made != nil {
		if word := (*made)[which]; word != nil {
			return word
		}
		if len(*made) < maxComparisons {
			for k, word := range *made {
				after[k] = word
			}
		}
	}
	word := new(atomic.Uint64)
	after[which] = word
	cs.made.Store(&after)
	return word
}
