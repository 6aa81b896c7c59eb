package gateway

import (
	"math/rand/v2"
	"time"
)

// pool is all upstreams.
type pool []*upstream

// pick returns the upstream with the fewest requests in flight, a random one of several,
// but not the one that was tried already. It returns nil if there is no other. If all are
// ejected, the first try goes to one of them: a request that may fail is better than one
// that must.
func (p pool) pick(now time.Time, tried *upstream) *upstream {
	usable := func(u *upstream) bool { return u != tried && u.health.usable(now) }
	for range p {
		u := p.leastLoaded(usable)
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
	return p.leastLoaded(func(u *upstream) bool { return !u.health.isDown() })
}

// isLast reports whether no upstream but u is healthy.
func (p pool) isLast(u *upstream) bool {
	for _, other := range p {
		if other != u && other.health.healthy() {
			return false
		}
	}
	return true
}

// leastLoaded returns the upstream with the fewest requests in flight among those that fit, a random
// one of several; nil if none fits.
func (p pool) leastLoaded(fits func(*upstream) bool) *upstream {
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

// retryAfter returns how long until one of them may be tried again.
func (p pool) retryAfter(now time.Time) time.Duration {
	soonest := p[0].health.retryAfter(now)
	for _, u := range p[1:] {
		soonest = min(soonest, u.health.retryAfter(now))
	}
	return soonest
}
