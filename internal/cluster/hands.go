package cluster

import (
	"sync"
	"time"
)

// hands are goroutines that do one thing after the other. A new goroutine for each would
// have to grow its stack every time, which costs more than the rest of a call.
type hands struct {
	mu     sync.Mutex
	idle   []*hand // under mu; who became idle last is the first to go on
	spare  int     // under mu: so many were idle all the time since the last sweep
	sweep  *time.Timer
	armed  bool // under mu: the sweep is to come
	closed bool // under mu
}

// hand is one of them; nil to do ends it.
type hand struct{ todo chan func() }

// sweepEvery is how often those who were not needed meanwhile are let go.
const sweepEvery = time.Second

// run does f on a goroutine of its own.
func (h *hands) run(f func()) {
	h.mu.Lock()
	last := len(h.idle) - 1
	if last < 0 {
		h.mu.Unlock()
		one := &hand{make(chan func(), 1)}
		go one.work(h, f)
		return
	}
	one := h.idle[last]
	h.idle[last] = nil
	h.idle = h.idle[:last]
	h.spare = min(h.spare, last)
	h.mu.Unlock()
	one.todo <- f
}

func (one *hand) work(h *hands, f func()) {
	for f != nil {
		f()
		if !h.rest(one) {
			return
		}
		f = <-one.todo
	}
}

// rest notes that one is idle. It reports false when there is nothing more to come.
func (h *hands) rest(one *hand) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.idle = append(h.idle, one)
	if !h.armed {
		h.armed = true
		if h.sweep == nil {
			h.sweep = time.AfterFunc(sweepEvery, h.letGo)
		} else {
			h.sweep.Reset(sweepEvery)
		}
	}
	return true
}

// letGo ends those who were idle all the time since it was last called.
func (h *hands) letGo() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.endLocked(h.spare)
	h.spare = len(h.idle)
	if h.armed = h.spare > 0; h.armed {
		h.sweep.Reset(sweepEvery)
	}
}

func (h *hands) endLocked(n int) {
	for _, one := range h.idle[:n] {
		one.todo <- nil
	}
	kept := copy(h.idle, h.idle[n:])
	clear(h.idle[kept:])
	h.idle = h.idle[:kept]
}

func (h *hands) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.endLocked(len(h.idle))
	if h.sweep != nil {
		h.sweep.Stop()
	}
}
