package node

import (
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// heldFor is how long after the circuit closed again a counter that was asked locally
// during the outage stays local: until then other nodes may still have debts of it that
// the backend does not know. They find out within maxPause, and post at once.
const heldFor = 600 * time.Millisecond

// maxHeld bounds how many counters are known to be held. If there are more, all are.
const maxHeld = 1 << 17

// held are the counters that were asked locally while the circuit was open.
type held struct {
	until atomic.Int64 // 0 while there is nothing to look for

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
}

// begin has counters held from now on, for heldFor. There may be none.
func (h *held) begin(now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all || len(h.names) > 0 {
		h.until.Store(int64(now + heldFor))
	}
}

// over forgets all, if it is time.
func (h *held) over(now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := h.until.Load(); until > 0 && int64(now) >= until {
		h.names, h.all = nil, false
		h.until.Store(0)
	}
}

// holds reports whether one of the counters is held.
func (n *Node) holds(checks []tidegate.Check, now time.Duration) bool {
	h := &n.held
	until := h.until.Load()
	if until == 0 {
		return false
	}
	if int64(now) >= until {
		h.over(now)
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all {
		return true
	}
	for i := range checks {
		if _, ok := h.names[n.seen.name(checks[i].Limit, checks[i].Key)]; ok {
			return true
		}
	}
	return false
}

// holdLocal notes that the counters of checks are asked locally during an outage.
func (n *Node) holdLocal(checks []tidegate.Check) {
	for i := range checks {
		if c := &checks[i]; c.Limit.Algorithm != tidegate.Concurrency && n.mode(c.Limit) == tidegate.FailLocal {
			n.held.note(n.seen.name(c.Limit, c.Key))
		}
	}
}
