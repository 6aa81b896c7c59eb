package telemetry

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/outcome"
)

// ruleMetrics is what is counted for a rule.
type ruleMetrics struct{ counters }

// SetRules announces the rules in force, so that each is shown from the beginning,
// and those are not that are gone. limits are where they count; see [Metrics.WatchStore].
func (m *Metrics) SetRules(names []string, limits []*tidegate.Limit) {
	m.rules.announce(names)
	m.watched.limits.Store(&limits)
}

// Door counts the decisions that one listener asks for. The Metrics' own count those of
// the gateway.
type Door struct {
	*Metrics
	name     string
	requests counters // of all rules together
}

// Door returns the Door of a listener. It must not be called once requests are decided.
func (m *Metrics) Door(name string) *Door {
	d := &Door{Metrics: m, name: name}
	m.doors = append(m.doors, d)
	return d
}

// Observe is [Door.Observe] of the gateway.
func (m *Metrics) Observe(r *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
	m.gateway.Observe(r, checks, d)
}

// Observe counts a decision: it is for [tidegate.Gate.Observe]. An admitted request
// counts for every rule that it was held to, a refused one for the rule that
// refused it, since the others were not asked for their room. It allocates nothing.
func (door *Door) Observe(_ *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
	m := door.Metrics
	whole := outcome.Of(&d)
	door.requests.add(whole)
	if outcome.Decided(&d) {
		m.decided[d.Receipt.Origin].Add(1)
	}
	if !d.OK || whole == outcome.Canceled {
		if d.Limit != nil {
			m.rules.get(ruleOf(d.Limit)).add(whole)
		}
		return
	}
	// The checks of a rule stand together.
	for len(checks) > 0 && checks[0].Limit != nil {
		rule := ruleOf(checks[0].Limit)
		n := 1
		for n < len(checks) && checks[n].Limit != nil && ruleOf(checks[n].Limit) == rule {
			n++
		}
		m.admitted(rule, checks[:n], &d)
		checks = checks[n:]
	}
}

// ObserveMany counts n decisions that ended like d, each about one check.
func (door *Door) ObserveMany(d *tidegate.Decision, n int64) {
	m, whole := door.Metrics, outcome.Of(d)
	door.requests.addMany(whole, n)
	if outcome.Decided(d) {
		m.decided[d.Receipt.Origin].Add(uint64(n))
	}
	if d.Limit != nil {
		m.rules.get(ruleOf(d.Limit)).addMany(whole, n)
	}
}

// admitted counts a request for a rule that let it pass.
func (m *Metrics) admitted(rule string, checks []tidegate.Check, d *tidegate.Decision) {
	counts := m.rules.get(rule)
	decides, is, would := false, outcome.OK, outcome.OK
	if d.Queued {
		is = outcome.Waited
	}
	for i := range checks {
		c := &checks[i]
		switch {
		case !c.Advisory:
			decides = true
		case c.Over && roleOf(c.Limit) == tidegate.Marks:
			is = outcome.Soft
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
	if decides || would == outcome.OK {
		counts.add(is)
	}
	if would != outcome.OK {
		counts.add(would)
	}
}

// ruleOf is the name of a limit's rule, "" for one that is of none: the name of a
// limit may be anything.
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
