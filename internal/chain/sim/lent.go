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

// lent models what the script of a bucket keeps in its state while events are out on leases: as
// many events as refill within hold are granted to nobody, until the bucket has been full for hold.
type lent struct {
	drained time.Time     // when it is full
	hold    time.Duration // the longest lease
	kept    int64         // the most that refills within hold, of the versions of the limit
}

// reserved is how much of l has to stay while events are out.
func (b lent) reserved(l *tidegate.Limit) int64 {
	return min(max(b.kept, refills(l, b.hold)), l.Capacity()/2)
}

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
		if held.hold > 0 && !now.Before(held.drained.Add(held.hold)) {
			held = lent{}
		}
		if held.hold = max(held.hold, a.Lease); held.hold > 0 {
			back, all := held.reserved(c.Limit), c.Limit.Capacity()
			c.Floor += back - (c.Floor*back+all-1)/all // a floor is a share of what is not held back
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

// lendLocked notes what was granted, if events of its counters are out on leases.
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
		if known && !now.Before(held.drained.Add(held.hold)) {
			held = lent{}
		}
		if held.hold = max(held.hold, a.Lease); held.hold == 0 {
			delete(s.state.lent, name)
			continue
		}
		held.kept = max(held.kept, refills(c.Limit, held.hold))
		// What is granted of another limit of the ask may take longer: that holds back more.
		held.drained = latest(held.drained, now.Add(a.Granted.ResetAfter))
		name.key = strings.Clone(name.key) // the caller uses its memory again
		s.state.lent[name] = held
	}
}

// noteChargeLocked notes that a bucket was charged unasked: it is full later.
func (s *server) noteChargeLocked(c *tidegate.Check) {
	name := counterName{c.Limit.Identity(), c.Key}
	if held, known := s.state.lent[name]; known && c.Cost > 0 {
		held.drained = latest(held.drained, s.now()).Add(time.Duration(float64(c.Cost) / rate(c.Limit) * float64(time.Second)))
		s.state.lent[name] = held
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
