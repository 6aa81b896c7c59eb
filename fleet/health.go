package fleet

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/node"
)

// The values of Health.Status.
const (
	OK         = "ok"         // Redis decides
	Partial    = "partial"    // Redis decides, but about some limits it cannot be asked
	Degraded   = "degraded"   // Redis does not answer: on_store_failure of each limit decides
	Recovering = "recovering" // Redis answers again, and traffic returns to it gradually
)

// Health is how a Store is doing: by what becomes of requests and, when there are none, by
// heartbeats.
type Health struct {
	Status string
	// Since is when it became OK, or ceased to be.
	Since time.Time
	// Why it is not OK.
	Why error
	// Instances that share the limits, as far as is known.
	Instances int
	// Unasked are limits that Redis, while it works, cannot be asked about.
	Unasked []Unasked
	// Warnings are of servers that do not keep counters as they should.
	Warnings []string
	// Connection says why the connections to Redis are of no use, if that is known.
	Connection error
}

// Unasked is a limit that Redis cannot be asked about: its fail mode decides.
type Unasked struct {
	Rule  string // the name of the limit, or of all that were asked about together
	Why   error
	Since time.Time
	Count int64 // requests so far
	// Over: it can be asked about again.
	Over bool
}

// LostLease is slots whose leases had run out when they were to be renewed, because Redis
// was away for longer than that or has lost them: others may have been admitted beside
// those who hold them.
type LostLease struct {
	Rule  string // the name of the limit, or of all that were renewed together
	Since time.Time
	Count int64 // renewals so far
	// Over: none was lost for a minute.
	Over bool
}

// Stats are totals since Open, but for InFlight and Owed, which are of now.
type Stats struct {
	InFlight int64 // calls that Redis has not replied to
	Owed     int64 // counters that something is still to be charged to

	Asked  int64 // requests that were put to Redis, or denied
	Denied int64 // of these, refused by a remembered refusal
	Calls  int64 // of Redis, for requests
	Shared int64 // requests answered by a call that was for others as well

	Answered int64 // requests that Redis answered, refusals included
	Rejected int64 // requests that it could not be asked about
	Errors   int64 // requests that it failed
	Timeouts int64 // requests that it did not answer in time
	Busy     int64 // requests that were not put to it, as too many calls were out
	Probes   int64

	Allowed  int64 // requests admitted by FailOpen
	Closed   int64 // requests refused by FailClosed
	Admitted int64 // requests admitted by FailLocal
	Refused  int64 // requests refused by it

	Posted int64 // amounts admitted by FailLocal and charged to Redis later
	Lost   int64 // amounts that may never be

	LeasesLost int64 // renewals of slots whose lease had run out
}

// Health tells how the Store is doing now.
func (s *Store) Health() Health {
	h := s.standing.now()
	h.Warnings = s.evictions.warnings()
	return h
}

// Stats tells what happened so far.
func (s *Store) Stats() Stats { return Stats(s.node.Health().Counts) }

// Evicted is how many keys servers of Redis have evicted since Open, of whatever prefix, as far
// as is known.
func (s *Store) Evicted() int64 { return s.evictions.total() }

// Unasked are the limits that Redis could not be asked about, ever.
func (s *Store) Unasked() (all []Unasked) {
	for _, u := range s.node.Health().Unasked {
		all = append(all, Unasked(u))
	}
	return all
}

func (s *Store) lostLease(l node.LostLease) {
	if s.o.OnLostLease != nil {
		s.o.OnLostLease(LostLease(l))
	}
}

func (s *Store) unasked(u node.Unasked) {
	if s.o.OnUnasked != nil {
		s.o.OnUnasked(Unasked(u))
	}
}

// health is what the node and the connections say, without the heartbeats.
func (s *Store) health() (node.Health, int, error) {
	return s.node.Health(), s.Instances(), s.shared.Trouble()
}

// standing joins what requests and heartbeats say of Redis.
type standing struct {
	ask  func() (h node.Health, instances int, connection error)
	tell func(Health)

	mu     sync.Mutex
	missed error     // under mu: why heartbeats fail
	since  time.Time // under mu: they do
	told   string    // under mu: the status that was last told; "" is OK
	reason bool      // under mu: it was told why connections are of no use
}

// beat is told how each heartbeat went.
func (s *standing) beat(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.missed == nil {
		s.since = time.Now()
	}
	s.missed = err
	s.lookLocked()
}

// turned is told when the node's state changes.
func (s *standing) turned(h node.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.State == node.OK {
		s.missed = nil // Redis answers; the next beat tells whether those, too
	}
	s.lookLocked()
}

func (s *standing) now() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.healthLocked()
}

// lookLocked tells of a change.
func (s *standing) lookLocked() {
	is := s.healthLocked()
	changed := is.Status != s.told && (is.Status != OK || s.told != "")
	// Connecting may take longer than a request waits.
	if !changed && (is.Status == OK || is.Connection == nil || s.reason) {
		return
	}
	s.told, s.reason = is.Status, is.Connection != nil && is.Status != OK
	if s.tell != nil {
		s.tell(is)
	}
}

func (s *standing) healthLocked() Health {
	h, instances, connection := s.ask()
	is := Health{Status: h.State.String(), Since: h.Since, Why: h.Why, Instances: instances, Connection: connection}
	switch {
	case s.missed == nil:
	case errors.Is(s.missed, tidegate.ErrCannotAsk): // Redis works
		is.Unasked = append(is.Unasked, Unasked{Rule: "instances", Why: s.missed, Since: s.since})
	case h.State == node.OK || s.since.Before(h.Since):
		is.Since = s.since
		if h.State == node.OK {
			is.Status, is.Why = Degraded, s.missed
		}
	}
	if is.Why != nil && connection != nil && !strings.Contains(is.Why.Error(), errors.Unwrap(connection).Error()) {
		is.Why = fmt.Errorf("%w: %w", is.Why, connection)
	}
	for _, u := range h.Unasked {
		if !u.Over {
			is.Unasked = append(is.Unasked, Unasked(u))
		}
	}
	if len(is.Unasked) > 0 && is.Status == OK {
		first := is.Unasked[0]
		is.Status, is.Since = Partial, first.Since
		is.Why = fmt.Errorf("the store cannot be asked about %s: %w", first.Rule, first.Why)
	}
	return is
}
