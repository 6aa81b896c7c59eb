package client

import (
	"math/rand/v2"
	"sync"
	"time"
)

// A call that arrives late arrives together with those after it. An API that counts exactly then
// sees more than its limit, and refuses. A refusal stops all instances, often for a second or more;
// a turn that nobody uses costs a fraction of that. So after a refusal, late calls give up their
// turn. If the API still refuses, because calls are delayed on the network, a share of the turns
// stays unused: it grows with each refusal and shrinks with time.

const (
	// strictFor is for how long after a stop late calls give up their turn.
	strictFor = 10 * time.Minute
	// maxMissed is how many turns a call gives up at most; after that it is sent however late it
	// is.
	maxMissed = 3
	// slackShare is the part of a limit's period by which a call may leave late: half of what
	// Pace leaves room for. The other half is for the network.
	slackShare = 2 * paceRoom

	// marginStep is by how much a refusal raises the share of unused turns, up to maxMargin. It
	// falls by as much in each marginTime.
	marginStep = 1.0 / 32
	marginTime = 2 * time.Minute
	maxMargin  = 0.25
)

// punctuality decides which calls give up their turn. While an API refuses nothing, none does.
type punctuality struct {
	mu      sync.Mutex
	strict  time.Time     // late calls give up their turn until then
	stopped time.Time     // further refusals until then have the same cause
	known   bool          // whether usual is set
	usual   time.Duration // moving average of how late calls are: an equal delay does not bring them closer together
	margin  float64       // the share of turns that stays unused
	changed time.Time     // when margin was last computed
	toSkip  float64       // turns to leave unused, with a fraction
}

// refused records that the API refuses calls, and for how long.
func (p *punctuality) refused(now time.Time, stop time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.stopped) {
		return
	}
	if now.Before(p.strict) {
		p.margin = min(p.marginLocked(now)+marginStep, maxMargin)
		p.changed, p.toSkip = now, rand.Float64() // not all instances in the same second
	}
	p.stopped = now.Add(max(stop+stop/4, time.Second))
	p.strict = p.stopped.Add(strictFor)
}

// warned records that another instance has seen a refusal.
func (p *punctuality) warned(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if soon := now.Add(strictFor / 10); p.strict.Before(soon) {
		p.strict = soon
	}
}

func (p *punctuality) marginLocked(now time.Time) float64 {
	return max(p.margin-marginStep*now.Sub(p.changed).Seconds()/marginTime.Seconds(), 0)
}

// missed reports whether a call that is late gives up its turn. It may be later than usual by
// slack.
func (p *punctuality) missed(late, slack time.Duration, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	above := late - p.usual
	if !p.known {
		p.known, p.usual = true, late
	} else {
		p.usual += above / 16
	}
	if !now.Before(p.strict) {
		return false
	}
	if above > slack {
		return true
	}
	if p.toSkip += p.marginLocked(now); p.toSkip >= 1 {
		p.toSkip--
		return true
	}
	return false
}
