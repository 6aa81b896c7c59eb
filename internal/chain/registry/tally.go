package registry

import (
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// tally is how many there are believed to be. It is a value: step takes it from one
// beat to the next, and reads no clock.
type tally struct {
	size int

	// Whether the roll has listed this instance at every beat, and since when.
	intact bool
	from   time.Duration

	// How many the roll has counted at most since it says that there are fewer.
	fewer bool
	since time.Duration
	most  int
}

// step is the tally after a beat that was answered with r at now, or failed, or both. More
// are believed at once: shares that are too small admit too little for a moment, shares that
// are too large admit too much. Fewer are believed at once by a roll that has been whole for
// a while: nobody who is still there can be missing in it.
func (t tally) step(r chain.Roster, err error, now, ttl time.Duration) tally {
	switch listed := err == nil && r.Listed; {
	case !listed:
		t.intact = false
	case !t.intact:
		t.intact, t.from = true, now
	}
	switch live := r.Live; {
	case err != nil && live < 1: // else a part of the roll has answered
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
