package node

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/share"
)

// pace returns a check to be added to that of a window if a node's share is less than one request
// of this cost. Without it every node would admit one request in every window, and a large fleet
// would exceed the limit for as long as Redis is away. It is for a bucket with the rate of the
// limit, in which a request takes nodes times its cost, as in scaled. pace reports false if c needs
// none.
func (n *Node) pace(c tidegate.Check, nodes int64) (tidegate.Check, bool) {
	if nodes == 1 || c.Advisory || !isWindow(c.Limit) || final(c.Limit) { // a block is not divided among nodes
		return c, false
	}
	room := c.Limit.Capacity() - c.Floor
	if c.Cost > room || c.Cost*nodes <= room { // the former can never fit
		return c, false
	}
	c.Cost, c.MaxWait = c.Cost*nodes, 0
	if c.Limit = n.sizes.Pace(c.Limit, share.For(c.Cost)); c.Limit == nil {
		return c, false
	}
	c.Floor = c.Limit.Capacity() - c.Cost
	return c, true
}

// isWindow reports whether l forgets what was used at the end of a period. Quotas do so as
// well, but theirs are longer than an outage.
func isWindow(l *tidegate.Limit) bool {
	switch l.Algorithm {
	case tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows:
		return true
	}
	return false
}

// addPaces adds to p the paces of its checks, which are from the vector whole.
func (n *Node) addPaces(p *part, whole []tidegate.Check, nodes int64) {
	for _, at := range p.from[:p.own] {
		c, sign := whole[at], int64(1)
		if c.Cost < 0 { // it is given back
			c.Cost, sign = -c.Cost, -1
		}
		if c, ok := n.pace(c, nodes); ok {
			c.Cost *= sign
			p.addPace(c, at)
		}
	}
}

// repace returns what to charge to the pace of c when its cost turns out to be actual. It reports
// false if c has no pace at either cost.
func (n *Node) repace(c tidegate.Check, actual, nodes int64) (tidegate.Check, bool) {
	is := c
	is.Cost = min(actual, c.Limit.Capacity()-c.Floor)
	was, had := n.pace(c, nodes)
	is, has := n.pace(is, nodes)
	switch {
	case had && has:
		is.Cost -= was.Cost
	case had:
		was.Cost = -was.Cost
		return was, true
	}
	return is, has
}

// withPaces returns checks and all paces that they may have, whatever the cost.
func (n *Node) withPaces(checks []tidegate.Check) []tidegate.Check {
	all := checks[:len(checks):len(checks)]
	for _, c := range checks {
		if !isWindow(c.Limit) {
			continue
		}
		if l := n.sizes.Pace(c.Limit, 1); l != nil {
			all = append(all, tidegate.Check{Key: c.Key, Limit: l})
		}
	}
	return all
}
