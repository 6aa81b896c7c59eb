package desk

import (
	"context"
	"strings"

	"tidegate.dev/tidegate"
)

// Held returns the checks that decide about the request, each with its key and a cost of 0. denied
// means that an access rule refuses the request, however little is used; checks is nil then. Held
// charges nothing.
func (d *Desk) Held(ctx context.Context, r *tidegate.Request) (checks []tidegate.Check, denied bool) {
	r.Unattended = true
	if got := d.gate.Peek(ctx, r); !got.OK && got.Limit != nil && got.Limit.Algorithm == tidegate.Deny && !got.Limit.Sheds() {
		return nil, true
	}
	d.gate.PeekEach(ctx, r, func(c tidegate.Check, _ tidegate.Decision) {
		c.Key = strings.Clone(c.Key) // its memory is reused
		checks = append(checks, c)
	})
	return checks, false
}
