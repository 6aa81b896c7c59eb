package gateway

import (
	"math/rand/v2"
	"time"
)

// pool is the upstreams.
type pool []*upstream

// pick returns the upstream with the least in flight, one of them by chance if
// there are several, but not the one that was tried already. nil: all others are
// out of order.
func (p pool) pick(now time.Time, tried *upstream) *upstream {
	for range p {
		u := p.least(now, tried)
		if u == nil || u.health.claim(now) {
			return u
		}
	}
	return nil
}

func (p pool) least(now time.Time, tried *upstream) *upstream {
	if len(p) == 1 {
		if u := p[0]; u != tried && u.health.usable(now) {
			return u
		}
		return nil
	}
	var best *upstream
	var load int64
	equals := 0
	for _, u := range p {
		if u == tried || !u.health.usable(now) {
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
