package node

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/share"
)

func (n *Node) nodes() int64 { return int64(min(max(n.o.Instances(), 1), share.MaxInstances)) }

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
		c.Limit = n.sizes.Get(c.Limit, max(c.Cost+c.Floor, capacity/nodes, 1))
	case isBucket(c.Limit):
		if c.Cost *= nodes; c.Cost > capacity-c.Floor {
			c.Limit = n.sizes.Get(c.Limit, share.For(c.Cost+c.Floor))
			c.Cost = min(c.Cost, c.Limit.Capacity()-c.Floor)
			c.Floor = c.Limit.Capacity() - c.Cost // what the size is rounded up by admits nothing
		}
	default:
		c.Cost = min(c.Cost*nodes, capacity-c.Floor)
	}
	return c
}
