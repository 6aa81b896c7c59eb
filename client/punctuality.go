package client

import (
	"math/rand/v2"
	"sync"
	"time"
)

// A call that arrives late arrives together with those after it. An API that counts exactly sees
// more than its limit then, and refuses; and a refusal stops everybody, often for a second or
// more, where a turn that nobody uses costs a fraction of that. So after a refusal, calls that are
// late give up their turn. If there are refusals nevertheless, because calls are late on their
// way, a part of the turns is left unused: a larger one with each refusal, and a smaller one with
// time.

const (
	// strictFor is how long late calls miss their turn after a stop.
	strictFor = 10 * time.Minute
	// maxMissed is how many turns a call can miss; then it goes however late it is.
	maxMissed = 3
	// slackShare is the part of a limit's period by which a call may leave late: half of what
	// Pace leaves room for. The other half is for the network.
	slackShare = 2 * paceRoom

	// marginStep is by how much the part of unused turns grows with a refusal, and in
	// marginTime it shrinks by as much again. It is never more than maxMargin.
	marginStep = 1.0 / 32
	marginTime = 2 * time.Minute
	maxMargin  = 0.25
)

// punctuality decides which calls give up their turn. While an API refuses nobody, none does.
type punctuality struct {
	mu      sync.Mutex
	strict  time.Time     // until then
	stopped time.Time     // until then, other refusals have the same reason
	known   bool          // usual is
	usual   time.Duration // how late calls are, which does not bring them closer together
	margin  float64       // the part of turns that is left unused
	changed time.Time     // when margin was last reckoned
	toSkip  float64       // turns to be left unused
}

// refused is told that the API refuses calls, and for how long.
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

// warned is told that another instance knows of a refusal.
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

// missed reports whether a call gives up its turn. It may be slack later than usual.
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
