package node

import (
	"math"
	"time"

	"tidegate.dev/tidegate"
)

// stamp is the time, and the epoch of the deny cache, just before the backend was asked. An answer
// is dated by them, since both may have changed when it comes.
type stamp struct {
	at    time.Duration
	epoch uint64
}

func (n *Node) stamp() stamp { return stamp{n.now(), n.deny.epoch.Load()} }

// deniable reports whether a refusal of c may be remembered. A refusal by a Concurrency
// limit may not: a slot may be given back at any moment. Nor may that of an estimate, part
// of which is given back when it is settled. Of checks that only peek, a refusal is
// remembered if it is by a block, which may last longer than the refusal beside it.
func deniable(c *tidegate.Check) bool {
	l := c.Limit
	return (c.Cost > 0 || final(l)) && !c.Advisory && !c.Estimate && l.Algorithm != tidegate.Concurrency &&
		(l.Terms == nil || !l.Terms.Handling.NoDenyCache)
}

// final reports whether what is taken from l is never given back, as from the limit of a
// block.
func final(l *tidegate.Limit) bool { return l.Terms != nil && l.Terms.Handling.Final }

// denied answers checks from the deny cache; ok is false if the backend has to be asked. Of
// several remembered refusals it returns the one with the longest RetryAfter.
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

// stillRefused returns a refusal of c from before an outage whose RetryAfter is not over, even if
// other limits were changed since. It still holds: other nodes could not give anything back to the
// backend meanwhile. What was last seen of the counter would not tell as much, since it does not
// say when events came.
func (n *Node) stillRefused(c *tidegate.Check, now time.Duration) (d tidegate.Decision, ok bool) {
	r, found := n.lateRefusal(c, now)
	if !found {
		return d, false
	}
	if r.retry <= now {
		if final(c.Limit) { // the block is over: forget what was seen of it
			n.forgetSeenBefore(c, r.retry)
		}
		return d, false
	}
	return tidegate.Decision{
		Limit: c.Limit, Remaining: max(r.left-c.Floor, 0), RetryAfter: r.retry - now, ResetAfter: max(r.reset-now, 0),
		Receipt: tidegate.Receipt{Origin: tidegate.OriginRemembered},
	}, true
}

// lateRefusal returns the refusal of c that is remembered, here or by a predecessor, even if it no longer answers
// in place of the backend.
func (n *Node) lateRefusal(c *tidegate.Check, now time.Duration) (r refused, found bool) {
	if n.o.DenyEntries < 0 || !deniable(c) {
		return r, false
	}
	if r, found = n.deny.findLate(n.deny.counter(c.Limit, c.Key), c.Limit, needed(c)); !found {
		r, found = n.stillInherited(c, now)
	}
	return r, found
}

// seeRoom forgets refusals of checks that should still hold, since the backend has admitted checks, which it was
// asked about later: something was given back or reset elsewhere.
func (n *Node) seeRoom(checks []tidegate.Check, asked time.Duration) {
	if n.deny.retry.Load() <= int64(asked) {
		return
	}
	now := n.now()
	for i := range checks {
		c := &checks[i]
		r, found := n.lateRefusal(c, now)
		if found && r.retry > max(now, r.until) && r.until-maxDenial < asked { // it was asked for maxDenial before until
			n.dropRefusals(c)
		}
	}
}

// needed returns how many events there must be room for if c is to pass. A floor is like a
// higher cost: a check of cost 2 and floor 3 is refused whenever one of cost 5 is.
func needed(c *tidegate.Check) int64 {
	if cost := max(c.Cost, 1); cost <= math.MaxInt64-c.Floor {
		return cost + c.Floor
	}
	return math.MaxInt64
}

// joined reports whether another check has the same counter as c. Their costs then add up, under
// the tighter of their limits, so a refusal of c alone does not answer them.
func joined(checks []tidegate.Check, c *tidegate.Check) bool {
	for i := range checks {
		if o := &checks[i]; o != c && !o.Advisory && o.Key == c.Key && o.Limit.Identity() == c.Limit.Identity() {
			return true
		}
	}
	return false
}

// remember adds the refusal d of call to the deny cache. It reports whether denied would now
// refuse the same checks by it.
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
	if r.left > 0 { // Remaining does not include the floor; if it is 0, less than the floor may be left
		r.left += c.Floor
	}
	r.until = min(r.retry, sent.at+maxDenial)
	noted := n.deny.note(n.deny.counter(c.Limit, c.Key), n.seen.name(c.Limit, c.Key), under(c.Limit, sent.epoch), needed(c), r, sent.at)
	return noted && sent.epoch == n.deny.epoch.Load() && n.now() < r.until
}

// rememberBlock adds a block that the call has just started to the deny cache: it refuses from
// now on, for longer than the refusal that started it.
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
