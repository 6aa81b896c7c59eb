package gateway

import (
	"math/rand/v2"
	"time"
)

// pool is the upstreams.
type pool []*upstream

// pick returns the upstream with the least in flight, one of them by chance if
// there are several, but not the one that was tried already. nil: all others are
// out of order. That one failed some requests is no reason to send a request nowhere: if
// there is nothing better, the first try goes to one that is ejected.
func (p pool) pick(now time.Time, tried *upstream) *upstream {
	usable := func(u *upstream) bool { return u != tried && u.health.usable(now) }
	for range p {
		u := p.least(usable)
		if u == nil {
			break
		}
		if u.health.claim(now) {
			return u
		}
	}
	if tried != nil {
		return nil
	}
	return p.least(func(u *upstream) bool { return !u.health.isDown() })
}

// last reports whether u is the only one that can be counted on.
func (p pool) last(u *upstream) bool {
	for _, other := range p {
		if other != u && other.health.sound() {
			return false
		}
	}
	return true
}

func (p pool) least(fits func(*upstream) bool) *upstream {
	if len(p) == 1 {
		if fits(p[0]) {
			return p[0]
		}
		return nil
	}
	var best *upstream
	var load int64
	equals := 0
	for _, u := range p {
		if !fits(u) {
			continue
		}
		switch n := u.inflight.Load(); {
		case best == nil || n < load:
			best, load, equals = u, n, 1
		case n == load:
			if equals++; rand.IntN(equals) == 0 {
				best = u
			}
		}
	}
	return best
}

// back is when the first of them may be tried again.
func (p pool) back(now time.Time) time.Duration {
	soonest := p[0].health.back(now)
	for _, u := range p[1:] {
		soonest = min(soonest, u.health.back(now))
	}
	return soonest
}
