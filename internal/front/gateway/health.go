package gateway

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// health is the state of an upstream. After some failures in a row it is ejected, if there
// is another one. Then one request tries it: if that succeeds it gets all requests again, if
// not it is ejected for longer. The zero value with threshold set is healthy.
type health struct {
	threshold  int           // failures in a row until it is ejected
	probeEvery time.Duration // interval of probes; 0 if there are none

	degraded    atomic.Bool  // false means healthy, without looking at the rest
	lastSuccess atomic.Int64 // when it last answered, since epoch

	mu           sync.Mutex
	failures     int       // in a row
	ejections    int       // in a row
	ejectedUntil time.Time // zero means it is not ejected
	onTrial      bool      // one request tries it after an ejection
	failedProbes int       // in a row
	down         bool      // by its probes
}

// epoch is the origin of times that are kept in an atomic word, on the monotonic clock.
var epoch = time.Now()

// How long an upstream is ejected: at first, and at most.
const (
	firstEjection = time.Second
	maxEjection   = 10 * time.Second
)

// usable reports whether a request could be sent to the upstream.
func (h *health) usable(now time.Time) bool {
	if !h.degraded.Load() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.down && !now.Before(h.ejectedUntil)
}

// claim reports whether a request may be sent to the upstream. After an ejection only one
// may, until its result is known.
func (h *health) claim(now time.Time) bool {
	if !h.degraded.Load() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.down || now.Before(h.ejectedUntil):
		return false
	case !h.ejectedUntil.IsZero():
		h.onTrial, h.ejectedUntil = true, now.Add(firstEjection) // another request may try it if this one has no result by then
	}
	return true
}

// healthy reports whether the upstream is neither ejected, nor on trial, nor down.
func (h *health) healthy() bool {
	if !h.degraded.Load() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.down && h.ejectedUntil.IsZero()
}

// isDown reports whether the upstream fails its probes.
func (h *health) isDown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.down
}

// answeredSince reports whether the upstream has answered any request since start.
func (h *health) answeredSince(start time.Time) bool {
	return h.lastSuccess.Load() > int64(start.Sub(epoch))
}

// succeeded records an answer. It reports whether that ends an ejection.
func (h *health) succeeded(now time.Time) bool {
	h.lastSuccess.Store(int64(now.Sub(epoch)))
	if !h.degraded.Load() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	back := !h.ejectedUntil.IsZero() && !h.down
	h.clearLocked()
	return back
}

// clearLocked ends an ejection and forgets failures. It keeps what probes found.
func (h *health) clearLocked() {
	h.failures, h.ejections, h.ejectedUntil, h.onTrial = 0, 0, time.Time{}, false
	h.degraded.Store(h.down || h.failedProbes > 0)
}

// failed records that the upstream could not be connected to, or did not answer in time.
// It returns for how long the upstream is ejected from now on; 0 means no change, and a negative
// time that an ejection is over. The last healthy upstream is never ejected: a request that may
// fail is better than one that must.
func (h *health) failed(now time.Time, last bool) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.degraded.Store(true)
	h.failures++
	if last {
		again := !h.ejectedUntil.IsZero()
		h.ejectedUntil, h.onTrial = time.Time{}, false
		if again {
			return -1
		}
		return 0
	}
	if h.failures < h.threshold || now.Before(h.ejectedUntil) && !h.onTrial {
		return 0
	}
	pause := firstEjection << min(h.ejections, 8)
	pause = jitter(min(pause, maxEjection))
	h.ejections++
	h.onTrial, h.ejectedUntil = false, now.Add(pause)
	return pause
}

// jitter varies d by ±25 %, to spread what would otherwise happen at the same moment.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1)
}

// probed records the result of a probe. It reports whether the upstream came up or went
// down by it.
func (h *health) probed(fine bool) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if fine {
		h.lastSuccess.Store(int64(time.Since(epoch)))
		changed = h.down || !h.ejectedUntil.IsZero()
		h.failedProbes, h.down = 0, false
		h.clearLocked()
		return changed
	}
	h.degraded.Store(true)
	h.failedProbes++
	changed = !h.down && h.failedProbes >= h.threshold
	h.down = h.down || changed
	return changed
}

// retryAfter returns how long until a request may be sent to the upstream again.
func (h *health) retryAfter(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down {
		return h.probeEvery
	}
	return max(0, h.ejectedUntil.Sub(now))
}
