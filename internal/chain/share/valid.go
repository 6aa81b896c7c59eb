package share

import "tidegate.dev/tidegate"

// Valid reports whether no store would return an error for checks.
func Valid(checks []tidegate.Check) bool {
	for i := range checks {
		c := &checks[i]
		if l := c.Limit; l == nil || c.Cost < 0 || c.Floor < 0 || l.Algorithm == tidegate.Deny || l.Identity() == "" {
			return false
		}
	}
	return true
}
