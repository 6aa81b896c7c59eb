package lint

import "time"

func expiredUntil(p *pass) {
	for _, r := range p.file.Rules {
		for i := range r.For {
			if b := &r.For[i]; p.expired(b) {
				message := "this branch of " + quote(r.Name.Text) + " ended on " + b.Until.Format(time.RFC3339) + " and is ignored"
				if b.Reason != "" {
					message += " (it was for: " + b.Reason + ")"
				}
				p.warn(b.UntilPos, message, "take the branch out, or move its `until`")
			}
		}
	}
}
