package node

import (
	"math"
	"time"

	"tidegate.dev/tidegate"
)

// stamp is what has to be known from before the backend is asked.
type stamp struct {
	at    time.Duration
	epoch uint64
}

func (n *Node) stamp() stamp { return stamp{n.now(), n.deny.epoch.Load()} }

// deniable reports whether a refusal of c is remembered. That of a slot is not: its
// holder may give it back at any moment. Nor is that of an estimate, which will be. Of
// peeks, only that of a block is, since it may take longer than the refusal beside it.
func deniable(c *tidegate.Check) bool {
	l := c.Limit
	return (c.Cost > 0 || final(l)) && !c.Advisory && !c.Estimate && l.Algorithm != tidegate.Concurrency &&
		(l.Terms == nil || !l.Terms.Handling.NoDenyCache)
}

// final reports whether what is taken from l is never given back, as that of a block.
func final(l *tidegate.Limit) bool { return l.Terms != nil && l.Terms.Handling.Final }

// denied answers checks by what was refused before, if that says enough. Of several
// refusals it tells the one that takes longest.
func (n *Node) denied(checks []tidegate.Check) (d tidegate.Decision, ok bool) {
	var now time.Duration
	for i := range checks {
		c := &checks[i]
		if !deniable(c) {
			continue
		}
		sum := under(c.Limit, n.deny.epoch.Load())
		r, found := n.deny.find(n.deny.counter(c.Limit, c.Key), sum, needed(c))
		if !found {
			if r, found = n.inherited(c, sum); !found {
				continue
			}
		}
		if now == 0 {
			now = n.now()
		}
		if r.until <= now || joined(checks, c) {
			continue
		}
		if r.retry-now > d.RetryAfter {
			d = tidegate.Decision{Limit: c.Limit, Remaining: max(r.left-c.Floor, 0), RetryAfter: r.retry - now, ResetAfter: max(r.reset-now, 0), Receipt: tidegate.Receipt{Origin: tidegate.OriginRemembered}}
		}
	}
	return d, d.Limit != nil
}

// needed is how much room there must be for c. Who leaves some is refused like who takes as
// much more.
func needed(c *tidegate.Check) int64 {
	if cost := max(c.Cost, 1); cost <= math.MaxInt64-c.Floor {
		return cost + c.Floor
	}
	return math.MaxInt64
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
func (n *Node) remember(call *call, d *tidegate.Decision) bool {
	s, sent := call.stream, call.stamp
	if s.traits&remembered == 0 || d.Limit == nil || d.Never || d.Err != nil || d.RetryAfter <= 0 {
		return false
	}
	about := -1
	for i := range s.checks {
		c := &s.checks[i]
		if c.Advisory || c.Limit != d.Limit && c.Limit.Identity() != d.Limit.Identity() {
			continue
		}
		if about >= 0 {
			return false
		}
		about = i
	}
	if about < 0 || !deniable(&s.checks[about]) {
		return false
	}
	c := &s.checks[about]
	r := refused{retry: sent.at + d.RetryAfter, reset: sent.at + d.ResetAfter, left: d.Remaining}
	if r.left > 0 { // above its floor; if there is none, that many may be left or not
		r.left += c.Floor
	}
	r.until = min(r.retry, sent.at+maxDenial)
	noted := n.deny.note(n.deny.counter(c.Limit, c.Key), n.seen.name(c.Limit, c.Key), under(c.Limit, sent.epoch), needed(c), r, sent.at)
	return noted && sent.epoch == n.deny.epoch.Load() && n.now() < r.until
}

// rememberBlock notes that a block has begun: from now on it refuses, and for longer than
// what it was begun for.
func (n *Node) rememberBlock(call *call, d *tidegate.Decision) {
	s, sent := call.stream, call.stamp
	if len(s.checks) != 1 || !d.OK || d.Remaining > 0 || d.ResetAfter <= 0 || n.o.DenyEntries < 0 {
		return
	}
	if c := &s.checks[0]; c.Cost > 0 && final(c.Limit) && deniable(c) {
		r := refused{retry: sent.at + d.ResetAfter, reset: sent.at + d.ResetAfter}
		r.until = min(r.retry, sent.at+maxDenial)
		n.deny.note(n.deny.counter(c.Limit, c.Key), n.seen.name(c.Limit, c.Key), under(c.Limit, sent.epoch), 1, r, sent.at)
	}
}
