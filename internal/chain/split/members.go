package split

import (
	"sync"
	"sync/atomic"

	"tidegate.dev/tidegate/internal/chain/share"
)

// members is how many instances share the limits, and the rank of this one among them.
type members struct{ n, rank int64 }

// change is a change of the members, at an instant in ticks of the steady clock.
type change struct {
	at int64
	members
	known  bool  // the rank is known
	before int64 // how many there were before; 0 means that this is the first known change
}

// history has the latest changes of the members: what was charged before a change was scaled by
// the number of that time, and the remainder of a window was assigned when the window began.
type history struct {
	last atomic.Pointer[change]

	// joined is when this instance joined a fleet that existed before it; 0 means it did not.
	joined atomic.Int64
	fresh  atomic.Bool // this instance may have joined a short time ago
	heir   atomic.Bool // it goes on for a predecessor, and joins nobody

	mu  sync.Mutex
	all []change // under mu: the oldest first
}

// maxChanges is how many are kept. Older ones would matter only to windows of days.
const maxChanges = 256

// note records how many there are now. If rank is negative, which means that it is not known,
// offset is used instead: a number that differs between instances, so that on average all get
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
	if last != nil && last.n == 1 && !last.known && m.n > 1 && known && !h.heir.Load() { // it did not know of the others
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

// at returns the members at an instant; the first known ones if it is before them.
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

// handedHistory is a history as it is handed over, by the wall clock: the only one that a successor shares.
type handedHistory struct {
	Changes []handedChange
	Joined  int64         `json:",omitempty"`
	Resets  []handedReset `json:",omitempty"`
}

type handedChange struct {
	At, Members, Rank, Before int64
	Known                     bool
}

// handedReset is a counter that was reset; its key need not be text.
type handedReset struct {
	Identity string
	Key      []byte
	At       int64
}

// handed returns h as it is handed over.
func (h *history) handed(now moment) (to handedHistory) {
	if joined := h.joined.Load(); joined != 0 {
		to.Joined = joined + now.wall - now.steady
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.all {
		c := &h.all[i]
		to.Changes = append(to.Changes, handedChange{c.at + now.wall - now.steady, c.n, c.rank, c.before, c.known})
	}
	return to
}

// takeOver makes h the history of a predecessor.
func (h *history) takeOver(from handedHistory, now moment) {
	var all []change
	for _, c := range from.Changes[max(0, len(from.Changes)-maxChanges):] {
		if c.Members < 1 || c.Members > share.MaxInstances || c.Rank < 0 || c.Rank >= c.Members || c.Before < 0 || c.Before > share.MaxInstances {
			continue // it was not written by HandOver
		}
		all = append(all, change{at: c.At - now.wall + now.steady, members: members{c.Members, c.Rank}, known: c.Known, before: c.Before})
	}
	if len(all) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = all
	last := all[len(all)-1] // a copy: note moves the elements of h.all
	h.last.Store(&last)
	if from.Joined != 0 {
		h.joined.Store(from.Joined - now.wall + now.steady)
		h.fresh.Store(true) // until seed finds that it was long ago
	}
}
