package guard

import (
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/spread"
)

// Health is how a Guard is doing.
type Health struct {
	State State
	// Since is when it became OK, or ceased to be.
	Since time.Time
	// Why is the failure that was last seen; nil when OK.
	Why error
	// Unasked are the rules that it could not be asked about, ever; see Over.
	Unasked []Unasked

	Counts
}

// Counts are totals since New, but for InFlight and Owed, which are of now.
type Counts struct {
	InFlight int64 // calls that the inner store has not returned from; not counted if Inline
	Owed     int64 // counters that something is still to be charged to

	Answered int64 // calls that the inner store answered, refusals included
	Rejected int64 // calls that it answered with tidegate.ErrCannotAsk
	Errors   int64 // calls that it failed
	Timeouts int64 // calls that it did not answer in time
	Busy     int64 // calls that were not made, as too many were under way
	Probes   int64

	Allowed  int64 // requests admitted by the fallback `allow`
	Denied   int64 // requests refused by the fallback `deny`
	Admitted int64 // requests admitted by the local store
	Refused  int64 // requests refused by it

	Posted int64 // amounts admitted locally and charged to the inner store
	Lost   int64 // amounts that may not have been: no answer, or too many of them
}

// counts are Counts as they are counted. The first two change with every call.
type counts struct {
	inFlight atomic.Int64
	good     spread.Counter

	errors, timeouts, busy, probes     atomic.Int64
	rejected                           atomic.Int64
	allowed, denied, admitted, refused atomic.Int64
	posted, lost                       atomic.Int64
}

// Health tells how the Guard is doing now.
func (g *Guard) Health() Health {
	cannot := g.cannot.all()
	g.mu.Lock()
	defer g.mu.Unlock()
	n := &g.count
	h := Health{
		State: g.breaker.state,
		Since: g.wall(g.turned), Unasked: cannot,
		Counts: Counts{
			InFlight: n.inFlight.Load(), Owed: int64(len(g.owed.byID)),
			Answered: int64(n.good.Load()), Rejected: n.rejected.Load(), Errors: n.errors.Load(), Timeouts: n.timeouts.Load(), Busy: n.busy.Load(), Probes: n.probes.Load(),
			Allowed: n.allowed.Load(), Denied: n.denied.Load(), Admitted: n.admitted.Load(), Refused: n.refused.Load(),
			Posted: n.posted.Load(), Lost: n.lost.Load(),
		},
	}
	if h.State != OK {
		h.Why = g.cause
	}
	return h
}
