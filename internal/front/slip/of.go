package slip

import (
	"time"

	"tidegate.dev/tidegate"
)

// Of returns the slip of a refusal by d; checks are those of the request. The caller sets Node and
// Rules.
func Of(checks []tidegate.Check, d *tidegate.Decision, now time.Time) Slip {
	s := Slip{At: now, Remaining: d.Remaining, RetryAfter: d.RetryAfter}
	if d.Never {
		s.Flags |= Never
	}
	if d.Err != nil {
		s.Flags |= Unsure
	}
	if d.Receipt.Origin == tidegate.OriginLocal {
		s.Flags |= Local
	}
	l := d.Limit
	if l == nil {
		return s
	}
	s.Rule, s.Scope = l.Name, l.Scope
	switch {
	case l.Sheds():
		s.Flags |= Shed
	case l.Algorithm == tidegate.Deny:
		s.Flags |= Denied
	default:
		s.Capacity = l.Capacity()
		if s.Limit = l.String(); l.Name != "" {
			s.Limit = s.Limit[len(l.Name)+len(": "):]
		}
	}
	if t := l.Terms; t != nil {
		if t.Rule != "" {
			s.Rule = t.Rule
		}
		if t.Role == tidegate.Blocks {
			s.Flags |= Blocked
		}
	}
	for i := range checks {
		// A layer around a store may have replaced the limit by one of the same counter.
		if c := &checks[i]; c.Limit == l || c.Limit != nil && c.Limit.Identity() == l.Identity() {
			s.Key = c.Key
			break
		}
	}
	return s
}
