package guard

import "time"

// State is how a Guard is doing.
type State uint8

const (
	// OK: every call goes to the inner store.
	OK State = iota
	// Degraded: none does, but probes.
	Degraded
	// Recovering: it answered a probe, and calls go to it by and by.
	Recovering
)

// String is the state as it is said: "ok", "degraded" or "recovering".
func (s State) String() string { return [...]string{"ok", "degraded", "recovering"}[s] }

// How the breaker goes about it.
const (
	window     = time.Second           // failures are compared with successes for so long
	silence    = 20 * time.Millisecond // no success for so long, and enough failures, is enough
	firstPause = 50 * time.Millisecond // before the first probe; doubled with every one that fails
	maxPause   = 250 * time.Millisecond
	calm       = 10 * time.Second       // who was well for so long is not flapping
	firstProof = 300 * time.Millisecond // how long it must answer to be believed; doubled each time if it flaps
	maxProof   = time.Second
	proofEvery = 100 * time.Millisecond // it is probed so often meanwhile
	rampStep   = 100 * time.Millisecond // the share of keys is doubled so often
	firstShare = 8                      // of whole
	whole      = 64
)

// breaker decides when the inner store is left alone and when it is asked again. It
// is a value: step takes it from one to the next, and reads no clock.
type breaker struct {
	failures int // how many it takes
	state    State
	since    time.Duration // in this state

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
	t.bad++
}

// event is what happens to a breaker.
type event struct {
	kind   kind
	now    time.Duration
	began  time.Duration // failed: when the call did
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
	rest action = iota
	probe
)

// step is the breaker after e, and what is to be done.
func (b breaker) step(e event) (breaker, action) {
	switch e.kind {
	case failed:
		return b.fail(e), rest
	case answered:
		if b.state != OK {
			b.reply(e)
		}
	case unanswered:
		if b.state != OK {
			b.refute(e)
		}
	case tick:
		switch {
		case b.state == Recovering && b.share(e.now) == whole && !b.doubted:
			b.enter(OK, e)
		case b.state != OK && e.now >= b.next:
			return b, probe
		}
	}
	return b, rest
}

// fail counts a failure. A store that is wholly gone is left alone after the first
// few, however slowly they come; one that fails now and then is not. Nor is one that
// stood still for a moment: one of the calls must have begun after the first failure.
func (b breaker) fail(e event) breaker {
	if b.state == Degraded || e.began < b.since { // it is about how things were before
		return b
	}
	b.recent.add(e, e.good > b.recent.good && e.now-b.recent.from > window)
	b.running.add(e, e.good > b.running.good)
	if !b.recent.outweighs(b.failures, e) && !(b.running.outweighs(b.failures, e) && e.now-b.running.from >= silence) {
		return b
	}
	b.leave(e)
	return b
}

// outweighs reports whether the failures are enough, and as many as succeeded.
func (t *tally) outweighs(failures int, e event) bool {
	return t.bad >= failures && uint64(t.bad) >= e.good-t.good && e.began >= t.from
}

// leave leaves the inner store alone. One that comes and goes has to prove itself for
// longer each time: nodes that go to and fro disagree about who counts.
func (b *breaker) leave(e event) {
	if b.state == OK && (b.since == 0 || e.now-b.since > calm) {
		b.proof = firstProof
	} else {
		b.proof = min(max(2*b.proof, firstProof), maxProof)
	}
	b.enter(Degraded, e)
	b.replied, b.doubted, b.pause = false, false, 0
	b.putOff(e)
}

// reply believes a probe that was answered once others were for long enough: by then
// every node has found out, as none pauses for longer, and has paid what it owes. Who
// asked earlier would find a store that knows nothing of what the others admitted.
func (b *breaker) reply(e event) {
	b.next, b.doubted = e.now+e.jitter(proofEvery), false
	if b.state == Recovering {
		return
	}
	if !b.replied {
		b.replied, b.first = true, e.now
	}
	if e.now-b.first >= b.proof {
		b.enter(Recovering, e)
	}
}

// refute believes a probe that was not answered, or the second one if others were just
// before: one alone gets lost on a busy machine. Keys that are still counted here
// would not notice.
func (b *breaker) refute(e event) {
	switch {
	case b.replied && !b.doubted:
		b.doubted = true
		b.next = e.now + e.jitter(firstPause)
	case b.state == Recovering:
		b.leave(e)
	default:
		if b.replied { // it may be back soon
			b.replied, b.doubted, b.pause = false, false, 0
		}
		b.putOff(e)
	}
}

func (b *breaker) enter(s State, e event) {
	b.state, b.since, b.recent, b.running = s, e.now, tally{}, tally{}
}

// putOff doubles the pause before the next probe.
func (b *breaker) putOff(e event) {
	b.pause = min(max(2*b.pause, firstPause), maxPause)
	b.next = e.now + e.jitter(b.pause)
}

// jitter is between half of d and d, so that the nodes of a fleet do not probe
// together.
func (e *event) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(e.chance*float64(d/2))
}

// share is how many of whole keys go to the inner store.
func (b *breaker) share(now time.Duration) uint32 {
	switch b.state {
	case OK:
		return whole
	case Degraded:
		return 0
	}
	return uint32(min(firstShare<<min((now-b.since)/rampStep, 8), whole))
}

// answers reports whether the inner store did when it was last asked.
func (b *breaker) answers() bool { return b.state != Degraded || b.replied && !b.doubted }

// wake is how long after now there is something to look at; 0 when OK.
func (b *breaker) wake(now time.Duration) time.Duration {
	switch b.state {
	case Degraded:
		return max(b.next-now, time.Millisecond)
	case Recovering:
		return min(rampStep-(now-b.since)%rampStep, max(b.next-now, time.Millisecond))
	}
	return 0
}
