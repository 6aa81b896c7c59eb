package cluster

import (
	"time"

	"tidegate.dev/tidegate"
)

// stamp is what has to be known from before the inner store is asked.
type stamp struct {
	at    time.Duration
	epoch uint64
}

func (s *Store) stamp() stamp { return stamp{s.clock(), s.deny.epoch.Load()} }

// deniable reports whether a refusal of c is remembered. That of a slot is not: its
// holder may give it back at any moment. Nor is that of an estimate, which will be.
func deniable(c *tidegate.Check) bool {
	l := c.Limit
	return c.Cost > 0 && !c.Advisory && !c.Estimate && l.Algorithm != tidegate.Concurrency &&
		(l.Terms == nil || !l.Terms.NoDenyCache)
}

// denied answers checks by what was refused before, if that says enough. Of several
// refusals it tells the one that takes longest.
func (s *Store) denied(checks []tidegate.Check) (d tidegate.Decision, ok bool) {
	var now time.Duration
	for i := range checks {
		c := &checks[i]
		if !deniable(c) {
			continue
		}
		r, found := s.deny.find(s.deny.counter(c.Limit, c.Key), under(c.Limit, s.deny.epoch.Load()), c.Cost)
		if !found {
			continue
		}
		if now == 0 {
			now = s.clock()
		}
		// The clock of a test can be set back.
		if left := r.until - now; left <= 0 || left > maxDenial || joined(checks, c) {
			continue
		}
		if r.retry-now > d.RetryAfter {
			d = tidegate.Decision{Limit: c.Limit, Remaining: r.left, RetryAfter: r.retry - now, ResetAfter: max(r.reset-now, 0), Origin: tidegate.OriginRemembered}
		}
	}
	return d, d.Limit != nil
}

// joined reports whether another check counts with c: their costs add up, under the
// tighter of their limits.
func joined(checks []tidegate.Check, c *tidegate.Check) bool {
	for i := range checks {
		if o := &checks[i]; o != c && !o.Advisory && o.Key == c.Key && o.Limit.Identity() == c.Limit.Identity() {
			return true
		}
	}
	return false
}

// remember notes a refusal. It reports whether another request for the same, now, would
// be refused by it.
func (f *flight) remember(d *tidegate.Decision) bool {
	if f.ways&remembered == 0 || d.Limit == nil || d.Never || d.Err != nil || d.RetryAfter <= 0 {
		return false
	}
	about := -1
	for i := range f.checks {
		c := &f.checks[i]
		if c.Advisory || c.Limit != d.Limit && c.Limit.Identity() != d.Limit.Identity() {
			continue
		}
		if about >= 0 {
			return false
		}
		about = i
	}
	if about < 0 || !deniable(&f.checks[about]) {
		return false
	}
	c, s := &f.checks[about], f.store
	r := refused{retry: f.sent.at + d.RetryAfter, reset: f.sent.at + d.ResetAfter, left: d.Remaining}
	r.until = min(r.retry, f.sent.at+maxDenial)
	noted := s.deny.note(s.deny.counter(c.Limit, c.Key), under(c.Limit, f.sent.epoch), c.Cost, r, f.sent.at)
	return noted && f.sent.epoch == s.deny.epoch.Load() && s.clock() < r.until
}
