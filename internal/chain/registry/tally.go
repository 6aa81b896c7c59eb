package registry

import (
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// tally is how many instances there are believed to be. It is a value: step returns the next
// one, and reads no clock.
type tally struct {
	size int

	// Whether the list has listed this instance at every beat, and since when.
	intact bool
	from   time.Duration

	// Whether the list says that there are fewer instances than size; if so, since when, and the
	// most that it has counted since then.
	fewer bool
	since time.Duration
	most  int
}

// step returns the tally after a heartbeat that was answered with r at now, or failed with err,
// or both. A higher number is adopted at once: shares that are too small admit too little for a
// moment, but shares that are too large admit too much. A lower number is adopted at once only
// if the list has been intact for a while, so that no live instance can be missing in it.
func (t tally) step(r chain.Roster, err error, now, ttl time.Duration) tally {
	switch listed := err == nil && r.Listed; {
	case !listed:
		t.intact = false
	case !t.intact:
		t.intact, t.from = true, now
	}
	switch live := r.Live; {
	case err != nil && live < 1: // else a part of the list has answered
		t.fewer = false
	case live >= t.size, t.intact && now-t.from >= ttl:
		t.size, t.fewer = max(live, 1), false
	case !t.fewer:
		t.fewer, t.since, t.most = true, now, live
	default:
		if t.most = max(t.most, live); now-t.since >= ttl {
			t.size, t.fewer = max(t.most, 1), false
		}
	}
	return t
}
