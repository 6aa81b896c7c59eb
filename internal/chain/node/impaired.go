package node

import (
	"context"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// takeImpaired is Take while some server does not get all its requests. The backend decides the
// checks of servers that are asked, and fallbacks decide the others.
func (n *Node) takeImpaired(ctx context.Context, checks []tidegate.Check, copies int, t traits, now time.Duration, to *tidegate.Decision) (err error) {
	var room [8]*server
	target, where := n.serversFor(checks, room[:0])
	if target != n.multi {
		if target.asks(checks, now) {
			return n.ask(ctx, checks, copies, t, now, to)
		}
		target.holdLocal(checks)
		*to, _, err = n.decideLocally(checks, copies, target.reason(), now, true)
		return err
	}
	here, there := n.part(checks, where, now)
	switch {
	case len(here.checks) == 0:
		return n.ask(ctx, checks, copies, t, now, to)
	case len(there.checks) == 0:
		*to, _, err = n.decideLocally(checks, copies, here.why, now, true)
		return err
	}
	*to, err = n.takeMixed(ctx, checks, here, there, copies, now)
	return err
}

// side is the checks of a vector that are decided in the same place: by the backend or by fallbacks.
type side struct {
	part
	why error // why the backend is not asked; nil if it is
}

// part divides checks into those that fallbacks decide (here) and those that the backend
// decides (there). All checks of a server go to the same side.
func (n *Node) part(checks []tidegate.Check, where []*server, now time.Duration) (here, there *side) {
	here, there = new(side), new(side)
	for i, s := range where {
		if slices.Index(where, s) < i {
			continue
		}
		own := side{}
		for j := i; j < len(checks); j++ {
			if where[j] == s {
				own.add(checks[j], j)
			}
		}
		to := there
		if !s.asks(own.checks, now) {
			if to = here; to.why == nil {
				to.why = s.reason()
			}
			s.holdLocal(own.checks)
		}
		to.checks, to.from = append(to.checks, own.checks...), append(to.from, own.from...)
	}
	return here, there
}

// reason returns why the server is not asked.
func (s *server) reason() error {
	if why := s.why.Load(); why != nil {
		return *why
	}
	return ErrOpen
}

// asks reports whether the server is asked about checks, all of which live on it.
func (s *server) asks(checks []tidegate.Check, now time.Duration) bool {
	if share := s.share.Load(); share < whole && !s.chosen(checks, share) {
		return false
	}
	for i := range checks {
		if s.holds(&checks[i], now) {
			return false
		}
	}
	return true
}

// chosen reports whether a request goes to a server that recovers and gets this share. It depends
// on the first key only, so that equal requests are not decided here and there in turns.
func (s *server) chosen(checks []tidegate.Check, share uint32) bool {
	if share == 0 || len(checks) == 0 {
		return share > 0
	}
	return uint32(s.node.seen.hash(checks[0].Key)%whole) < share
}

// setImpairedLocked sets impaired if some server does not get all its requests.
func (n *Node) setImpairedLocked() {
	for _, s := range n.all() {
		if s.circuit.state != OK || s.held.until.Load() > 0 {
			n.impaired.Store(true)
			return
		}
	}
	n.impaired.Store(false)
}
