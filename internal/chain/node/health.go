package node

import (
	"sync/atomic"
	"time"
)

// Health is how a Node is doing.
type Health struct {
	State State
	// Since is when it became OK, or ceased to be.
	Since time.Time
	// Why is the failure that was last seen; nil when OK.
	Why error
	// Servers of the backend, each by itself.
	Servers []ServerHealth
	// Unasked has all rules that it could not be asked about at some time; see Unasked.Over.
	Unasked []Unasked

	Counts
}

// ServerHealth is how a server of the backend is doing.
type ServerHealth struct {
	Name     string
	State    State
	Since    time.Time // when it became OK, or ceased to be
	Why      error     // the failure that was last seen; nil when OK
	InFlight int64     // calls that have not returned
	Backlog  int64     // counters that something is still to be charged to
}

// Counts are totals since New, except InFlight and Backlog, which are current.
type Counts struct {
	InFlight int64 // calls that the backend has not returned from
	Backlog  int64 // counters that something is still to be charged to

	Asked  int64 // requests for which the backend was asked, or that were denied
	Denied int64 // of these, refused by a remembered refusal
	Calls  int64 // calls of the backend for requests
	Shared int64 // requests answered by a call that they shared with others

	Answered int64 // requests that the backend answered, refusals included
	Rejected int64 // requests that it answered with tidegate.ErrCannotAsk
	Errors   int64 // requests for which it returned another error
	Timeouts int64 // requests that it did not answer in time
	Busy     int64 // requests for which it was not asked, as too many calls were in flight
	Probes   int64

	Allowed  int64 // requests admitted by the fallback `allow`
	Closed   int64 // requests refused by the fallback `deny`
	Admitted int64 // requests admitted by the local store
	Refused  int64 // requests refused by it

	Posted int64 // amounts admitted locally and charged to the backend
	Lost   int64 // amounts that may never be charged: tried too often, or too many of them

	LeasesLost int64 // renewals of slots whose lease had run out
}

// counts are Counts as they are counted.
type counts struct {
	good, denied, calls, shared        atomic.Uint64
	errors, timeouts, busy, probes     atomic.Int64
	allowed, closed, admitted, refused atomic.Int64
	posted, rejected                   atomic.Int64
}

// Health returns how the Node is doing now.
func (n *Node) Health() Health {
	asked, cannot, names := n.asked(), n.unaskable.all(), n.inner.Servers()
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &n.count
	denied := int64(c.denied.Load())
	h := Health{
		Since: n.start, Unasked: cannot,
		Counts: Counts{
			InFlight: n.multi.inFlight.Load(),
			Asked:    asked + denied, Denied: denied, Calls: int64(c.calls.Load()), Shared: int64(c.shared.Load()),
			Answered: int64(c.good.Load()), Rejected: c.rejected.Load(), Errors: c.errors.Load(), Timeouts: c.timeouts.Load(), Busy: c.busy.Load(), Probes: c.probes.Load(),
			Allowed: c.allowed.Load(), Closed: c.closed.Load(), Admitted: c.admitted.Load(), Refused: c.refused.Load(),
			Posted: c.posted.Load(), LeasesLost: n.leases.count(),
		},
	}
	for i, s := range n.all() {
		is := s.healthLocked()
		h.InFlight += is.InFlight
		h.Backlog += is.Backlog
		h.Lost += s.backlog.lost
		if i < len(names) {
			is.Name = names[i]
		}
		if is.Name != "" || is.State != OK {
			h.Servers = append(h.Servers, is)
		}
	}
	for i := len(n.all()); i < len(names); i++ { // servers that were never asked
		if names[i] != "" {
			h.Servers = append(h.Servers, ServerHealth{Name: names[i], Since: n.start})
		}
	}
	h.sum()
	return h
}

func (s *server) healthLocked() ServerHealth {
	is := ServerHealth{State: s.circuit.state, Since: s.node.wall(s.turned), InFlight: s.inFlight.Load(), Backlog: int64(s.backlog.counters())}
	if is.State != OK {
		is.Why = s.cause
	}
	return is
}

// sum sets State, Since and Why from those of all servers. If some are not OK, Since and Why are
// those of the first that ceased to be; otherwise Since is when the last one became OK.
func (h *Health) sum() {
	var count [Partial]int
	for i := range h.Servers {
		s := &h.Servers[i]
		count[s.State]++
		switch {
		case s.State == OK && h.Why == nil && s.Since.After(h.Since):
			h.Since = s.Since
		case s.State != OK && (h.Why == nil || s.Since.Before(h.Since)):
			h.Since, h.Why = s.Since, s.Why
		}
	}
	switch {
	case count[Degraded]+count[Recovering] == 0:
		h.State = OK
	case count[OK] > 0:
		h.State = Partial
	case count[Degraded] > 0:
		h.State = Degraded
	default:
		h.State = Recovering
	}
}

// asked returns how many requests the backend was, or would have been, asked for.
func (n *Node) asked() (sum int64) {
	for i := range n.shards {
		sh := &n.shards[i]
		sh.mu.Lock()
		sum += int64(sh.asked)
		sh.mu.Unlock()
	}
	return sum
}
