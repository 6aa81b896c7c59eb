package node

import "time"

// coalescer decides when calls for one vector of checks leave. A request that comes alone
// leaves at once. Requests that come while a call is in flight wait for the next call, which
// leaves when a reply comes, or when the first of them would otherwise miss its deadline. So
// several calls for one vector may be in flight.
//
// It is a value: step takes it from one to the next, and reads no clock.
type coalescer struct {
	out     int           // calls in flight that are not overdue
	queued  bool          // the next call is ready and has not been sent yet
	waiting int           // requests that the next call is for
	leave   time.Duration // when the next call has to leave, if waiting > 0
}

// coalesceEvent is what happens to a coalescer.
type coalesceEvent struct {
	kind  coalesceKind
	now   time.Duration
	leave time.Duration // arrived: when a call has to leave to be back in time
}

type coalesceKind uint8

const (
	arrived coalesceKind = iota // a request has come
	left                        // a request that waited for the next call has left
	sent                        // the next call was sent
	replied                     // a call in flight has its reply, or is overdue
	due                         // time has passed
	served                      // all requests that waited for the next call were answered without it
)

// step returns the coalescer after e, and whether the next call becomes ready.
func (c coalescer) step(e coalesceEvent) (next coalescer, ready bool) {
	switch e.kind {
	case arrived:
		if c.waiting++; c.waiting == 1 || e.leave < c.leave {
			c.leave = e.leave
		}
	case left:
		c.waiting--
	case served:
		c.queued, c.waiting = false, 0
	case sent:
		c.out, c.queued, c.waiting = c.out+1, false, 0
	case replied:
		c.out--
	}
	freed := e.kind == replied || c.out == 0
	if c.waiting > 0 && !c.queued && (freed || e.now >= c.leave) {
		c.queued = true
		return c, true
	}
	return c, false
}
