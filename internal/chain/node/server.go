package node

import (
	"slices"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// server is what a Node knows of one server of the backend: whether it is asked, how long it
// takes, and the backlog that is still to be charged to it. Servers fail independently.
type server struct {
	node   *Node
	number int
	self   [1]*server // this one, for code that takes a slice of servers

	// share is which part of the keys, in 64ths, goes to the server; see circuit.share.
	share    atomic.Uint32
	why      atomic.Pointer[error] // the reason that fallbacks give while the circuit is open
	reserve  atomic.Int64          // roundTrip.reserve, as it is now
	trip     atomic.Int64          // roundTrip.mean, as it is now
	inFlight atomic.Int64
	good     atomic.Uint64 // how often it has shown that it works
	pending  atomic.Int64  // calls for requests that have no reply yet
	asked    atomic.Int64  // since when pending is not 0
	replied  atomic.Int64  // when it last replied to a call for requests
	overdue  atomic.Int64  // how many of the calls in flight had no reply in time
	queue    atomic.Int64  // when at least minQueue calls were last in flight
	near     atomic.Bool   // without a queue, a call takes less than half the deadline
	held     held

	batches sendQueue // of calls that share round trips
	alone   sendQueue // of the others

	layout *string // used by repay: identifies the slice that chain.Backend.Servers last returned

	// All under Node.mu:
	circuit   circuit
	roundTrip roundTrip
	turned    time.Duration // when it became OK, or ceased to be
	cause     error         // the last failure
	backlog   backlog
	releases  []release
	releasing []release     // under way
	arrived   chan struct{} // has an element when a release was added
	reachable time.Duration // when it last became reachable
	repaying  bool          // repay runs
	freeing   bool          // free runs
	suspected int           // failed requests that it may be to blame for
	examined  bool          // examine runs
}

// maxServers bounds how many servers are told apart.
const maxServers = 1024

func (n *Node) newServer(number int) *server {
	s := &server{node: n, number: number, arrived: make(chan struct{}, 1)}
	s.self[0] = s
	s.batches.init(s, n.most, leastBatches*n.most)
	s.alone.init(s, 1, leastAlone)
	s.circuit.failures = n.o.Failures
	s.backlog.start = n.start
	// When a counter moves, posts to it may come from both servers: their names must differ.
	s.backlog.boot = [2]uint64{n.boot[0], n.boot[1] + uint64(number)}
	s.roundTrip = unknownTrip(n.o.Deadline)
	s.reserve.Store(int64(s.roundTrip.reserve()))
	s.trip.Store(int64(s.roundTrip.mean))
	s.share.Store(whole)
	s.near.Store(true)
	s.queue.Store(-1)
	return s
}

// all returns the servers that are known, by number.
func (n *Node) all() []*server { return *n.servers.Load() }

// server returns the server with a number, which is made if needed.
func (n *Node) server(number int) *server {
	number = max(number, 0) % maxServers
	if all := n.all(); number < len(all) {
		return all[number]
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.Clone(n.all())
	for len(all) <= number {
		all = append(all, n.newServer(len(all)))
	}
	n.servers.Store(&all)
	return all[number]
}

// serverOf returns the server that the counter of a check lives on.
func (n *Node) serverOf(c *tidegate.Check) *server { return n.server(n.inner.Server(c.Limit, c.Key)) }

// serversFor returns the server that all checks live on. If they live on several, target is
// Node.multi, and where has the server of each check.
func (n *Node) serversFor(checks []tidegate.Check, room []*server) (target *server, where []*server) {
	if len(checks) == 0 {
		return n.server(0), room
	}
	target, where = n.serverOf(&checks[0]), room[:0]
	for i := 1; i < len(checks); i++ {
		s := n.serverOf(&checks[i])
		if s == target {
			continue
		}
		for j := range checks {
			where = append(where, n.serverOf(&checks[j]))
		}
		return n.multi, where
	}
	return target, where
}

// name returns what the server is called in messages.
func (s *server) name() string {
	names := s.node.inner.Servers()
	if len(names) < 2 || s.number >= len(names) || names[s.number] == "" {
		return s.node.o.Name
	}
	return s.node.o.Name + " at " + names[s.number]
}

// begin counts a call as in flight. It reports false, and does not count it, if there are InFlight
// already.
func (s *server) begin() bool {
	out := s.inFlight.Add(1)
	if out-s.overdue.Load() >= minQueue {
		s.queue.Store(int64(s.node.now()))
	}
	if out > int64(s.node.o.InFlight) {
		s.inFlight.Add(-1)
		return false
	}
	return true
}

// tripped notes how long an answered call took.
func (s *server) tripped(took, now time.Duration) {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.roundTrip = s.roundTrip.add(took, now)
	s.near.Store(s.roundTrip.distance(now) < s.node.o.Deadline/2)
	s.replied.Store(int64(now))
	s.reserve.Store(int64(s.roundTrip.reserve()))
	s.trip.Store(int64(s.roundTrip.mean))
}

// speed classifies how long a call took, compared with the shortest recent one.
func (s *server) speed(took time.Duration) speed {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	more := took - min(s.roundTrip.least, s.roundTrip.before)
	switch slack := s.node.o.Deadline / 8; {
	case more <= slack:
		return speedQuick
	case more > 2*slack:
		return speedSlow
	}
	return speedSteady
}
