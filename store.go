package tidegate

import (
	"context"
	"time"
)

// Check is one key held to one limit at one cost.
type Check struct {
	// Key is who is counted. Different callers must have different keys; see [Key].
	Key string
	// Limit is what the key is held to; shared and immutable.
	Limit *Limit
	// Cost in events. 0 peeks: nothing is charged, and the answer is the one
	// that a cost of 1 would get.
	Cost int64
	// Advisory checks (shadow, candidate) are charged if the request is
	// admitted and they would themselves pass. They never decide.
	Advisory bool
	// MaxWait is how far into the future a bucket may be charged; 0 means now or
	// never. Other algorithms ignore it.
	MaxWait time.Duration
	// Floor is how many events have to remain after this check for others with a lower
	// floor: otherwise it is refused. Decision.Remaining is what remains above the floor.
	// The floor concerns this request only; it does not count as used.
	Floor int64
	// Estimate marks a cost that [Reserver.Settle] or [Visit.End] replaces by
	// the true one.
	Estimate bool
	// Unattended: nobody can hold the request, so it does not wait in Handling.Queue;
	// see [Request.Unattended].
	Unattended bool
	// Over is written by Take, for advisory checks only: there was no room for what
	// was granted. It means nothing when the request was refused.
	Over bool
}

// Store is where counters live. Every store passes the suite of package
// store/storetest.
type Store interface {
	// Take grants k ≤ n whole copies of the vector checks, each all or none,
	// by the store's own clock. Decision.Granted is k, and Decision.OK means
	// k > 0. A refusal charges nothing, except to limits that count what is
	// rejected, by them or by another limit of the vector. Take writes Over of
	// the advisory checks and keeps no reference to checks, nor to their keys,
	// which may lie in memory that is used again. The error is nil unless the
	// store could not answer; a refusal is not an error.
	Take(ctx context.Context, checks []Check, n int) (Decision, error)
	// Adjust with a cost > 0 charges whether there is room or not, into a debt of at
	// most one capacity. With a cost < 0 it returns what was taken by the Decision with
	// the receipt r, where it still counts. A turn of a bucket that was booked ahead is
	// returned at its own instant, r.At plus Wait. In a LeakyBucket each event of a
	// charge has a turn (see [Limit.Turn]), and turns are freed only if they are the last
	// in the queue; others stay unused. With [Receipt.Latest], what was charged last is
	// returned. Adjust is not idempotent: do not retry it.
	Adjust(ctx context.Context, r Receipt, checks []Check) error
}

// OneTaker is a Store with a shorter way to one enforcing check. TakeOne answers
// what Take does for n = 1 and a vector of that check; its arguments are spelled
// out so that they travel in registers and a caller needs no memory for them.
type OneTaker interface {
	TakeOne(ctx context.Context, key string, limit *Limit, cost int64, maxWait time.Duration) (Decision, error)
}

// LocalFallback is a Store that goes on counting in this process when its counters cannot be
// reached, as [FailLocal] demands. The store of package fleet is one.
type LocalFallback interface {
	// LocalFallback does nothing; it marks the Store.
	LocalFallback()
}

// Renewer is a Store whose Concurrency leases can be prolonged. A slot is
// taken by Take and given back by Adjust with a cost of -1; its Receipt is
// unique among the leases of a store and names the lease.
type Renewer interface {
	// Renew prolongs by the limit's Period the leases that r names.
	// It returns ErrLeaseLost when one of them has run out.
	Renew(ctx context.Context, r Receipt, checks []Check) error
}

// Reserver is a Store that keeps a record of an estimated charge, so that
// whoever holds its receipt can settle it, once.
type Reserver interface {
	// Reserve is Take of one copy that also records, for ttl, what was charged
	// for the checks marked Estimate. The Receipt of the Decision names the record;
	// its Handle is zero when there is none, as when it was refused.
	Reserve(ctx context.Context, checks []Check, ttl time.Duration) (Decision, error)
	// Settle replaces the estimates by actual, returning or charging the
	// difference, and forgets the record in the same step. It uses only what the text
	// of r has; see [Receipt.MarshalText]. It returns ErrSettled when there is no such
	// record: it was settled before, or has expired and stays charged. Of several calls at
	// the same time, only one returns nil. It returns ErrElsewhere when another process has
	// the counters.
	Settle(ctx context.Context, r Receipt, actual int64) error
}

// Resetter is a Store that can forget: the keys of checks start afresh.
type Resetter interface {
	Reset(ctx context.Context, checks []Check) error
}
