package registry

import "time"

// tally is how many there are believed to be. It is a value: step takes it from one
// beat to the next, and reads no clock.
type tally struct {
	size int

	// How many the roll has counted at most since it says that there are fewer.
	fewer bool
	since time.Duration
	most  int
}

// step is the tally after a beat that counted live at now, or failed, or both. More are
// believed at once: shares that are too small admit too little for a moment, shares
// that are too large admit too much.
func (t tally) step(live int, err error, now, ttl time.Duration) tally {
	switch {
	case err != nil && live < 1: // else a part of the roll has answered
		t.fewer = false
	case live >= t.size:
		t = tally{size: live}
	case !t.fewer:
		t.fewer, t.since, t.most = true, now, live
	default:
		if t.most = max(t.most, live); now-t.since >= ttl {
			t = tally{size: max(t.most, 1)}
		}
	}
	return t
}
