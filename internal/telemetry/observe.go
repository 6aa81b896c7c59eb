package telemetry

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/draw"
	"tidegate.dev/tidegate/internal/telemetry/outcome"
)

// SetRules sets the rules in force, so that each is exported from the beginning, and removed ones
// no longer are. limits are their limits; see [Metrics.WatchStore].
func (m *Metrics) SetRules(names []string, limits []*tidegate.Limit) {
	m.setRules(names)
	m.watched.limits.Store(&limits)
}

// Door counts the decisions for one listener. The methods of Metrics itself count those of the
// gateway.
type Door struct {
	*Metrics
	name     string
	index    int      // index among the doors
	requests counters // of all rules together, except usual ones, which combinations count
}

// Door returns the Door of a listener. It must be called before requests are decided.
func (m *Metrics) Door(name string) *Door {
	d := &Door{Metrics: m, name: name, index: len(m.doors)}
	m.doors = append(m.doors, d)
	return d
}

// Observe is [Door.Observe] of the gateway.
func (m *Metrics) Observe(_ *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
	m.gateway.Decided(checks, &d)
}

// Decided is [Door.Decided] of the gateway.
func (m *Metrics) Decided(checks []tidegate.Check, d *tidegate.Decision) {
	m.gateway.Decided(checks, d)
}

// Observe is [Door.Decided] for [tidegate.Gate.Observe].
func (door *Door) Observe(_ *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
	door.Decided(checks, &d)
}

// Decided counts a decision. An admitted request counts for every rule that it was held to, a
// refused one for the rule that refused it, since the others were not asked. It allocates nothing.
func (door *Door) Decided(checks []tidegate.Check, d *tidegate.Decision) {
	random := draw.Uint32() // for all samples
	door.next.ended(random)
	if door.usual(d) {
		if c := door.combination(checks); c != nil {
			c.add(door.index, 1)
			if door.lists != nil {
				door.lists.AdmittedAll(c.who[:c.n], checks, d, random)
			}
			return
		}
	}
	m := door.Metrics
	whole := outcome.Of(d)
	door.count(d, whole, 1)
	if !d.OK || whole == outcome.Canceled {
		door.refused(checks, d, whole, random)
		return
	}
	// The checks of a rule are adjacent.
	for len(checks) > 0 && checks[0].Limit != nil {
		rule, over := ruleOf(checks[0].Limit), checks[0].Over
		n := 1
		for n < len(checks) && checks[n].Limit != nil && ruleOf(checks[n].Limit) == rule {
			over = over || checks[n].Over
			n++
		}
		counts := m.rule(rule)
		counts.admitted(checks[:n], d)
		if counts.who != nil {
			m.lists.Admitted(counts.who, checks[:n], over, d, random)
		}
		checks = checks[n:]
	}
}

// count counts n requests by outcome and by who decided.
func (door *Door) count(d *tidegate.Decision, whole outcome.Outcome, n int64) {
	door.requests.addMany(whole, n)
	if outcome.Decided(d) {
		door.decided[d.Receipt.Origin].Add(uint64(n))
	}
}

// refused counts a refused request, or one that was not decided because its client left.
func (door *Door) refused(checks []tidegate.Check, d *tidegate.Decision, whole outcome.Outcome, random uint32) {
	if d.Limit == nil {
		return
	}
	counts := door.rule(ruleOf(d.Limit))
	counts.add(whole)
	counts.addMore(d, whole, 1)
	if counts.who != nil && whole != outcome.Canceled {
		door.lists.Refused(counts.who, checks, d, random)
	}
}

// Shadowed counts a decision of a limit in shadow mode: over means that it would have refused.
// Lists of offenders are not updated, as there is no key.
func (door *Door) Shadowed(limit *tidegate.Limit, over bool) {
	checks := [1]tidegate.Check{{Limit: limit, Advisory: true, Over: over}}
	d := tidegate.Decision{OK: true, Limit: limit, Granted: 1}
	door.count(&d, outcome.OK, 1)
	door.rule(ruleOf(limit)).admitted(checks[:], &d)
}

// ObserveMany counts n decisions like d, each about one check. Lists of offenders are not updated,
// as there are no keys.
func (door *Door) ObserveMany(d *tidegate.Decision, n int64) {
	door.next.ended(draw.Uint32())
	if door.usual(d) {
		if c := door.combination([]tidegate.Check{{Limit: d.Limit}}); c != nil {
			c.add(door.index, uint64(n))
			return
		}
	}
	whole := outcome.Of(d)
	door.count(d, whole, n)
	if d.Limit == nil {
		return
	}
	counts := door.rule(ruleOf(d.Limit))
	counts.addMany(whole, n)
	counts.addMore(d, whole, n)
}

// addMore counts further properties of n decisions that a limit made or would have made.
func (r *ruleMetrics) addMore(d *tidegate.Decision, whole outcome.Outcome, n int64) {
	switch {
	case whole == outcome.Canceled:
		return
	case d.Err != nil || d.Receipt.Origin == tidegate.OriginLocal:
		r.addMany(failed(d, d.Limit), n)
	}
	if d.Queued {
		r.addMany(outcome.Queued, n)
	}
}

// failed returns how limit was decided when the store had no answer.
func failed(d *tidegate.Decision, limit *tidegate.Limit) outcome.Outcome {
	switch {
	case d.Err == nil && (!d.OK || countsLocally(limit)):
		return outcome.FailedLocal
	case d.OK: // also if another rule continues locally
		return outcome.FailedOpen
	}
	return outcome.FailedClosed
}

// countsLocally reports whether limit was counted locally in a decision that was made locally. Limits
// that leave it to the store are.
func countsLocally(limit *tidegate.Limit) bool {
	if limit.Terms == nil {
		return true
	}
	mode := limit.Terms.Handling.OnStoreFailure
	return mode == tidegate.FailDefault || mode == tidegate.FailLocal
}

// admitted counts a request for a rule that admitted it.
func (r *ruleMetrics) admitted(checks []tidegate.Check, d *tidegate.Decision) {
	decides, is, would := false, outcome.OK, outcome.OK
	if d.Queued {
		is = outcome.Waited
	}
	elastic, queued := false, false
	var decider *tidegate.Limit
	for i := range checks {
		c := &checks[i]
		switch {
		case !c.Advisory:
			decides, decider = true, c.Limit
			queued = queued || d.Queued && hasQueue(c)
		case c.Over && roleOf(c.Limit) == tidegate.Marks:
			is = outcome.Soft
			elastic = elastic || c.Limit.Terms.Elastic
		case c.Over:
			would = outcome.ShadowRefused
		}
	}
	if d.Err != nil {
		is = outcome.Failed
		if !decides && would == outcome.OK { // an access rule in shadow mode needs no store
			would = outcome.ShadowFailed
		}
	}
	switch {
	case !decides && would != outcome.OK:
	default:
		r.add(is)
	}
	if would != outcome.OK {
		r.add(would)
	}
	if !decides {
		return
	}
	if would == outcome.ShadowRefused {
		r.add(outcome.Candidate)
	}
	if elastic && is == outcome.Soft {
		r.add(outcome.Elastic)
	}
	if queued {
		r.add(outcome.Queued)
	}
	if d.Err != nil || d.Receipt.Origin == tidegate.OriginLocal {
		r.add(failed(d, decider))
	}
}

// hasQueue reports whether requests can wait for the limit of c.
func hasQueue(c *tidegate.Check) bool {
	return c.MaxWait > 0 || c.Limit.Terms != nil && c.Limit.Terms.Handling.Queue != nil
}

// ruleOf returns the rule of a limit; "" if it belongs to none. It does not use the limit's name,
// which may be anything.
func ruleOf(l *tidegate.Limit) string {
	if l.Terms == nil {
		return ""
	}
	return l.Terms.Rule
}

func roleOf(l *tidegate.Limit) tidegate.Role {
	if l.Terms == nil {
		return tidegate.Decides
	}
	return l.Terms.Role
}
