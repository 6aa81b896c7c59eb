package storetest

import (
	"fmt"
	"strings"

	"tidegate.dev/tidegate"
)

// show returns a Decision as it is best read in a failure.
func show(d tidegate.Decision) string {
	var b strings.Builder
	switch {
	case d.OK:
		fmt.Fprintf(&b, "ok granted %d remaining %d", d.Granted, d.Remaining)
	case d.Never:
		fmt.Fprintf(&b, "never remaining %d", d.Remaining)
	default:
		fmt.Fprintf(&b, "no remaining %d", d.Remaining)
	}
	if d.RetryAfter != 0 {
		fmt.Fprintf(&b, " retry %s", d.RetryAfter)
	}
	if d.Wait != 0 {
		fmt.Fprintf(&b, " wait %s", d.Wait)
	}
	fmt.Fprintf(&b, " reset %s", d.ResetAfter)
	if d.Limit == nil {
		return b.String() + " by no limit"
	}
	return b.String() + " by " + d.Limit.String()
}

func describe(checks []tidegate.Check) string {
	parts := make([]string, len(checks))
	for i, c := range checks {
		limit := "nil"
		if c.Limit != nil {
			limit = c.Limit.String()
		}
		parts[i] = fmt.Sprintf("key %q cost %d of %s", c.Key, c.Cost, limit)
		if c.Floor != 0 {
			parts[i] += fmt.Sprintf(" above %d", c.Floor)
		}
		if c.Advisory {
			parts[i] += " (advisory)"
		}
		if c.Over {
			parts[i] += " (over)"
		}
	}
	return "[" + strings.Join(parts, "; ") + "]"
}
