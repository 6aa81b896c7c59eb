package fleet

import (
	"time"

	"tidegate.dev/tidegate/internal/chain/node"
	"tidegate.dev/tidegate/store/redis"
)

// The values of Health.Status.
const (
	OK         = "ok"         // Redis decides
	Partial    = "partial"    // Redis decides, but some masters of a cluster or shards do not, or about some limits it cannot be asked
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
	// Servers are the masters of a Redis Cluster, or the shards, each by itself; nil if there
	// is one.
	Servers []Server
	// Unasked are limits that Redis, while it works, cannot be asked about.
	Unasked []Unasked
	// Clock is how the clock of this process compares with that of Redis.
	Clock Clock
	// Leases are held by this instance, and LeasedEvents is what it may still admit by them
	// without asking Redis.
	Leases       int
	LeasedEvents int64
	// Lag is how old what other instances know of this one's [tidegate.Eventual] limits is; 0 if
	// it has not been asked for any.
	Lag time.Duration
	// Regions are the other regions, by name, as far as this instance hears of them; nil if there
	// are none.
	Regions []RegionHealth
	// Warnings are of servers that do not keep counters as they should, and of a clock that
	// differs from theirs.
	Warnings []string
	// Connection says why the connections to Redis are of no use, if that is known.
	Connection error
}

// Server is how a master of a Redis Cluster, or a shard, is doing. While it does not answer,
// on_store_failure of each limit decides about what is counted there, and about nothing
// else.
type Server struct {
	Name    string // its address, or the name of the shard
	Status  string // OK, Degraded or Recovering
	Since   time.Time
	Why     error // it is not OK
	Backlog int64 // counters that something is still to be charged to
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

// Stats are totals since Open, but for InFlight and Backlog, which are of now.
type Stats struct {
	InFlight int64 // calls that Redis has not replied to
	Backlog  int64 // counters that something is still to be charged to

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
	h := s.watch.now()
	h.Warnings = s.servers.warnings()
	h.Leases, h.LeasedEvents = s.lease.Outstanding()
	h.Lag = s.eventual.Lag()
	h.Regions = s.regions.health()
	var off bool
	if h.Clock, off = s.clock.best(); off {
		h.Warnings = append(h.Warnings, h.Clock.warning())
	}
	return h
}

// Stats tells what happened so far.
func (s *Store) Stats() Stats { return Stats(s.node.Health().Counts) }

// Evicted is how many keys servers of Redis have evicted since Open, of whatever prefix, as far
// as is known.
func (s *Store) Evicted() int64 { return s.servers.total() }

// Servers is what Redis, each master of a cluster or each shard said about itself in the last seconds:
// CPU, memory, clients. It is empty if the user may not run INFO.
func (s *Store) Servers() []redis.Info { return s.servers.shown(time.Now()) }

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
