package node

import (
	"context"
	"slices"
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

// releaseLater has the slots among checks given back under the name taken, when the server
// answers.
func (s *server) releaseLater(taken tidegate.Receipt, checks []tidegate.Check) {
	n := s.node
	slots, lease := slotsOf(checks)
	if len(slots) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(s.releases) >= maxReleases {
		return
	}
	s.releases = append(s.releases, release{taken, slots, n.now() + lease})
	s.repayLocked()
}

// releaseLate has the slots given back that a reply granted to a caller which did not wait
// for it.
func (n *Node) releaseLate(checks []tidegate.Check, d *tidegate.Decision) {
	for i := range d.Granted {
		n.releaseEach(d.Receipt.Copy(i), checks)
	}
}

// releaseEach is releaseLater of the slots of every server.
func (n *Node) releaseEach(taken tidegate.Receipt, checks []tidegate.Check) {
	way, where := n.wayTo(checks, nil)
	if way != n.several {
		way.releaseLater(taken, checks)
		return
	}
	for i, s := range where {
		if slices.Index(where, s) == i {
			s.releaseLater(taken, partOf(checks, where, s))
		}
	}
}

// releaseAll gives back what is kept, if the server answers.
func (s *server) releaseAll() {
	n := s.node
	n.mu.Lock()
	now, all := n.now(), s.releases
	if len(all) == 0 || !s.circuit.answers() {
		n.mu.Unlock()
		return
	}
	s.releases = nil
	n.mu.Unlock()
	for i, r := range all {
		if now >= r.until {
			continue
		}
		err := s.reach(context.Background(), true, func(ctx context.Context) error { return n.inner.Adjust(ctx, r.taken, r.checks) })
		if err != nil {
			n.mu.Lock()
			s.releases = append(s.releases, all[i:]...)
			n.mu.Unlock()
			return
		}
	}
}
