package telemetry

import (
	"context"
	"errors"

	"tidegate.dev/tidegate"
)

// ruleMetrics is what is counted for a rule.
type ruleMetrics struct{ counters }

// SetRules announces the rules in force, so that each is shown from the beginning,
// and those are not that are gone. limits are where they count; see [Metrics.WatchStore].
func (m *Metrics) SetRules(names []string, limits []*tidegate.Limit) {
	m.rules.announce(names)
	m.watched.limits.Store(&limits)
}

// Observe counts a decision: it is for [tidegate.Gate.Observe]. An admitted request
// counts for every rule that it was held to, a refused one for the rule that
// refused it, since the others were not asked for their room. It allocates nothing.
func (m *Metrics) Observe(_ *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
	whole := verdict(&d)
	m.requests.add(whole)
	if !d.OK || whole == canceled {
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
		m.admitted(rule, checks[:n], d.Err != nil)
		checks = checks[n:]
	}
}

// verdict is what became of a request by all rules together.
func verdict(d *tidegate.Decision) outcome {
	switch {
	case errors.Is(d.Err, context.Canceled): // whatever the fail mode makes of it
		return canceled
	case d.Err != nil:
		return failed
	case d.OK && d.Soft:
		return soft
	case d.OK:
		return ok
	case d.Limit != nil && d.Limit.Algorithm == tidegate.Deny:
		return denied
	}
	return refused
}

// admitted counts a request for a rule that let it pass.
func (m *Metrics) admitted(rule string, checks []tidegate.Check, storeFailed bool) {
	counts := m.rules.get(rule)
	if storeFailed {
		counts.add(failed)
		return
	}
	decides, is, would := false, ok, ok
	for i := range checks {
		c := &checks[i]
		switch {
		case !c.Advisory:
			decides = true
		case c.Over && roleOf(c.Limit) == tidegate.Marks:
			is = soft
		case c.Over:
			would = shadowRefused
		}
	}
	if decides || would == ok {
		counts.add(is)
	}
	if would != ok {
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
