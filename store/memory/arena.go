package memory

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// arena holds the records of a table whose states do not fit a slot: logs,
// parts and leases. Records come in sizes of 2^class words, cut from slabs; one
// given back is used again for its size. A record belongs to the slot that
// holds its handle, and only the owner of that slot looks at it.
type arena struct {
	table  *table
	budget *budget
	slabs  atomic.Pointer[[]slab]
	bytes  atomic.Int64

	mu   sync.Mutex
	free [maxClass + 1][]handle // under mu
}

// slab is a row of records of one class.
type slab struct {
	class uint8
	words []uint64
}

// handle names a record: slab number and index in it, plus one; 0 is none.
type handle uint64

const (
	minClass  = 2  // 4 words
	maxClass  = 15 // 32768 words: a log of 2·MaxLogEvents entries
	slabWords = 512
	indexBits = 8 // at most slabWords>>minClass records in a slab
)

func (a *arena) init(t *table, b *budget) {
	a.table, a.budget = t, b
	a.slabs.Store(new([]slab))
}

func classOf(words int) int { return max(minClass, bits.Len(uint(words-1))) }

// record returns the words of h.
func (a *arena) record(h handle) []uint64 {
	n := uint64(h - 1)
	s := (*a.slabs.Load())[n>>indexBits]
	at := n & (1<<indexBits - 1) << s.class
	return s.words[at : at+1<<s.class : at+1<<s.class]
}

// alloc returns a zeroed record of at least words, or 0 at the memory bound.
func (a *arena) alloc(words int) handle {
	class := classOf(words)
	if class > maxClass {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.free[class]) == 0 && !a.growLocked(class) {
		// At the bound a larger one will do.
		for class < maxClass && len(a.free[class]) == 0 {
			class++
		}
		if len(a.free[class]) == 0 {
			return 0
		}
	}
	free := a.free[class]
	h := free[len(free)-1]
	a.free[class] = free[:len(free)-1]
	clear(a.record(h))
	return h
}

func (a *arena) growLocked(class int) bool {
	words := max(slabWords, 1<<class)
	if !a.budget.spend(a.table, int64(8*words), len(*a.slabs.Load()) == 0) {
		return false
	}
	a.bytes.Add(int64(8 * words))
	old := *a.slabs.Load()
	n := len(old)
	all := append(old, slab{uint8(class), make([]uint64, words)}) // readers see only their own length
	a.slabs.Store(&all)
	for i := words>>class - 1; i >= 0; i-- {
		a.free[class] = append(a.free[class], handle(n<<indexBits|i)+1)
	}
	return true
}

// release gives a record back.
func (a *arena) release(h handle) {
	if h == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	class := (*a.slabs.Load())[uint64(h-1)>>indexBits].class
	a.free[class] = append(a.free[class], h)
}

// spare reports whether there is a record to be had for a new key.
func (a *arena) spare() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, free := range a.free {
		if len(free) > 0 {
			return true
		}
	}
	return false
}
