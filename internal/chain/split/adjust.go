package split

import (
	"context"
	"errors"
	"math"

	"tidegate.dev/tidegate"
)

// Adjust implements tidegate.Store. What was taken from a share is given back there.
func (s *Store) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if s.receipts.Foreign(r) {
		return tidegate.ErrElsewhere
	}
	v := s.whose(r, checks)
	errs := v.Err
	if len(v.Here) > 0 {
		now, at := s.now(), v.Ours.At
		if v.Ours.IsLatest() {
			at = now.steady
		}
		for i := range v.Here {
			v.Here[i] = s.scaled(v.Here[i], at, now)
		}
		errs = errors.Join(errs, s.local.Adjust(ctx, v.Ours, v.Here))
	}
	if len(v.There) > 0 {
		errs = errors.Join(errs, s.Backend.Adjust(ctx, v.Theirs, v.There))
	}
	return errs
}

// scaled returns c at the cost in the own store: a charge by the present number of instances, a
// return by the number at the instant of the charge.
func (s *Store) scaled(c tidegate.Check, at int64, now moment) tidegate.Check {
	if !Is(c.Limit) {
		return c
	}
	if c.Cost >= 0 {
		n := s.members(now).n
		c.Cost = min(c.Cost, math.MaxInt64/n) * n
		return c
	}
	m := s.history.at(at)
	cost := -max(c.Cost, -c.Limit.Capacity())
	room := c.Limit.Capacity() - c.Floor
	if want := cost * m.n; c.Limit.Algorithm != tidegate.TokenBucket || cost > room || want <= room {
		c.Cost = -want
		return c
	}
	t, _ := turnOf(c.Limit, cost, room, m, at+now.wall-now.steady)
	if c.Cost = -cost * m.n; t.mine {
		c.Cost = -t.cost
	}
	return c
}

// Renew implements tidegate.Renewer. Slots are not counted in shares.
func (s *Store) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if s.receipts.Foreign(r) {
		return tidegate.ErrElsewhere
	}
	if s.o.Whole {
		return s.local.Renew(ctx, r, checks)
	}
	v := s.whose(r, checks)
	if len(v.There) == 0 {
		return nil
	}
	return s.Backend.Renew(ctx, v.Theirs, v.There)
}

// Reset implements tidegate.Resetter. Of a limit that is counted in shares, it resets only the
// share of this instance.
func (s *Store) Reset(ctx context.Context, checks []tidegate.Check) error {
	var here, there []tidegate.Check
	for _, c := range checks {
		if Is(c.Limit) {
			here = append(here, c)
		} else {
			there = append(there, c)
		}
	}
	var errs error
	if len(here) > 0 {
		s.noteResets(here)
		errs = s.local.Reset(ctx, here)
	}
	if len(there) > 0 || len(here) == 0 {
		errs = errors.Join(errs, s.Backend.Reset(ctx, there))
	}
	return errs
}
