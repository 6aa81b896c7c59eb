package node

import "time"

// roundTrip is how long calls take, smoothed as TCP does it: the mean, and how far
// calls are from it. It is a value.
type roundTrip struct {
	mean, deviation time.Duration
	known           bool

	// The shortest of this span of time and of the one before it.
	least, before time.Duration
	span          time.Duration // when it began
	since         time.Duration // when the first of spans without a gap began
}

// leastSpan is for how long the shortest call is remembered, and up to twice that.
const leastSpan = time.Second

// unknownTrip is the estimate before the first call: most of the deadline.
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
	if more < 0 { // calm is believed more slowly than trouble
		more /= 8
	}
	r.deviation += more / 4
	return r
}

// distance is how long every call takes, for a while: not just in a burst. It is 0 as long
// as that is not known.
func (r roundTrip) distance(now time.Duration) time.Duration {
	if now-r.since < leastSpan {
		return 0
	}
	return min(r.least, r.before)
}

// pausing is the most that a round trip takes without a pause, as far as is known. The deadline is the most that
// it can be, and what took two of them was no pause of up to one.
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

// reserve is how long before a deadline a call has to leave to be back by then: a tenth
// more than calls take, and a millisecond for this machine.
func (r roundTrip) reserve() time.Duration {
	return (r.mean+3*r.deviation)*11/10 + time.Millisecond
}
