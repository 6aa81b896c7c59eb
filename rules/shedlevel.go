package rules

import "time"

// The pace of shedding. It goes up quickly, since an overload grows by itself, and down slowly, so
// that returning requests do not cause the next overload at once.
const (
	shedUp   = time.Second      // how long a signal is above its bound before each step up
	shedDown = 5 * time.Second  // how long all are well below before each step down
	shedEase = 30 * time.Second // how long none is above, with one near its bound, before each step down
	// A step down that is taken back within shedProbe was too early: the next step down to that
	// level waits twice as long, up to shedMost.
	shedProbe = 10 * time.Second
	shedMost  = time.Minute
	// shedNear is the share of its bound above which a signal is near it.
	shedNear = 0.9
	// shedSteps is how many steps it takes to shed a class.
	shedSteps = 10
)

// strain is how the signals compare with their bounds.
type strain uint8

const (
	calm strain = iota // all are well below, or not known
	near               // none is above, and one is close
	over               // one is above
)

// strainOf compares a signal with its bound.
func strainOf(value, bound float64) strain {
	switch {
	case value > bound:
		return over
	case value > bound*shedNear:
		return near
	}
	return calm
}

// shedLevel is how much is shed, in tenths of the classes that may be shed, the least important
// first. It changes only by step, and depends on nothing but its arguments.
type shedLevel struct {
	steps int
	// looked is when step was last called, moved when the level last changed. over and calm are
	// since when strain has been so without a break, and below since when no signal has been above
	// its bound.
	looked, moved     time.Duration
	over, calm, below time.Duration
	strain            strain
	down              bool          // whether the last step was down
	failed            int           // the level that shed too little, if wait is longer than shedDown
	wait              time.Duration // before a step down to that level
	started           bool          // whether step was called before
}

// step returns the level after an evaluation of the signals; it may be called at any time and at
// any rate. most is the level at which everything that may be shed is shed. If step was not called
// for a while, there were no requests: the level falls as if the signals had been calm.
func (l shedLevel) step(now time.Duration, s strain, most int) shedLevel {
	if idle := now - l.looked; !l.started || idle >= shedDown {
		steps := 0
		if l.started {
			steps = max(0, l.steps-int(idle/shedDown))
		}
		l = shedLevel{steps: steps, moved: now, over: now, calm: now, below: now, strain: s, wait: shedDown, started: true}
	}
	if s == over && l.strain != over {
		l.over = now
	}
	if s != over && l.strain == over {
		l.below = now
	}
	if s == calm && l.strain != calm {
		l.calm = now
	}
	l.looked, l.strain = now, s
	pause := shedDown // before a step down
	if l.steps-1 <= l.failed {
		pause = l.wait
	}
	long := func(since, least time.Duration) bool { return now-max(since, l.moved) >= least }
	switch {
	case s == over && l.steps < most && long(l.over, shedUp):
		if l.down && now-l.moved < shedProbe {
			l.failed, l.wait = l.steps, min(2*l.wait, shedMost)
		}
		l.steps++
		l.down = false
	case l.steps > most: // there are fewer classes than before
		l.steps = most
	case l.steps > 0 && (s == calm && long(l.calm, pause) || s != over && long(l.below, max(pause, shedEase))):
		if l.steps--; l.steps < l.failed { // this level is high enough now
			l.wait = shedDown
		}
		l.down = true
	default:
		return l
	}
	l.moved = now
	return l
}

// shifted returns the level with its times later by so much.
func (l shedLevel) shifted(by time.Duration) shedLevel {
	for _, at := range []*time.Duration{&l.looked, &l.moved, &l.over, &l.calm, &l.below} {
		*at += by
	}
	return l
}

// above returns by how many steps the level exceeds the one from which on a key is shed; 0 means
// that it is not shed. rank is how many classes are less important than that of the request, tenth
// which tenth of its class the key is in, from 0 to 9.
func (l shedLevel) above(rank, tenth int) int {
	return max(0, l.steps-rank*shedSteps-tenth)
}
