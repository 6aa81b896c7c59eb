package sim

import (
	"context"
	"maps"
	"math"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// lent models the reserve that the script of a token bucket holds back while some of its events
// are out on leases: as many events as refill within the longest lease. The reserve ends when the
// bucket has been full for that long.
type lent struct {
	fullAt  time.Time     // when the bucket will be full again
	hold    time.Duration // the longest lease
	reserve int64         // the largest reserve that any version of the limit asked for
}

// reserved returns how many events of l are held back: half of its capacity at most.
func (b lent) reserved(l *tidegate.Limit) int64 {
	return min(max(b.reserve, refills(l, b.hold)), l.Capacity()/2)
}

// refills returns how many events of l come back within a time, rounded up.
func refills(l *tidegate.Limit, in time.Duration) int64 {
	return int64(math.Ceil(rate(l) * in.Seconds()))
}

type counterName struct{ identity, key string }

// lentBuckets are the buckets with events on leases.
type lentBuckets map[counterName]lent

func (b lentBuckets) clone() lentBuckets { return maps.Clone(b) }

// takeLocked decides about an ask as the scripts do.
func (s *server) takeLocked(a *chain.Ask) {
	own := a.Checks
	checks := make([]tidegate.Check, len(own))
	copy(checks, own)
	now := s.now()
	for i := range checks {
		c := &checks[i]
		if c.Limit.Algorithm != tidegate.TokenBucket {
			continue
		}
		held := s.state.lent[counterName{c.Limit.Identity(), c.Key}]
		if held.hold > 0 && !now.Before(held.fullAt.Add(held.hold)) {
			held = lent{}
		}
		if held.hold = max(held.hold, a.Lease); held.hold > 0 {
			back, all := held.reserved(c.Limit), c.Limit.Capacity()
			c.Floor += back - (c.Floor*back+all-1)/all // the floor is a share of what remains beside the reserve
		}
	}
	take := func(n int) (tidegate.Decision, error) {
		return s.state.store.Take(context.Background(), checks, n)
	}
	a.Granted, a.Err = take(a.Copies)
	if a.Err == nil && a.Granted.OK && a.Granted.Granted < int64(a.Copies) {
		a.Rest, a.Err = take(1)
	}
	for i := range checks {
		own[i].Over = checks[i].Over
	}
	if a.Err == nil && a.Granted.OK {
		s.lendLocked(a, now)
	}
}

// lendLocked updates the buckets of a that have events on leases, or have them from now on, after a
// was granted.
func (s *server) lendLocked(a *chain.Ask, now time.Time) {
	for i := range a.Checks {
		c := &a.Checks[i]
		if c.Limit.Algorithm != tidegate.TokenBucket {
			continue
		}
		name := counterName{c.Limit.Identity(), c.Key}
		held, known := s.state.lent[name]
		if !known && a.Lease == 0 {
			continue
		}
		if known && !now.Before(held.fullAt.Add(held.hold)) {
			held = lent{}
		}
		if held.hold = max(held.hold, a.Lease); held.hold == 0 {
			delete(s.state.lent, name)
			continue
		}
		held.reserve = max(held.reserve, refills(c.Limit, held.hold))
		// ResetAfter is of all limits of the ask: another may take longer, and more is held back then.
		held.fullAt = latest(held.fullAt, now.Add(a.Granted.ResetAfter))
		name.key = strings.Clone(name.key) // the caller reuses its memory
		s.state.lent[name] = held
	}
}

// noteChargeLocked notes that a bucket was charged without being asked: it is full later.
func (s *server) noteChargeLocked(c *tidegate.Check) {
	name := counterName{c.Limit.Identity(), c.Key}
	if held, known := s.state.lent[name]; known && c.Cost > 0 {
		held.fullAt = latest(held.fullAt, s.now()).Add(time.Duration(float64(c.Cost) / rate(c.Limit) * float64(time.Second)))
		s.state.lent[name] = held
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
