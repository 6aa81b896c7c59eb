package pressure

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	band  = 0.05        // on both sides of the bound, in which a verdict stays
	dwell = time.Second // that a verdict stays at least
)

// verdict is whether a signal has room below a bound.
type verdict struct {
	room  bool
	asked bool          // false: nobody has asked yet
	since time.Duration // when it came to be so
}

// step is what the verdict becomes by a value.
func (v verdict) step(value, threshold float64, known bool, now time.Duration) verdict {
	room := v.room
	switch {
	case !known:
		room = false
	case !v.asked:
		room = value < threshold
	case now-v.since < dwell:
	case value < threshold*(1-band):
		room = true
	case value >= threshold*(1+band):
		room = false
	}
	if v.asked && room == v.room {
		return v
	}
	return verdict{room: room, asked: true, since: now}
}

// pack makes a word of a verdict; 0 is one that nobody asked for.
func (v verdict) pack() uint64 {
	word := uint64(v.since) << 2
	if v.room {
		word |= 2
	}
	if v.asked {
		word |= 1
	}
	return word
}

func unpack(word uint64) verdict {
	return verdict{room: word&2 != 0, asked: word&1 != 0, since: time.Duration(word >> 2)}
}

// verdicts are the verdicts of all bounds that rules have asked about.
type verdicts struct {
	mu   sync.Mutex
	made atomic.Pointer[map[comparison]*atomic.Uint64] // replaced, never written
}

type comparison struct {
	name  string
	below float64
}

// maxComparisons are kept. There are as many as rules write, and reloads may bring
// others for ever; a verdict that is dropped is found anew.
const maxComparisons = 1024

func (v *verdicts) step(name string, below, value float64, known bool, now time.Duration) bool {
	word := v.find(comparison{name, below})
	before := word.Load()
	after := unpack(before).step(value, below, known, now)
	if packed := after.pack(); packed != before && !word.CompareAndSwap(before, packed) {
		return unpack(word.Load()).room // somebody else was first
	}
	return after.room
}

func (v *verdicts) find(b comparison) *atomic.Uint64 {
	if made := v.made.Load(); made != nil && (*made)[b] != nil {
		return (*made)[b]
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	after := make(map[comparison]*atomic.Uint64)
	if made := v.made.Load(); made != nil {
		if word := (*made)[b]; word != nil {
			return word
		}
		if len(*made) < maxComparisons {
			for k, word := range *made {
				after[k] = word
			}
		}
	}
	word := new(atomic.Uint64)
	after[b] = word
	v.made.Store(&after)
	return word
}
