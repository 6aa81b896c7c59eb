package node

import (
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// heldFor is how long a counter that was decided locally during an outage stays local from the
// instant at which the circuit becomes Recovering: other nodes may still have a backlog for it. They
// notice within maxPause that the backend is back, and post at once.
const heldFor = 600 * time.Millisecond

// maxHeld bounds how many held counters are listed. If there are more, all counters are held.
const maxHeld = 1 << 17

// held is the set of counters that were decided locally while the circuit was open.
type held struct {
	until atomic.Int64 // when the hold ends; 0 means nothing is held now
	some  atomic.Bool  // there are names

	mu    sync.Mutex
	names map[uint64]struct{} // under mu: by seen.name
	all   bool                // under mu
}

// note adds the counter of a check.
func (h *held) note(name uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.names[name]; ok || h.all {
		return
	}
	if len(h.names) >= maxHeld {
		h.names, h.all = nil, true
		return
	}
	if h.names == nil {
		h.names = make(map[uint64]struct{})
	}
	h.names[name] = struct{}{}
	h.some.Store(true)
}

// begin holds the counters that were noted, if any, from now on for heldFor.
func (h *held) begin(now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all || len(h.names) > 0 {
		h.until.Store(int64(now + heldFor))
	}
}

// over forgets all counters if the hold has ended. Otherwise it returns how long it lasts; 0 if
// nothing is held.
func (h *held) over(now time.Duration) (wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := time.Duration(h.until.Load())
	if until == 0 || now < until {
		return max(until-now, 0)
	}
	h.names, h.all = nil, false
	h.until.Store(0)
	h.some.Store(false)
	return 0
}

// holds reports whether a counter is held.
func (h *held) holds(name uint64, now time.Duration) bool {
	if until := h.until.Load(); until == 0 || int64(now) >= until {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.names[name]
	return ok || h.all
}

// drop forgets a counter, and reports whether it was known.
func (h *held) drop(name uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.names[name]
	delete(h.names, name)
	return ok
}

// holdLocal notes that the counters of checks are decided locally, if the reason is an outage of
// their server.
func (s *server) holdLocal(checks []tidegate.Check) {
	n := s.node
	if s.share.Load() > 0 {
		return
	}
	for i := range checks {
		if c := &checks[i]; c.Limit.Algorithm != tidegate.Concurrency && n.mode(c.Limit) == tidegate.FailLocal {
			s.held.note(n.seen.name(c.Limit, c.Key))
		}
	}
}

// holds reports whether the counter of a check is held. A counter that was noted while it lived
// on another server is held from now on: other nodes may have a backlog for it.
func (s *server) holds(c *tidegate.Check, now time.Duration) bool {
	n := s.node
	name := n.seen.name(c.Limit, c.Key)
	if s.held.holds(name, now) {
		return true
	}
	for _, other := range n.all() {
		if other != s && other.held.some.Load() && other.held.drop(name) {
			n.mu.Lock()
			defer n.mu.Unlock()
			s.held.note(name)
			s.held.begin(now)
			s.repayLocked()
			return true
		}
	}
	return false
}
