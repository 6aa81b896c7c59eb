package node

import (
	"math/bits"
	"sync"

	"tidegate.dev/tidegate"
)

// maxNodes bounds the number of nodes, so that a cost times it is a number.
const maxNodes = 1 << 16

func (n *Node) nodes() int64 { return int64(min(max(n.o.Instances(), 1), maxNodes)) }

// scaled is c as the local store is asked about it by one of so many nodes. The limit
// stays whole and the cost is multiplied: what is used locally is then in events of
// the fleet, as in the backend, a bucket's share is exact, and a change of the
// number of nodes refills nothing.
//
// A floor is in events of the fleet already, but for slots, of which there are fewer.
//
// No share is nothing. A cost that is more than its share is admitted if the counter is
// unused, and paid for afterwards: in a bucket by waiting for as long as that takes; a window
// has room for one such request, and pace makes the next one wait. Otherwise windows round
// down: 10 a minute on three nodes is three on each.
func (n *Node) scaled(c tidegate.Check, nodes int64) tidegate.Check {
	capacity := c.Limit.Capacity()
	switch {
	case nodes == 1 || c.Cost > capacity-c.Floor: // the latter can never fit
	case c.Limit.Algorithm == tidegate.Concurrency:
		c.Floor = (c.Floor + nodes - 1) / nodes
		c.Limit = n.sizes.get(c.Limit, max(c.Cost+c.Floor, capacity/nodes, 1))
	case isBucket(c.Limit):
		if c.Cost *= nodes; c.Cost > capacity-c.Floor {
			c.Limit = n.sizes.get(c.Limit, sizeFor(c.Cost+c.Floor))
			c.Cost = min(c.Cost, c.Limit.Capacity()-c.Floor)
			c.Floor = c.Limit.Capacity() - c.Cost // what the size is rounded up by admits nothing
		}
	default:
		c.Cost = min(c.Cost*nodes, capacity-c.Floor)
	}
	return c
}

// sizeFor is a capacity that has room for so many events. There are few different ones.
func sizeFor(events int64) int64 { return 1 << bits.Len64(uint64(events-1)) }

// sizes are limits with another capacity than they were written with. They have the
// same identity, and so the same counters; a pace has a counter of its own.
type sizes struct {
	mu  sync.Mutex
	all map[sized]*tidegate.Limit
}

type sized struct {
	limit    *tidegate.Limit
	capacity int64
	pace     bool
}

// maxSizes is how many are kept; they are made again when needed.
const maxSizes = 4096

// get is l with a capacity, or l itself when there can be no such limit.
func (s *sizes) get(l *tidegate.Limit, capacity int64) *tidegate.Limit {
	spec := l.Spec
	switch l.Algorithm {
	case tidegate.TokenBucket:
		spec.Burst = capacity
	case tidegate.LeakyBucket:
		spec.Burst = capacity - 1
	default:
		spec.Events = capacity
	}
	return s.made(sized{limit: l, capacity: capacity}, spec, l)
}

// pace is a bucket of the rate of l with a capacity; nil when there can be no such limit.
func (s *sizes) pace(l *tidegate.Limit, capacity int64) *tidegate.Limit {
	return s.made(sized{l, capacity, true}, tidegate.Spec{
		Name: "pace of " + l.Identity(), Algorithm: tidegate.TokenBucket,
		Events: l.Events, Period: l.Period, Burst: capacity,
	}, nil)
}

// made is the limit of a spec, or another one if that is none.
func (s *sizes) made(key sized, spec tidegate.Spec, otherwise *tidegate.Limit) *tidegate.Limit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.all[key]; ok {
		return found
	}
	made, err := tidegate.NewLimit(spec)
	if err != nil {
		made = otherwise
	}
	if s.all == nil || len(s.all) >= maxSizes {
		s.all = make(map[sized]*tidegate.Limit)
	}
	s.all[key] = made
	return made
}
