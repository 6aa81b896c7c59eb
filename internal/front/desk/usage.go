package desk

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
)

// Use is where a caller stands with one limit.
type Use struct {
	Rule      string
	Limit     *tidegate.Limit // as clients are told it
	Used      int64
	Remaining int64
	// RetryAfter is when the next request would pass; 0: now.
	RetryAfter time.Duration
	// ResetAfter is when nothing will be used any more.
	ResetAfter time.Duration
	// Blocked: the rule refuses because it refused before.
	Blocked bool
	// Err is why the rest is not known.
	Err error
}

// Usage tells of every limit that the request is held to, and charges nothing. A block is
// only told of while it refuses.
func (d *Desk) Usage(ctx context.Context, r *tidegate.Request) (all []Use) {
	r.Unattended = true
	d.gate.PeekEach(ctx, r, func(c tidegate.Check, got tidegate.Decision) {
		u := Use{Limit: c.Limit, RetryAfter: got.RetryAfter, ResetAfter: got.ResetAfter, Err: got.Err}
		if terms := c.Limit.Terms; terms != nil {
			u.Rule = terms.Rule
			if u.Blocked = terms.Role == tidegate.Blocks; u.Blocked && got.OK {
				return
			}
			if terms.Answer.Nominal != nil {
				u.Limit = terms.Answer.Nominal
			}
		}
		// What a ceiling leaves above the limit is not told as remaining.
		u.Remaining = max(0, got.Remaining-(c.Limit.Capacity()-u.Limit.Capacity()))
		u.Used = max(0, u.Limit.Capacity()-u.Remaining)
		all = append(all, u)
	})
	return all
}
