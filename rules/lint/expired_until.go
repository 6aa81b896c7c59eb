package lint

import (
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func expiredUntil(p *pass) {
	for _, r := range p.whole.Rules {
		for i := range r.For {
			b := &r.For[i]
			if b.Made || !ended(b, p.now) {
				continue
			}
			message := "this branch of " + diag.Quote(r.Name.Text) + " ended at " + b.Until.Format(time.RFC3339) + " and is ignored"
			if b.Reason != "" {
				message += " (it was for: " + b.Reason + ")"
			}
			p.warn(b.UntilPos, message, "remove the branch, or extend its `until`")
		}
	}
}

// ended reports whether the time of b has passed.
func ended(b *rulefile.Branch, now time.Time) bool {
	return !b.Until.IsZero() && !b.Until.After(now)
}
