package node

import "time"

// State is how a Node is doing.
type State uint8

const (
	// OK: the circuit is closed, every request goes to the backend.
	OK State = iota
	// Degraded: the circuit is open; no request goes to the backend, only probes and, once these
	// are answered, the backlog.
	Degraded
	// Recovering: probes are answered, and traffic returns to the backend gradually.
	Recovering
	// Partial: some servers of the backend are OK and others are not.
	Partial
)

// String returns "ok", "degraded", "recovering" or "partial".
func (s State) String() string { return [...]string{"ok", "degraded", "recovering", "partial"}[s] }

// How the circuit opens and closes.
const (
	window     = time.Second           // failures are compared with successes over this long
	silence    = 20 * time.Millisecond // open early if nothing succeeded for this long
	firstPause = 50 * time.Millisecond // before the first probe; doubled after each one that fails
	maxPause   = 250 * time.Millisecond
	calm       = 10 * time.Second       // a backend that was well for this long is not flapping
	firstProof = 300 * time.Millisecond // probes must be answered for this long; doubled each time if the backend flaps
	maxProof   = time.Second
	proofEvery = 100 * time.Millisecond // between probes that are answered
	rampStep   = 100 * time.Millisecond // the share of keys doubles this often
	firstShare = 8                      // of the keys, in parts of whole
	whole      = 64
)

// circuit decides when the backend is no longer asked and when it is asked again. It is a
// value: step returns the next one, and reads no clock.
type circuit struct {
	failures int // how many failures open it
	state    State
	since    time.Duration // when it entered this state
	failed   int           // failures that opened it, and probes that failed since

	// Unless Degraded: the failures in this window, and those since the last success.
	recent, running tally

	// Unless OK, the state of the probes.
	next    time.Duration // when the next one is due
	pause   time.Duration // before the next probe, without jitter; doubled while none is answered
	proof   time.Duration // how long they must be answered before Recovering
	replied bool          // probes are being answered
	first   time.Duration // when the first of the answered probes was, if replied
	doubted bool          // replied, but the last one was not answered
}

// tally counts failures from an instant on.
type tally struct {
	from time.Duration
	bad  int
	good uint64 // all successes before from
}

// add counts the failure e; if restart is set, it is the first one.
func (t *tally) add(e event, restart bool) {
	if restart || t.bad == 0 {
		*t = tally{from: e.now, good: e.good}
	}
	t.bad += max(e.times, 1)
}

// event is what happens to a circuit.
type event struct {
	kind   kind
	now    time.Duration
	began  time.Duration // failed: when the call began
	times  int           // failed: how many requests the call was for; 0 means one
	good   uint64        // failed: all successes so far
	trip   time.Duration // failed: a round trip; a call that was sent this long before a pause may be late because of it
	chance float64       // a random number in [0, 1), for jitter
}

type kind uint8

const (
	failed     kind = iota // a call failed
	tick                   // time has passed
	answered               // the probe was answered
	unanswered             // the probe was not answered
)

// action is what a step asks for.
type action uint8

const (
	nothing action = iota
	probe
)

// step returns the circuit after e, and what is to be done.
func (c circuit) step(e event) (circuit, action) {
	switch e.kind {
	case failed:
		return c.fail(e), nothing
	case answered:
		if c.state != OK {
			c.reply(e)
		}
	case unanswered:
		if c.state != OK {
			c.doubt(e)
		}
	case tick:
		switch {
		case c.state == Recovering && c.share(e.now) == whole && !c.doubted:
			c.enter(OK, e)
		case c.state != OK && e.now >= c.next:
			return c, probe
		}
	}
	return c, nothing
}

// fail counts a failed call. A backend that is down opens the circuit after a few failures,
// however slowly they come; one that fails now and then does not. Nor does one that paused for a
// moment: a call that began at least a round trip after the first failure must fail as well,
// because the first calls that fail were sent up to a round trip before the pause. Otherwise 10 ms
// of pause would open the circuit of a backend that is 20 ms away.
func (c circuit) fail(e event) circuit {
	if c.state == Degraded || e.began < c.since { // the call says nothing about this state
		return c
	}
	c.recent.add(e, e.good > c.recent.good && e.now-c.recent.from > window)
	c.running.add(e, e.good > c.running.good)
	if !c.recent.outweighs(c.failures, e) && !(c.running.outweighs(c.failures, e) && e.now-c.running.from >= silence) {
		return c
	}
	c.open(e)
	return c
}

// outweighs reports whether there are enough failures and at least as many as successes,
// and whether the call of e began a round trip after the first of them.
func (t *tally) outweighs(failures int, e event) bool {
	return t.bad >= failures && uint64(t.bad) >= e.good-t.good && e.began >= t.from+e.trip
}

// open opens the circuit. A backend that flaps has to answer probes for longer each time:
// whenever nodes switch, some count locally for a moment while others ask the backend.
func (c *circuit) open(e event) {
	c.failed = max(c.recent.bad, c.running.bad, 1)
	if c.state == OK && (c.since == 0 || e.now-c.since > calm) {
		c.proof = firstProof
	} else {
		c.proof = min(max(2*c.proof, firstProof), maxProof)
	}
	c.enter(Degraded, e)
	c.replied, c.doubted, c.pause = false, false, 0
	c.putOff(e)
}

// reply handles a probe that was answered. Once probes have been answered for the time proof,
// the circuit is Recovering. Pauses between probes are shorter than that, so all nodes know by
// then that the backend is back and have posted their backlogs, without which a request would
// find too much room.
func (c *circuit) reply(e event) {
	c.next, c.doubted = e.now+e.jitter(proofEvery), false
	if c.state == Recovering {
		return
	}
	if !c.replied {
		c.replied, c.first = true, e.now
	}
	if e.now-c.first >= c.proof {
		c.enter(Recovering, e)
	}
}

// doubt handles a probe that was not answered. After answered ones, only the second in a row
// counts, because a single one may get lost on a busy machine. In Recovering the second opens
// the circuit: few requests go to the backend then, so they would not show the failure.
func (c *circuit) doubt(e event) {
	c.failed++
	switch {
	case c.replied && !c.doubted:
		c.doubted = true
		c.next = e.now + e.jitter(firstPause)
	case c.state == Recovering:
		c.open(e)
	default:
		if c.replied { // the backend may be back soon, so the pauses start over
			c.replied, c.doubted, c.pause = false, false, 0
		}
		c.putOff(e)
	}
}

// enter changes the state, and forgets failures from before.
func (c *circuit) enter(s State, e event) {
	c.state, c.since, c.recent, c.running = s, e.now, tally{}, tally{}
}

// putOff schedules the next probe after twice the last pause, at most maxPause.
func (c *circuit) putOff(e event) {
	c.pause = min(max(2*c.pause, firstPause), maxPause)
	c.next = e.now + e.jitter(c.pause)
}

// jitter returns a duration between half of d and d, so that the nodes of a fleet do not
// probe together.
func (e *event) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(e.chance*float64(d/2))
}

// share returns which part of the keys goes to the backend, in parts of whole.
func (c *circuit) share(now time.Duration) uint32 {
	switch c.state {
	case OK:
		return whole
	case Degraded:
		return 0
	}
	return uint32(min(firstShare<<min((now-c.since)/rampStep, 8), whole))
}

// answers reports whether the backend answered when it was last asked.
func (c *circuit) answers() bool { return c.state != Degraded || c.replied && !c.doubted }

// wake returns how long after now the next tick is due; 0 means that none is.
func (c *circuit) wake(now time.Duration) time.Duration {
	switch c.state {
	case Degraded:
		return max(c.next-now, time.Millisecond)
	case Recovering:
		return min(rampStep-(now-c.since)%rampStep, max(c.next-now, time.Millisecond))
	}
	return 0
}
