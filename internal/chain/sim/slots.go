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
// back before is refused, as the caller has left. rest is the refusal of the first copy that was
// not granted, if some were granted and not all.
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

// adjust charges, or returns what a decision took. Slots are returned by the name in r; if
// there are none under that name yet, it is marked so that a later take is refused.
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

// renew renews the slots under the name in r, or returns ErrLeaseLost if there are none.
func (s *server) renew(r tidegate.Receipt, checks []tidegate.Check) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken, ok := s.state.held[r.Handle]
	if !ok {
		return tidegate.ErrLeaseLost
	}
	return s.state.store.Renew(context.Background(), taken, checks)
}
