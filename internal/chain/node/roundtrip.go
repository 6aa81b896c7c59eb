package node

import "time"

// roundTrip is how long calls take, smoothed as TCP does it: the mean, and how far
// calls are from it. It is a value.
type roundTrip struct {
	mean, deviation time.Duration
	known           bool
}

// unknownTrip is the estimate before the first call: most of the deadline.
func unknownTrip(deadline time.Duration) roundTrip { return roundTrip{mean: deadline * 7 / 10} }

// add returns the estimate after a call that took so long.
func (r roundTrip) add(took time.Duration) roundTrip {
	if !r.known {
		return roundTrip{mean: took, deviation: took / 2, known: true}
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

// reserve is how long before a deadline a call has to leave to be back by then: a tenth
// more than calls take, and a millisecond for this machine.
func (r roundTrip) reserve() time.Duration {
	return (r.mean+3*r.deviation)*11/10 + time.Millisecond
}
