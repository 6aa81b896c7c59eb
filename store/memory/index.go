package memory

import (
	"sync/atomic"
	"unsafe"

	"tidegate.dev/tidegate"
)

// limitIndex finds compiled limits by the address of their limit. Readers take no lock. It is
// changed under Store.mu, and its array is replaced when half of that is used, gaps
// included.
type limitIndex struct {
	newest  atomic.Pointer[compiledLimit] // the limit added last, or nil: many programs have only one
	current atomic.Pointer[limitArray]
	held    int // under Store.mu: limits
	used    int // under Store.mu: limits and gaps
}

// limitArray is open-addressed; its length is a power of two.
type limitArray struct {
	shift   uint
	entries []atomic.Pointer[compiledLimit]
}

// forgotten marks the gap that a removed limit leaves: a search continues after it.
var forgotten = &compiledLimit{limit: new(tidegate.Limit)}

const fewestEntries = 256

func newLimitArray(limits int) *limitArray {
	n, shift := fewestEntries, uint(64-8)
	for n < 4*limits {
		n, shift = 2*n, shift-1
	}
	return &limitArray{shift: shift, entries: make([]atomic.Pointer[compiledLimit], n)}
}

func (x *limitIndex) find(l *tidegate.Limit) *compiledLimit {
	if lim := x.newest.Load(); lim != nil && lim.limit == l {
		return lim
	}
	return x.search(l)
}

func (x *limitIndex) search(l *tidegate.Limit) *compiledLimit {
	a := x.current.Load()
	last := uint64(len(a.entries) - 1)
	for i := a.home(l); ; i++ {
		if lim := a.entries[i&last].Load(); lim == nil || lim.limit == l {
			return lim
		}
	}
}

// home returns where the search for l begins.
func (a *limitArray) home(l *tidegate.Limit) uint64 {
	return uint64(uintptr(unsafe.Pointer(l))) * 0x9e3779b97f4a7c15 >> a.shift
}

// add holds lim, which is not held yet.
func (x *limitIndex) add(lim *compiledLimit) {
	a := x.current.Load()
	if 2*x.used >= len(a.entries) {
		a = x.renew(a)
	}
	a.put(lim)
	x.newest.Store(lim)
	x.held++
	x.used++
}

// renew replaces the array by one without gaps.
func (x *limitIndex) renew(old *limitArray) *limitArray {
	a := newLimitArray(x.held)
	for i := range old.entries {
		if lim := old.entries[i].Load(); lim != nil && lim != forgotten {
			a.put(lim)
		}
	}
	x.used = x.held
	x.current.Store(a)
	return a
}

func (a *limitArray) put(lim *compiledLimit) {
	last := uint64(len(a.entries) - 1)
	i := a.home(lim.limit)
	for a.entries[i&last].Load() != nil {
		i++
	}
	a.entries[i&last].Store(lim)
}

// remove forgets l.
func (x *limitIndex) remove(l *tidegate.Limit) {
	if lim := x.newest.Load(); lim != nil && lim.limit == l {
		x.newest.Store(nil)
	}
	a := x.current.Load()
	last := uint64(len(a.entries) - 1)
	for i := a.home(l); ; i++ {
		switch lim := a.entries[i&last].Load(); {
		case lim == nil:
			return
		case lim.limit == l:
			a.entries[i&last].Store(forgotten)
			x.held--
			return
		}
	}
}
