package storetest

import (
	"math"
	"time"

	"tidegate.dev/tidegate"
)

// verdictLocked decides one copy: OK unless an enforcing check refuses.
func (r *reference) verdictLocked(checks []tidegate.Check, now time.Time) tidegate.Decision {
	worst := tidegate.Decision{OK: true}
	var wait time.Duration
	for i := range checks {
		c := &checks[i]
		if c.Advisory {
			continue
		}
		cost := max(1, sameCounter(checks, c))
		q := question{cost, c.Floor, c.MaxWait}
		a := r.counterLocked(c).ask(c.Limit, now, q)
		d := tidegate.Decision{
			OK: a.ok, Limit: c.Limit, Remaining: a.remaining,
			RetryAfter: a.retry, ResetAfter: a.reset,
		}
		if q.need() > c.Limit.Capacity() {
			d.OK, d.Never, d.RetryAfter = false, true, 0
		}
		if d.OK {
			d.RetryAfter = 0
			wait = max(wait, a.wait)
		}
		if worst.Limit == nil || d.Outranks(&worst) {
			worst = d
		}
	}
	if worst.OK {
		worst.Wait = wait
	}
	return worst
}

// sameCounter returns the sum of what the enforcing checks want of c's counter.
func sameCounter(checks []tidegate.Check, c *tidegate.Check) (sum int64) {
	for i := range checks {
		o := &checks[i]
		if o.Advisory || o.Key != c.Key || o.Limit.Identity() != c.Limit.Identity() {
			continue
		}
		if sum > math.MaxInt64-o.Cost {
			return math.MaxInt64
		}
		sum += o.Cost
	}
	return sum
}

// chargeLocked charges one admitted copy, marks the advisory checks that had no
// room for it, and returns the checks that paid.
func (r *reference) chargeLocked(checks []tidegate.Check, now time.Time, name receipt) (charged []tidegate.Check) {
	for i := range checks {
		c := &checks[i]
		held, q := r.counterLocked(c), question{max(1, c.Cost), c.Floor, c.MaxWait}
		if c.Advisory && (q.need() > c.Limit.Capacity() || !held.ask(c.Limit, now, q).ok) {
			c.Over = true
			continue
		}
		if c.Cost == 0 {
			continue
		}
		held.charge(c.Limit, now, name, c.Cost)
		charged = append(charged, *c)
	}
	return charged
}

// stateLocked returns what an admitted request is told: how things stand afterwards.
func (r *reference) stateLocked(checks []tidegate.Check, now time.Time) (d tidegate.Decision) {
	for i := range checks {
		c := &checks[i]
		if c.Advisory {
			continue
		}
		a := r.counterLocked(c).ask(c.Limit, now, question{0, c.Floor, c.MaxWait})
		e := tidegate.Decision{OK: true, Limit: c.Limit, Remaining: a.remaining, ResetAfter: a.reset}
		if d.Limit == nil || e.Outranks(&d) {
			d = e
		}
	}
	return d
}

// rejectLocked lets logs that count rejected requests count so many copies, and tells d what
// that leaves.
func (r *reference) rejectLocked(checks []tidegate.Check, now time.Time, copies int64, d *tidegate.Decision) {
	rejected := false
	for i := range checks {
		c := &checks[i]
		if c.Limit.CountRejected && !c.Advisory && c.Cost > 0 && c.Cost <= c.Limit.Events-c.Floor {
			for range min(copies, c.Limit.Events) { // more would only push each other out
				r.counterLocked(c).(*runs).reject(c.Limit, now, c.Cost, c.Floor)
				rejected = true
			}
		}
	}
	if rejected {
		*d = r.verdictLocked(checks, now)
	}
}
