package node

import "time"

// State is how a Node is doing.
type State uint8

const (
	// OK: the circuit is closed, every request goes to the backend.
	OK State = iota
	// Degraded: the circuit is open; only probes go to the backend.
	Degraded
	// Recovering: probes are answered, and traffic returns to the backend gradually.
	Recovering
	// Partial: some servers of the backend are OK and others are not.
	Partial
)

// String is the state as it is said: "ok", "degraded", "recovering" or "partial".
func (s State) String() string { return [...]string{"ok", "degraded", "recovering", "partial"}[s] }

// How the circuit opens and closes.
const (
	window     = time.Second           // failures are compared with successes over this long
	silence    = 20 * time.Millisecond // open early if nothing succeeded for this long
	firstPause = 50 * time.Millisecond // before the first probe; doubled with every one that fails
	maxPause   = 250 * time.Millisecond
	calm       = 10 * time.Second       // a backend that was well for this long is not flapping
	firstProof = 300 * time.Millisecond // how long probes must be answered; doubled each time if it flaps
	maxProof   = time.Second
	proofEvery = 100 * time.Millisecond // between probes that are answered
	rampStep   = 100 * time.Millisecond // the share of keys doubles this often
	firstShare = 8                      // of whole
	whole      = 64
)

// circuit decides when the backend is no longer asked and when it is asked again. It is a
// value: step takes it from one to the next, and reads no clock.
type circuit struct {
	failures int // how many it takes
	state    State
	since    time.Duration // in this state
	failed   int           // failures that opened it, and probes that failed since

	// Unless Degraded: the failures in this window, and those since the last success.
	recent, running tally

	// Unless OK: when the next probe is due. Degraded: how long the pause before it
	// was, and for how long probes must be answered, of which the first was then.
	next    time.Duration
	pause   time.Duration
	proof   time.Duration
	replied bool
	doubted bool // the last one was not
	first   time.Duration
}

// tally is failures, since when, and how many successes there had been by then.
type tally struct {
	from time.Duration
	bad  int
	good uint64
}

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
	began  time.Duration // failed: when the call did
	times  int           // failed: so many requests at once; 0 means one
	good   uint64        // failed: successes so far
	chance float64       // in [0, 1), for jitter
}

type kind uint8

const (
	failed     kind = iota // a call
	tick                   // time has passed
	answered               // the probe was
	unanswered             // the probe was not
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

// fail counts a failure. A backend that is wholly gone opens the circuit after the first
// few, however slowly they come; one that fails now and then does not. Nor does one that
// stood still for a moment: one of the calls must have begun after the first failure.
func (c circuit) fail(e event) circuit {
	if c.state == Degraded || e.began < c.since { // it tells how things were before
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

// outweighs reports whether the failures are enough, and as many as succeeded.
func (t *tally) outweighs(failures int, e event) bool {
	return t.bad >= failures && uint64(t.bad) >= e.good-t.good && e.began >= t.from
}

// open opens the circuit. A backend that comes and goes has to prove itself for longer
// each time: nodes that go to and fro disagree about who counts.
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

// reply believes a probe that was answered once others were for long enough: by then
// every node has found out, as none pauses for longer. A request that is sent earlier
// would find a store that knows nothing of what the other nodes admitted.
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

// doubt believes a probe that was not answered, or the second one if others were just
// before: one alone gets lost on a busy machine. Keys that are still counted here
// would not notice.
func (c *circuit) doubt(e event) {
	c.failed++
	switch {
	case c.replied && !c.doubted:
		c.doubted = true
		c.next = e.now + e.jitter(firstPause)
	case c.state == Recovering:
		c.open(e)
	default:
		if c.replied { // it may be back soon
			c.replied, c.doubted, c.pause = false, false, 0
		}
		c.putOff(e)
	}
}

func (c *circuit) enter(s State, e event) {
	c.state, c.since, c.recent, c.running = s, e.now, tally{}, tally{}
}

// putOff doubles the pause before the next probe.
func (c *circuit) putOff(e event) {
	c.pause = min(max(2*c.pause, firstPause), maxPause)
	c.next = e.now + e.jitter(c.pause)
}

// jitter is between half of d and d, so that the nodes of a fleet do not probe
// together.
func (e *event) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(e.chance*float64(d/2))
}

// share is how many of whole keys go to the backend.
func (c *circuit) share(now time.Duration) uint32 {
	switch c.state {
	case OK:
		return whole
	case Degraded:
		return 0
	}
	return uint32(min(firstShare<<min((now-c.since)/rampStep, 8), whole))
}

// answers reports whether the backend did when it was last asked.
func (c *circuit) answers() bool { return c.state != Degraded || c.replied && !c.doubted }

// wake is how long after now there is something to look at; 0 when OK.
func (c *circuit) wake(now time.Duration) time.Duration {
	switch c.state {
	case Degraded:
		return max(c.next-now, time.Millisecond)
	case Recovering:
		return min(rampStep-(now-c.since)%rampStep, max(c.next-now, time.Millisecond))
	}
	return 0
}
