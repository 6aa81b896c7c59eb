package fleet

import (
	"time"

	"tidegate.dev/tidegate/internal/chain/node"
	"tidegate.dev/tidegate/store/redis"
)

// The values of Health.Status.
const (
	OK         = "ok"         // Redis decides
	Partial    = "partial"    // Redis decides, but some masters of a cluster or shards do not answer, or it cannot be asked about some limits
	Degraded   = "degraded"   // Redis does not answer: on_store_failure of each limit decides
	Recovering = "recovering" // Redis answers again, and traffic returns to it gradually
)

// Health is how a Store is doing, judged by requests and, when there are none, by heartbeats.
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
	// Unasked are limits that Redis cannot be asked about although it works.
	Unasked []Unasked
	// Clock is how the clock of this process compares with that of Redis.
	Clock Clock
	// Leases is how many leases this instance holds, and LeasedEvents how many events it may
	// still admit by them without asking Redis.
	Leases       int
	LeasedEvents int64
	// Lag is how old the knowledge of other instances is about what this one has counted of
	// [tidegate.Eventual] limits; 0 if it has counted nothing.
	Lag time.Duration
	// Regions are the other regions and how far behind their counts are here, by name; nil if
	// there are none.
	Regions []RegionHealth
	// Warnings are about servers that may evict counters, and about a clock that differs from
	// theirs.
	Warnings []string
	// Connection says why the connections to Redis are of no use, if that is known.
	Connection error
}

// Server is how a master of a Redis Cluster, or a shard, is doing. While it does not answer,
// on_store_failure of each limit decides, but only about what is counted there.
type Server struct {
	Name    string // its address, or the name of the shard
	Status  string // OK, Degraded or Recovering
	Since   time.Time
	Why     error // why it is not OK
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

// LostLease reports slots whose leases had run out when they were to be renewed, because Redis
// was away for longer than a lease or has lost its data: more slots than the limit may be in use.
type LostLease struct {
	Rule  string // the name of the limit, or of all that were renewed together
	Since time.Time
	Count int64 // renewals so far
	// Over: no more were lost for a minute.
	Over bool
}

// Stats are totals since Open, except InFlight and Backlog, which are current.
type Stats struct {
	InFlight int64 // calls that Redis has not replied to
	Backlog  int64 // counters that something is still to be charged to

	Asked  int64 // requests for which Redis was asked, or that were denied
	Denied int64 // of these, refused by a remembered refusal
	Calls  int64 // calls of Redis for requests
	Shared int64 // requests answered by a call that they shared with others

	Answered int64 // requests that Redis answered, refusals included
	Rejected int64 // requests that Redis could not be asked about
	Errors   int64 // requests for which Redis returned another error
	Timeouts int64 // requests that Redis did not answer in time
	Busy     int64 // requests for which Redis was not asked, as too many calls were in flight
	Probes   int64

	Allowed  int64 // requests admitted by FailOpen
	Closed   int64 // requests refused by FailClosed
	Admitted int64 // requests admitted by FailLocal
	Refused  int64 // requests refused by FailLocal

	Posted int64 // amounts admitted by FailLocal and charged to Redis later
	Lost   int64 // amounts admitted by FailLocal that may never be charged to Redis

	LeasesLost int64 // renewals of slots whose lease had run out
}

// Health returns how the Store is doing now.
func (s *Store) Health() Health {
	h := s.watch.now()
	h.Warnings = s.servers.warnings(time.Now())
	h.Leases, h.LeasedEvents = s.lease.Outstanding()
	h.Lag = s.eventual.Lag()
	h.Regions = s.regions.health()
	var off bool
	if h.Clock, off = s.clock.best(); off {
		h.Warnings = append(h.Warnings, h.Clock.warning())
	}
	return h
}

// Stats returns what has happened so far.
func (s *Store) Stats() Stats { return Stats(s.node.Health().Counts) }

// Evicted returns how many keys the servers of Redis have evicted since Open, whatever their
// prefix, as far as is known.
func (s *Store) Evicted() int64 { return s.servers.total() }

// Servers returns what Redis, or each master of a cluster or each shard, has reported about itself in
// the last seconds: CPU, memory, clients. It is empty if the user may not run INFO.
func (s *Store) Servers() []redis.Info { return s.servers.shown(time.Now()) }

// Unasked returns all limits that Redis could not be asked about at some time since Open.
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

// health returns what the node and the connections show, without the heartbeats.
func (s *Store) health() (node.Health, int, error) {
	return s.node.Health(), s.Instances(), s.shared.Trouble()
}
