package node

import (
	"context"

	"tidegate.dev/tidegate"
)

// charged is what the backend was charged for each copy that it granted.
type charged struct {
	taken  tidegate.Receipt
	checks []tidegate.Check
}

// refund gives the backend back what a late reply granted to requests that were refused meanwhile. It
// does not wait for that. Copies that cannot be given back stay charged.
func (n *Node) refund(g charged, copies int64) {
	back := refunded(g.checks, copies)
	if len(back) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	n.stopped.Go(func() {
		target, _ := n.serversFor(back, nil)
		until := n.contexts.post.get(n, postWithin*n.o.Deadline)
		// The circuit may be open still, but the server has just answered.
		_ = target.callInnerBy(context.Background(), innerCall{until: until, aside: true}, func(ctx context.Context) error {
			defer n.returned(back)
			return n.inner.Adjust(ctx, g.taken, back)
		})
	})
}

// refunded is what so many copies of checks were charged, as it is given back. Slots have names, by
// which they are released.
func refunded(checks []tidegate.Check, copies int64) (back []tidegate.Check) {
	for _, c := range checks {
		if c.Cost == 0 || c.Advisory && c.Over || c.Limit.Algorithm == tidegate.Concurrency {
			continue
		}
		c.Cost *= -copies
		back = append(back, c)
	}
	return copied(back)
}
