package node

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
)

// release is slots that are to be given back. Slots have names, so that it can be tried
// again, whatever became of the try before.
type release struct {
	taken  tidegate.Receipt
	checks []tidegate.Check // with negative costs
	until  time.Duration    // when the leases have run out by themselves
}

// maxReleases bounds how many are kept. Leases beyond run out by themselves.
const maxReleases = 1 << 14

// slotsOf are the slots among checks that were taken, or given back, as they are given
// back.
func slotsOf(checks []tidegate.Check) (slots []tidegate.Check, lease time.Duration) {
	for _, c := range checks {
		if c.Limit.Algorithm != tidegate.Concurrency || c.Cost == 0 {
			continue
		}
		if c.Cost > 0 {
			c.Cost = -c.Cost
		}
		slots = append(slots, c)
		lease = max(lease, c.Limit.Period)
	}
	return copied(slots), lease
}

// releaseLater has the slots among checks given back under the name taken, when the backend
// answers.
func (n *Node) releaseLater(taken tidegate.Receipt, checks []tidegate.Check) {
	slots, lease := slotsOf(checks)
	if len(slots) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.releases) >= maxReleases {
		return
	}
	n.releases = append(n.releases, release{taken, slots, n.now() + lease})
	n.repayLocked()
}

// releaseLate has the slots given back that a reply granted to a caller which did not wait
// for it.
func (n *Node) releaseLate(checks []tidegate.Check, d *tidegate.Decision) {
	for i := range d.Granted {
		n.releaseLater(d.Receipt.Copy(i), checks)
	}
}

// releaseAll gives back what is kept, if the backend answers.
func (n *Node) releaseAll() {
	n.mu.Lock()
	now, all := n.now(), n.releases
	if len(all) == 0 || !n.circuit.answers() {
		n.mu.Unlock()
		return
	}
	n.releases = nil
	n.mu.Unlock()
	for i, r := range all {
		if now >= r.until {
			continue
		}
		err := n.reach(context.Background(), true, func(ctx context.Context) error { return n.inner.Adjust(ctx, r.taken, r.checks) })
		if err != nil {
			n.mu.Lock()
			n.releases = append(n.releases, all[i:]...)
			n.mu.Unlock()
			return
		}
	}
}
