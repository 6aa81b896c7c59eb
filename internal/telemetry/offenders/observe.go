package offenders

import (
	"context"
	"errors"
	"hash/maphash"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/draw"
)

// Observe is [Offenders.Decided] for [tidegate.Gate.Observe].
func (of *Offenders) Observe(_ *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
	of.Decided(checks, &d)
}

// Decided records a decision for its keys. An admitted request counts for every rule that it was
// held to, a refused one for the rule that refused it. It allocates nothing, and keeps neither
// checks nor keys.
func (of *Offenders) Decided(checks []tidegate.Check, d *tidegate.Decision) {
	if d.Err != nil && errors.Is(d.Err, context.Canceled) { // the client left, so nothing was decided
		return
	}
	if !d.OK {
		if d.Limit != nil {
			of.Refused(of.get(nameOf(d.Limit)), checks, d, of.random())
		}
		return
	}
	// The checks of a rule are adjacent.
	for len(checks) > 0 && checks[0].Limit != nil {
		name, over := nameOf(checks[0].Limit), checks[0].Over
		n := 1
		for n < len(checks) && checks[n].Limit != nil && nameOf(checks[n].Limit) == name {
			over = over || checks[n].Over
			n++
		}
		of.Admitted(of.get(name), checks[:n], over, d, of.random())
		checks = checks[n:]
	}
}

// Admitted is Decided for the checks of one rule and an admitted request, for a caller that has
// looked up the rule and drawn a random number. There is at least one check; over says whether Over
// is set in any.
func (of *Offenders) Admitted(r *Rule, checks []tidegate.Check, over bool, d *tidegate.Decision, random uint32) {
	class := common
	if over && tried(checks) {
		class = rare
	}
	if r.looks(class, random) {
		of.admitted(r, class, &checks[0], d)
	}
}

// AdmittedAll is Admitted for all rules of a request without any check over. One random number
// suffices, since each rule samples other requests.
func (of *Offenders) AdmittedAll(rules []*Rule, checks []tidegate.Check, d *tidegate.Decision, random uint32) {
	for i, r := range rules {
		if r.looks(common, random) {
			of.admitted(r, common, firstOf(checks, i), d)
		}
	}
}

// firstOf returns the first check of a rule, given the index of the rule among those of checks.
func firstOf(checks []tidegate.Check, rule int) *tidegate.Check {
	at := 0
	for ; rule > 0; rule-- {
		name := nameOf(checks[at].Limit)
		for nameOf(checks[at].Limit) == name {
			at++
		}
	}
	return &checks[at]
}

// Refused is Decided for a refused request, for a caller that has looked up the refusing rule and
// drawn a random number.
func (of *Offenders) Refused(r *Rule, checks []tidegate.Check, d *tidegate.Decision, random uint32) {
	if !r.looks(rare, random) {
		return
	}
	if c := refusing(checks, d); c != nil {
		of.refused(r, c.Key, d)
	}
}

// One records a decision about one key under the limit that decided.
func (of *Offenders) One(key string, d *tidegate.Decision) {
	l := d.Limit
	if l == nil {
		return
	}
	r, class := of.get(nameOf(l)), common
	if !d.OK {
		class = rare
	}
	switch {
	case !r.looks(class, of.random()):
	case d.OK:
		of.admitted(r, class, &tidegate.Check{Key: key, Limit: l}, d)
	default:
		of.refused(r, key, d)
	}
}

// Tried records a decision about a key that a limit in shadow mode admits: over means that it would
// have refused.
func (of *Offenders) Tried(key string, l *tidegate.Limit, over bool) {
	r, class := of.get(nameOf(l)), common
	if over {
		class = rare
	}
	if r.looks(class, of.random()) {
		of.admitted(r, class, &tidegate.Check{Key: key, Limit: l}, &tidegate.Decision{})
	}
}

// looks reports whether a decision of that class is sampled.
func (r *Rule) looks(class int, random uint32) bool { return random&r.classes[class].mask.Load() == 0 }

func (of *Offenders) random() uint32 {
	if of.draw != nil {
		return of.draw()
	}
	return draw.Uint32()
}

// refused records a request that a rule refused.
func (of *Offenders) refused(r *Rule, key string, d *tidegate.Decision) {
	r, weight := of.begin(r, rare)
	if r == nil {
		return
	}
	if d.Err == nil { // otherwise the store has failed, and the limit did not refuse
		of.note(r, refused, d.Limit, key, weight, weight)
	}
	of.note(r, requests, d.Limit, key, weight, weight)
	of.mu.Unlock()
}

// admitted records a request that a rule admitted; if it is rare, a limit of the rule in shadow
// mode would have refused it.
func (of *Offenders) admitted(r *Rule, class int, c *tidegate.Check, d *tidegate.Decision) {
	r, weight := of.begin(r, class)
	if r == nil {
		return
	}
	if class == rare {
		of.note(r, wouldRefuse, c.Limit, c.Key, weight, weight)
	}
	of.note(r, requests, c.Limit, c.Key, weight, weight)
	if d.Limit != nil && d.Err == nil && nameOf(d.Limit) == nameOf(c.Limit) {
		if used := usedOf(d); used >= nearShare {
			of.note(r, nearest, d.Limit, c.Key, used, weight)
		}
	}
	of.mu.Unlock()
}

// begin locks mu, and returns the rule that a sampled decision counts for, and how many decisions
// it stands for. It returns nil, with mu unlocked, if mu is busy and not every decision is sampled:
// the weight of the skipped decision is added to the next one.
func (of *Offenders) begin(r *Rule, class int) (now *Rule, weight uint32) {
	c := &r.classes[class]
	mask := c.mask.Load()
	if !of.mu.TryLock() {
		if mask != 0 {
			c.carry.Add(mask + 1)
			return nil, 0
		}
		of.mu.Lock()
	}
	if r.gone {
		// The rule was dropped meanwhile: look up a later one of that name, if it is in force.
		of.table.replace(*of.table.all.Load()) // while mu is still held
		of.mu.Unlock()
		r = of.get(r.name)
		of.mu.Lock()
		if r.gone {
			of.mu.Unlock()
			return nil, 0
		}
		c = &r.classes[class]
	}
	weight = mask + 1
	if c.carry.Load() != 0 {
		weight += c.carry.Swap(0)
	}
	of.budget.spent(c, weight)
	of.looked++
	return r, weight
}

// note adds an observation to a list of r.
func (of *Offenders) note(r *Rule, k kind, limit *tidegate.Limit, key string, value, weight uint32) {
	l := of.list(r, k)
	of.pool.advance(l, of.now)
	if len(key) > maxKey { // from a matcher that does not make keys with [tidegate.Key]
		key = tidegate.Key(key)
	}
	hash := (maphash.String(of.seed, key) ^ uint64(l.salt)) * 0x9e3779b97f4a7c15 // spreads the salt
	of.pool.note(l, hash^hash>>32, limit, key, value, weight)
}

// refusing returns the check of the limit that refused.
func refusing(checks []tidegate.Check, d *tidegate.Decision) *tidegate.Check {
	for i := range checks {
		// A layer around a store may have replaced the limit by one with the same counter.
		if c := &checks[i]; c.Limit == d.Limit || c.Limit != nil && c.Limit.Identity() == d.Limit.Identity() {
			return c
		}
	}
	return nil
}

// tried reports whether a limit that does not decide would have refused.
func tried(checks []tidegate.Check) bool {
	for i := range checks {
		c := &checks[i]
		if c.Advisory && c.Over && (c.Limit.Terms == nil || c.Limit.Terms.Role != tidegate.Marks) {
			return true
		}
	}
	return false
}

const (
	// wholeLimit stands for a limit that is used up, nearShare for the share from which on it is
	// near.
	wholeLimit = 1_000_000
	nearShare  = wholeLimit / 2
)

// usedOf returns how much of a limit was used after an admitted request, in units of 1/wholeLimit.
func usedOf(d *tidegate.Decision) uint32 {
	capacity := d.Limit.Capacity()
	if capacity <= 0 || d.Remaining >= capacity {
		return 0
	}
	return uint32((1 - float64(max(d.Remaining, 0))/float64(capacity)) * wholeLimit)
}
