package node

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
)

// takeUneasy is Take while some server does not get all that is for it.
func (n *Node) takeUneasy(ctx context.Context, checks []tidegate.Check, copies int, t traits, now time.Duration) (tidegate.Decision, error) {
	s := n.server(0)
	if s.asks(checks, now) {
		return n.ask(ctx, checks, copies, t, now)
	}
	if s.share.Load() == 0 {
		for i := range checks {
			s.holdLocal(&checks[i])
		}
	}
	d, _, err := n.fallback(checks, copies, *s.why.Load(), now, true)
	return d, err
}

// asks reports whether the server is asked about checks, all of which live on it.
func (s *server) asks(checks []tidegate.Check, now time.Duration) bool {
	if share := s.share.Load(); share < whole && !s.chosen(checks, share) {
		return false
	}
	for i := range checks {
		if s.held.until.Load() > 0 && s.held.holds(s.node.seen.name(checks[i].Limit, checks[i].Key), now) {
			return false
		}
	}
	return true
}

// chosen reports whether a request goes to the server while that recovers. It goes by
// the key, so that nobody is counted here and there in turns.
func (s *server) chosen(checks []tidegate.Check, share uint32) bool {
	if share == 0 || len(checks) == 0 {
		return share > 0
	}
	return uint32(s.node.seen.hash(checks[0].Key)%whole) < share
}

// easeLocked looks whether every server gets all that is for it.
func (n *Node) easeLocked() {
	for _, s := range n.all() {
		if s.circuit.state != OK || s.held.until.Load() > 0 {
			n.uneasy.Store(true)
			return
		}
	}
	n.uneasy.Store(false)
}
