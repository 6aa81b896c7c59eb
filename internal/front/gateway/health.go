package gateway

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// health is what is known of an upstream. After some failures in a row it is left
// alone if there is another, then one request may try it: if that succeeds all may, if
// not it is ejected for longer. The zero value with after set is in order.
type health struct {
	after   int           // so many failures in a row
	recheck time.Duration // how often it is asked, if it is

	trouble atomic.Bool  // look closer; false: in order
	success atomic.Int64 // when it last answered, since epoch

	mu       sync.Mutex
	failures int       // in a row
	left     int       // how many times in a row it was ejected
	until    time.Time // is ejected; zero: it is not
	trying   bool      // one request tries it, the others wait for what it finds
	unfit    int       // answers to the question in a row that were none, or bad
	down     bool      // by that question
}

// How long an upstream is ejected at first, and at most.
const (
	firstPause = time.Second
	maxPause   = 10 * time.Second
)

// usable reports whether a request could be sent there.
func (h *health) usable(now time.Time) bool {
	if !h.trouble.Load() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.down && !now.Before(h.until)
}

// claim reports whether a request may be sent there. Where one has to try it,
// only the first may.
func (h *health) claim(now time.Time) bool {
	if !h.trouble.Load() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.down || now.Before(h.until):
		return false
	case !h.until.IsZero():
		h.trying, h.until = true, now.Add(firstPause) // if nothing is heard of it, another may try
	}
	return true
}

// sound reports whether nothing speaks against it: it is neither ejected, nor being
// tried, nor down.
func (h *health) sound() bool {
	if !h.trouble.Load() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.down && h.until.IsZero()
}

// isDown reports whether it was asked, and is out of order.
func (h *health) isDown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.down
}

// answeredSince reports whether it has answered anybody since then.
func (h *health) answeredSince(start time.Time) bool {
	return h.success.Load() > int64(start.Sub(epoch))
}

// succeeded tells that the upstream has answered. It reports whether it is back.
func (h *health) succeeded(now time.Time) bool {
	h.success.Store(int64(now.Sub(epoch)))
	if !h.trouble.Load() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	back := !h.until.IsZero() && !h.down
	h.clearLocked()
	return back
}

func (h *health) clearLocked() {
	h.failures, h.left, h.until, h.trying = 0, 0, time.Time{}, false
	h.trouble.Store(h.down || h.unfit > 0)
}

// failed tells that it could not be connected to, or did not answer in time. It
// reports for how long it is ejected from now on; 0 means no change, and less that it is
// in use again. The last upstream there is never ejected: a request that may fail is
// better than one that must.
func (h *health) failed(now time.Time, last bool) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble.Store(true)
	h.failures++
	if last {
		again := !h.until.IsZero()
		h.until, h.trying = time.Time{}, false
		if again {
			return -1
		}
		return 0
	}
	if h.failures < h.after || now.Before(h.until) && !h.trying {
		return 0
	}
	pause := firstPause << min(h.left, 8)
	pause = jitter(min(pause, maxPause))
	h.left++
	h.trying, h.until = false, now.Add(pause)
	return pause
}

// jitter spreads what would otherwise come at the same moment: ±25 %.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1)
}

// asked tells what came of the question. It reports whether the upstream came
// back or went away by it.
func (h *health) asked(fine bool) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if fine {
		h.success.Store(int64(time.Since(epoch)))
		changed = h.down || !h.until.IsZero()
		h.unfit, h.down = 0, false
		h.clearLocked()
		return changed
	}
	h.trouble.Store(true)
	h.unfit++
	changed = !h.down && h.unfit >= h.after
	h.down = h.down || changed
	return changed
}

// back is when a request may be sent there again.
func (h *health) back(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down {
		return h.recheck
	}
	return max(0, h.until.Sub(now))
}
