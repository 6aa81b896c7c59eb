package desk

import (
	"context"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// Use is how much of one limit a caller has used.
type Use struct {
	Rule      string
	Key       string          // of the counter
	Limit     *tidegate.Limit // as clients are told about it
	Used      int64
	Remaining int64
	// RetryAfter is after how long the next request would pass; 0 means now.
	RetryAfter time.Duration
	// ResetAfter is after how long nothing would be used any more.
	ResetAfter time.Duration
	// Blocked: the rule blocks the caller because of an earlier refusal.
	Blocked bool
	// Err says why the rest is unknown.
	Err error
}

// Usage returns the use of every limit that applies to the request, and charges nothing. A block is
// included only while it refuses.
func (d *Desk) Usage(ctx context.Context, r *tidegate.Request) (all []Use) {
	r.Unattended = true
	d.gate.PeekEach(ctx, r, func(c tidegate.Check, got tidegate.Decision) {
		l := c.Limit
		u := Use{Key: strings.Clone(c.Key), Limit: l, Blocked: blocks(l), RetryAfter: got.RetryAfter, ResetAfter: got.ResetAfter, Err: got.Err}
		if u.Blocked && got.OK {
			return
		}
		if l.Terms != nil {
			u.Rule = l.Terms.Rule
		}
		if shown := shown(l); shown != nil {
			u.Limit = shown
		}
		u.Remaining = left(l, u.Limit, got.Remaining)
		u.Used = max(0, u.Limit.Capacity()-u.Remaining)
		all = append(all, u)
	})
	return all
}
