package listen

import (
	"sync"
	"time"
)

// deadline is the deadline of one direction of a connection: the earlier of what the layers
// above request, which net/http clears at will, and of what we enforce, which it cannot.
type deadline struct {
	set func(time.Time) error // of the connection itself

	mu        sync.Mutex
	requested time.Time // under mu: by net/http or TLS; zero means none
	enforced  time.Time // under mu: by us; zero means none
	current   time.Time // under mu: of the connection
}

// request takes a deadline from the layers above.
func (d *deadline) request(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requested = t
	return d.applyLocked()
}

// enforce holds the client to t; zero means no deadline.
func (d *deadline) enforce(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.enforced = t
	_ = d.applyLocked() // a closed connection fails the next call
}

func (d *deadline) applyLocked() error {
	t := earlier(d.requested, d.enforced)
	if t.Equal(d.current) {
		return nil
	}
	d.current = t
	return d.set(t)
}

// arm enforces latest. Setting a deadline costs as much as a small write, so one that is
// not much too early stays: the call that it wakes up arms again.
func (d *deadline) arm(now, latest time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch left := d.enforced.Sub(now); {
	case latest.IsZero() && d.enforced.IsZero():
		return
	case !latest.IsZero() && left > 0 && !d.enforced.After(latest) && left > latest.Sub(now)/2:
		return
	}
	d.enforced = latest
	_ = d.applyLocked()
}

// passed reports whether the deadline of the layers above has passed.
func (d *deadline) passed(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.requested.IsZero() && !now.Before(d.requested)
}

// earlier returns the earlier of two deadlines; zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
