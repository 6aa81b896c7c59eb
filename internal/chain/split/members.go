package split

import (
	"sync"
	"sync/atomic"

	"tidegate.dev/tidegate/internal/chain/share"
)

// members is how many instances share the limits, and the rank of this one among them.
type members struct{ n, rank int64 }

// change is since when there are so many, in ticks of the steady clock.
type change struct {
	at int64
	members
	known  bool  // the rank is
	before int64 // how many there were before; 0 means it is the first that is known
}

// history is the latest changes of the members. What was charged before a change was charged
// as it was then, and who has the rest of a window was settled when it began.
type history struct {
	last atomic.Pointer[change]

	// joined is when this instance joined others that were there before it; 0 means it did not.
	joined atomic.Int64
	fresh  atomic.Bool // it may have joined a short time ago

	mu  sync.Mutex
	all []change // under mu: the oldest first
}

// maxChanges is how many are kept. Of older ones, only windows of days know.
const maxChanges = 256

// note says how many there are now. A rank that is less than 0 is not known, and offset is
// used instead: a number that differs between the instances, so that on average all have
// their turn equally often.
func (h *history) note(n, rank int, offset uint64, now int64) members {
	m := members{n: int64(min(max(n, 1), share.MaxInstances)), rank: int64(rank)}
	known := rank >= 0 && m.rank < m.n
	if !known {
		m.rank = int64(offset % uint64(m.n))
	}
	if h.last.Load().is(m, known) {
		return m
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.last.Load()
	if last.is(m, known) {
		return m
	}
	if last != nil && last.n == 1 && !last.known && m.n > 1 && known { // it did not know of the others
		h.joined.Store(now)
		h.fresh.Store(true)
	}
	if len(h.all) == maxChanges {
		h.all = append(h.all[:0], h.all[1:]...)
	}
	c := change{at: now, members: m, known: known}
	if last != nil {
		c.before = last.n
	}
	h.all = append(h.all, c)
	h.last.Store(&c)
	return m
}

// at returns the members at an instant: those that were first known if it is before that.
func (h *history) at(t int64) members {
	if last := h.last.Load(); last.at <= t {
		return last.members
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.all) - 1; i > 0; i-- {
		if h.all[i].at <= t {
			return h.all[i].members
		}
	}
	return h.all[0].members
}

func (c *change) is(m members, known bool) bool {
	return c != nil && c.members == m && c.known == known
}
