package node

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/share"
)

func (n *Node) nodes() int64 { return int64(min(max(n.o.Instances(), 1), share.MaxInstances)) }

// scale is how many nodes there were when the local store was charged, from an instant of its clock on.
type scale struct {
	from  int64
	nodes int64
}

// maxScales is how many changes of the number of nodes are remembered.
const maxScales = 256

// noteNodes notes how many nodes there were when the local store was charged at an instant of its clock.
func (n *Node) noteNodes(nodes, at int64) {
	for {
		was := n.scales.Load()
		var all []scale
		if was != nil {
			all = *was
			if last := all[len(all)-1]; last.nodes == nodes || at < last.from {
				return
			}
			all = all[max(0, len(all)+1-maxScales):]
		}
		all = append(all[:len(all):len(all)], scale{at, nodes})
		if n.scales.CompareAndSwap(was, &all) {
			return
		}
	}
}

// nodesAt returns how many nodes there were when the local store made a receipt: what is given back of it is
// multiplied by the same number as the charge.
func (n *Node) nodesAt(r tidegate.Receipt) int64 {
	all := n.scales.Load()
	if all == nil || r.At == 0 {
		return n.nodes()
	}
	for i := len(*all) - 1; i > 0; i-- {
		if (*all)[i].from <= r.At {
			return (*all)[i].nodes
		}
	}
	return (*all)[0].nodes
}

// scaled returns c in the form in which the local store of one of so many nodes is asked. The
// limit stays whole and the cost is multiplied: what is used locally is then in events of the
// fleet, as in the backend, a bucket's share is exact, and a change of the number of nodes
// refills nothing.
//
// A floor is in events of the fleet already. Slots are the exception: their limit is divided,
// and so is the floor.
//
// Every node can admit something: a cost above the share is admitted if the counter is
// unused, and paid for afterwards. A bucket then waits for as long as that takes to refill; a
// window has room for one such request, and pace makes the next one wait. Otherwise windows
// round down: 10 a minute on three nodes is three on each.
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
			c.Floor = c.Limit.Capacity() - c.Cost // share.For rounds up; this keeps the difference from being admitted
		}
	default:
		c.Cost = min(c.Cost*nodes, capacity-c.Floor)
	}
	return c
}
