package client

import (
	"math/rand/v2"
	"sync"
	"time"
)

// host is what is known of one server, or of what the Key function tells apart.
type host struct {
	key string

	mu       sync.Mutex
	used     time.Time // when a request last asked for it
	stopped  time.Time // no request is sent before
	budget   float64   // retries that may be made
	pacer    pacer
	throttle throttle
}

// maxBudget is how many retries are saved up, and what a host starts with.
const maxBudget = 10

// stop makes all requests wait until that time.
func (h *host) stop(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until.After(h.stopped) {
		h.stopped = until
	}
}

// stoppedFor returns how long all requests have to wait.
func (h *host) stoppedFor(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stopped.Sub(now)
}

// ask reports whether a new request should be sent, and adds share to the budget for retries.
func (h *host) ask(now time.Time, k, share float64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.budget = min(h.budget+share, maxBudget)
	return h.throttle.ask(now, k, rand.Float64()) || k <= 0
}

// retry reports whether the budget has a retry left, and takes it.
func (h *host) retry() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.budget < 1 {
		return false
	}
	h.budget--
	return true
}

// unreachable records that a request got no response.
func (h *host) unreachable(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.throttle.refuse(now)
}

// learn records a response.
func (h *host) learn(accepted bool, all []quota, now time.Time, share float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if accepted {
		h.throttle.accept(now)
	} else {
		h.throttle.refuse(now)
	}
	if share > 0 {
		h.pacer.learn(all, now, share)
	}
}

// turn returns how long the next request has to wait for its turn.
func (h *host) turn(now time.Time, longest time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pacer.turn(now, longest)
}

// holdsUntil returns until when a stop or the pacer holds requests back, and when the host was last
// used.
func (h *host) holdsUntil() (at, used time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at = h.stopped
	if h.pacer.interval > 0 && h.pacer.until.After(at) {
		at = h.pacer.until
	}
	return at, h.used
}

// hosts are the known hosts; find limits their number.
type hosts struct {
	mu    sync.Mutex
	byKey map[string]*host
}

// find returns the host of a key, and creates it if there is none. If there are already most, it
// forgets one: the one that stops holding requests back first and, of several, the least recently
// used.
func (t *hosts) find(key string, most int, now time.Time) *host {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.byKey[key]
	if h == nil {
		if t.byKey == nil {
			t.byKey = make(map[string]*host)
		}
		if len(t.byKey) >= most {
			delete(t.byKey, t.leastLocked(now))
		}
		h = &host{key: key, budget: maxBudget}
		t.byKey[key] = h
	}
	h.mu.Lock()
	h.used = now
	h.mu.Unlock()
	return h
}

// leastLocked returns the key of the host to forget; see find.
func (t *hosts) leastLocked(now time.Time) (least string) {
	var end, last time.Time
	first := true
	for key, h := range t.byKey {
		until, used := h.holdsUntil()
		if until.Before(now) {
			until = time.Time{}
		}
		if first || until.Before(end) || until.Equal(end) && used.Before(last) {
			least, end, last, first = key, until, used, false
		}
	}
	return least
}
