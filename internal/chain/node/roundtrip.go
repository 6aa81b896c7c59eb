package node

import "time"

// roundTrip estimates how long calls take, smoothed as in TCP: the mean, and the mean
// deviation from it. It is a value.
type roundTrip struct {
	mean, deviation time.Duration
	known           bool

	// The shortest call of this span of time, and of the one before it.
	least, before time.Duration
	span          time.Duration // when this span began
	since         time.Duration // when the first of an unbroken sequence of spans began
}

// leastSpan is the length of a span: the shortest call is remembered for one to two of them.
const leastSpan = time.Second

// unknownTrip returns the estimate before the first call: most of the deadline.
func unknownTrip(deadline time.Duration) roundTrip { return roundTrip{mean: deadline * 7 / 10} }

// add returns the estimate after a call that took so long.
func (r roundTrip) add(took, now time.Duration) roundTrip {
	switch {
	case !r.known || now-r.span >= 2*leastSpan:
		r.least, r.before, r.span, r.since = took, took, now, now
	case now-r.span >= leastSpan:
		r.least, r.before, r.span = took, r.least, now
	}
	r.least = min(r.least, took)
	if !r.known {
		r.mean, r.deviation, r.known = took, took/2, true
		return r
	}
	off := took - r.mean
	r.mean += off / 8
	if off < 0 {
		off = -off
	}
	more := off - r.deviation
	if more < 0 { // follow improvements more slowly than deteriorations
		more /= 8
	}
	r.deviation += more / 4
	return r
}

// distance returns the shortest recent call, which is about the round trip without any queue. It
// is 0 while that is not known.
func (r roundTrip) distance(now time.Duration) time.Duration {
	if now-r.since < leastSpan {
		return 0
	}
	return min(r.least, r.before)
}

// pausing returns how long a round trip takes if the server does not pause, as far as is known;
// at most the deadline. It returns 0 if even the shortest call took two deadlines: no pause does
// that.
func (r roundTrip) pausing(deadline time.Duration) time.Duration {
	least := min(r.least, r.before)
	switch {
	case !r.known:
		return deadline
	case least >= 2*deadline:
		return 0
	}
	return min(least, deadline)
}

// reserve returns how long before a deadline a call has to leave to be back in time: a tenth more
// than calls take, and a millisecond for this process.
func (r roundTrip) reserve() time.Duration {
	return (r.mean+3*r.deviation)*11/10 + time.Millisecond
}
