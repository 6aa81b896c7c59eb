package eventual

import (
	"context"
	"errors"
	"math"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/share"
)

// Adjust implements tidegate.Store. What this layer has counted is adjusted here, the rest by the
// store below.
func (s *Store) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if s.receipts.Foreign(r) {
		return tidegate.ErrElsewhere
	}
	v := s.receipts.Divide(r, checks, Is)
	errs := v.Err
	if len(v.Here) > 0 {
		errs = errors.Join(errs, s.adjustOwn(ctx, v.Ours, v.Here))
	}
	if len(v.There) > 0 {
		errs = errors.Join(errs, s.Backend.Adjust(ctx, v.Theirs, v.There))
	}
	return errs
}

// adjustOwn adjusts checks that this layer counts. It gives back no more than what this instance
// has counted itself.
func (s *Store) adjustOwn(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) (errs error) {
	for _, check := range checks {
		if check.Cost == 0 {
			continue
		}
		if !share.Valid([]tidegate.Check{{Limit: check.Limit}}) {
			return s.local.Adjust(ctx, r, []tidegate.Check{check}) // says what is wrong
		}
		c, full := s.find(&check)
		if c == nil {
			errs = errors.Join(errs, full.Err)
			continue
		}
		errs = errors.Join(errs, s.adjustLocked(ctx, c, r, check))
		c.mu.Unlock()
	}
	return errs
}

func (s *Store) adjustLocked(ctx context.Context, c *counter, r tidegate.Receipt, check tidegate.Check) error {
	if check.Cost < 0 {
		check.Cost = -c.takeBackLocked(check.Limit, r.At, -max(check.Cost, -math.MaxInt64))
	} else {
		check.Cost = min(check.Cost, 2*check.Limit.Events) // into a debt of one capacity at most
	}
	if check.Cost == 0 {
		return nil
	}
	if err := s.local.Adjust(ctx, r, []tidegate.Check{check}); err != nil {
		return err
	}
	if check.Cost > 0 {
		c.addLocked(check.Limit, algo.Instant(s.clock.now()), check.Cost)
	}
	c.touched = s.elapsed()
	s.enqueueLocked(c, inTime)
	return nil
}

// Renew implements tidegate.Renewer. Slots are not counted here.
func (s *Store) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if s.receipts.Foreign(r) {
		return tidegate.ErrElsewhere
	}
	v := s.receipts.Divide(r, checks, Is)
	if len(v.There) == 0 {
		return nil
	}
	return s.Backend.Renew(ctx, v.Theirs, v.There)
}

// Reset implements tidegate.Resetter. The other instances learn of it at their next exchange.
func (s *Store) Reset(ctx context.Context, checks []tidegate.Check) error {
	p, some := divide(checks)
	if !some {
		return s.Backend.Reset(ctx, checks)
	}
	if !share.Valid(p.own) {
		return s.local.Reset(ctx, p.own) // says what is wrong
	}
	var errs error
	for i := range p.own {
		errs = errors.Join(errs, s.resetOwn(ctx, &p.own[i]))
	}
	if len(p.rest) > 0 {
		errs = errors.Join(errs, s.Backend.Reset(ctx, p.rest))
	}
	return errs
}

// resetOwn forgets the counter of a check here and in the store that instances share.
func (s *Store) resetOwn(ctx context.Context, check *tidegate.Check) error {
	name := counterName{check.Limit.Identity(), check.Key}
	generation := int64(0)
	sh := s.table.shard(check.Key)
	sh.mu.Lock()
	if c := sh.all[name]; c != nil {
		c.mu.Lock()
		generation = c.generation
		s.table.removeLocked(s, sh, c)
		c.mu.Unlock()
	}
	sh.mu.Unlock()
	if s.o.Tallies == nil {
		return nil
	}
	tally := []chain.Tally{{Limit: check.Limit, Key: check.Key, Region: s.o.Region.number(check.Limit), Instance: newInstance(), Generation: generation, Reset: true}}
	if err := s.o.Tallies.Exchange(ctx, tally); err != nil {
		return err
	}
	return tally[0].Err
}
