package tidegate

import "time"

// Decision is the answer to a request. It is about one limit: for a refusal, the
// refusing limit that is Never, or else has the longest RetryAfter; for an admission,
// the limit with the least left in proportion to its capacity.
type Decision struct {
	// OK: it may go ahead, after Wait.
	OK bool
	// Never: the cost is above the limit's capacity and can never fit, or the
	// limit is an access rule, unless it sheds load; see [Limit.Sheds].
	Never bool
	// Soft: it is OK although it is above a limit that only marks; see [Marks].
	Soft bool
	// Queued: it waited in a queue before this answer, which may be a refusal.
	Queued bool
	// Limit is the one that decided; nil when nothing limits the request.
	Limit *Limit
	// Granted copies of the request: 1 for a single one that is OK.
	Granted int64
	// Remaining events that would still pass now: 0 when used up.
	Remaining int64
	// RetryAfter is, for a refusal, after how long the same request would pass if
	// nothing else came: a moment earlier it would not. 0 when OK or Never. If Err is
	// set or the limit sheds load, it is only a suggestion.
	RetryAfter time.Duration
	// ResetAfter is after how long nothing of the limit would be used any more, if nothing
	// else came.
	ResetAfter time.Duration
	// Wait is how long an admitted request has to wait for its turn; 0 unless
	// the check allowed a MaxWait.
	Wait time.Duration
	// Waited is how long a store has already let the request wait for a turn in a
	// bucket, counted from its charge: the turn was due at Receipt.At plus Waited. 0 if
	// the request waited before it was charged.
	Waited time.Duration
	// Receipt says which charge this is about, and who decided.
	Receipt Receipt
	// Err says why the store could not answer. The fail mode has then decided whether it is
	// OK, see [Limiter.OnStoreFailure]; or it is refused because the caller has left.
	Err error
}

// Outranks reports whether d rather than other is what the caller should be
// told about: a refusal before an admission; of two refusals, one that is Never,
// or else the longer wait; of two admissions, the smaller share left.
func (d *Decision) Outranks(other *Decision) bool {
	switch {
	case other.Limit == nil || d.Limit == nil:
		return d.Limit != nil
	case d.OK != other.OK:
		return !d.OK
	case !d.OK && d.Never != other.Never:
		return d.Never
	case !d.OK:
		return d.RetryAfter > other.RetryAfter
	}
	left, others := float64(d.Remaining), float64(other.Remaining)
	return left*float64(other.Limit.Capacity()) < others*float64(d.Limit.Capacity())
}
