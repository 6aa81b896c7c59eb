package sim

import (
	"context"
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

func isSlot(c tidegate.Check) bool { return c.Limit.Algorithm == tidegate.Concurrency }

func hasSlots(checks []tidegate.Check) bool { return slices.ContainsFunc(checks, isSlot) }

// takeSlotsLocked takes slots under the names that the caller chose. A name that was given
// back before is refused, as the caller has left.
func (s *server) takeSlotsLocked(a *chain.Ask) (granted, rest tidegate.Decision, err error) {
	for i := range int64(a.Copies) {
		name := a.Handle.Copy(i)
		if s.state.marks[name].After(s.now()) {
			return granted, tidegate.Decision{Limit: a.Checks[0].Limit}, nil
		}
		d, err := s.state.store.Take(context.Background(), a.Checks, 1)
		switch {
		case err != nil:
			return granted, rest, err
		case !d.OK && i == 0:
			return d, rest, nil
		case !d.OK:
			return granted, d, nil
		}
		s.state.held[name] = d.Receipt
		if i == 0 {
			granted, granted.Granted = d, 0
			granted.Receipt.Handle = a.Handle
		}
		granted.Granted++
	}
	return granted, rest, nil
}

// adjust charges, or returns what a decision took; of slots, those under its name.
func (s *server) adjust(r tidegate.Receipt, checks []tidegate.Check) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Handle.IsZero() || !hasSlots(checks) {
		return s.state.store.Adjust(context.Background(), r, checks)
	}
	taken, ok := s.state.held[r.Handle]
	if !ok {
		for _, c := range checks {
			if isSlot(c) {
				s.state.marks[r.Handle] = s.now().Add(c.Limit.Period)
			}
		}
		return nil
	}
	delete(s.state.held, r.Handle)
	return s.state.store.Adjust(context.Background(), taken, checks)
}

// renew renews the slots under the name of a decision.
func (s *server) renew(r tidegate.Receipt, checks []tidegate.Check) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken, ok := s.state.held[r.Handle]
	if !ok {
		return tidegate.ErrLeaseLost
	}
	return s.state.store.Renew(context.Background(), taken, checks)
}
