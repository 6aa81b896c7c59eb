package gateway

import (
	"sync"
	"time"
)

// deadline is the deadline of one direction of a connection: the earlier of what the
// layers above set, which net/http clears whenever it likes, and of what we hold the
// client to, which it cannot.
type deadline struct {
	set func(time.Time) error // of the connection itself

	mu    sync.Mutex
	above time.Time // under mu: what net/http or TLS set; zero means none
	own   time.Time // under mu: what we hold the client to; zero means nothing
	inner time.Time // under mu: what the connection has
}

// setAbove takes a deadline from the layers above.
func (d *deadline) setAbove(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.above = t
	return d.applyLocked()
}

// setOwn holds the client to t; zero lets it go.
func (d *deadline) setOwn(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.own = t
	_ = d.applyLocked() // a closed connection tells whoever uses it
}

func (d *deadline) applyLocked() error {
	t := earlier(d.above, d.own)
	if t.Equal(d.inner) {
		return nil
	}
	d.inner = t
	return d.set(t)
}

// arm holds the client to latest. Setting a deadline costs as much as a small write, so
// one that is set already and not much too early stays: whoever it wakes arms again.
func (d *deadline) arm(now, latest time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch left := d.own.Sub(now); {
	case latest.IsZero() && d.own.IsZero():
		return
	case !latest.IsZero() && left > 0 && !d.own.After(latest) && left > latest.Sub(now)/2:
		return
	}
	d.own = latest
	_ = d.applyLocked()
}

// passed reports whether the time that the layers above allow is over.
func (d *deadline) passed(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.above.IsZero() && !now.Before(d.above)
}

// earlier returns the earlier of two deadlines, of which zero is the latest.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
