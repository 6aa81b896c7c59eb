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

// refund gives back to the backend, in the background, what a late reply granted to requests that were
// refused meanwhile. What cannot be given back stays charged.
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

// refunded returns the checks by which so many copies are given back, without slots, which are released
// by name.
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
