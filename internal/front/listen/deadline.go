package listen

import (
	"sync"
	"time"
)

// deadline is the deadline of one direction of a connection: the earlier of what the layers
// above request, which net/http clears at will, and of what we enforce, which it cannot.
//
// Setting one on the connection costs as much as a small write, and net/http requests six for
// every HTTP/1 request, most of which nobody ever waits for. So they are noted, and one is set
// when a call begins to wait, or while it does. A deadline that is too early stays: the call
// that it wakes up looks again.
type deadline struct {
	set func(time.Time) error // of the connection itself

	mu        sync.Mutex
	requested time.Time // under mu: by net/http or TLS; zero means none
	enforced  time.Time // under mu: by us; zero means none
	current   time.Time // under mu: of the connection; may be too early
	calls     int       // under mu: that may be waiting
}

// request takes a deadline from the layers above.
func (d *deadline) request(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requested = t
	return d.hurryLocked()
}

// enforce holds the client to t; zero means no deadline.
func (d *deadline) enforce(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.enforced = t
	_ = d.hurryLocked() // a closed connection fails the next call
}

// hurryLocked sets the deadline of the connection if a call would otherwise wait beyond it.
func (d *deadline) hurryLocked() error {
	t := earlier(d.requested, d.enforced)
	if d.calls == 0 || t.IsZero() || !d.current.IsZero() && !t.Before(d.current) {
		return nil
	}
	d.current = t
	return d.set(t)
}

// begin is called before a call that may wait, with what is enforced from now on. It reports
// whether there is time for one; if so, end is called after it.
func (d *deadline) begin(now, enforced time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.enforced = enforced
	t := earlier(d.requested, d.enforced)
	if hasPassed(t, now) {
		_ = d.hurryLocked() // of other calls
		return false
	}
	d.calls++
	if hasPassed(d.current, now) { // nothing could wait
		d.current = t
		_ = d.set(t) // a closed connection fails the call
	}
	_ = d.hurryLocked()
	return true
}

// end is called after a call for which begin returned true.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls--
}

// hasPassed reports whether there is a deadline, and it has passed.
func hasPassed(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// earlier returns the earlier of two deadlines; zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
