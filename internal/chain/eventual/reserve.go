package eventual

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// estimate is what a reservation was charged here, until Settle replaces it by the true cost.
type estimate struct {
	at      int64 // Receipt.At of the charge
	charged []tidegate.Check
	below   bool // the store below has a reservation for the other checks, by the same handle
}

// Reserve implements tidegate.Reserver. What is reserved here can be settled at this instance alone.
// If another instance settles a reservation of which this layer holds a part, it settles only the
// other part, and the estimate stays charged here.
func (s *Store) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	p, some := divide(checks)
	if !some {
		return s.Backend.Reserve(ctx, checks, ttl)
	}
	if ttl <= 0 {
		return s.local.Reserve(ctx, checks, ttl) // says what is wrong
	}
	if !s.estimates.Room(s.sinceEpoch()) {
		return tidegate.Decision{Err: tidegate.ErrFull, Limit: p.own[0].Limit, RetryAfter: time.Second}, nil
	}
	one := estimate{}
	d, err := s.take(ctx, &p, checks, 1, func(ctx context.Context, rest []tidegate.Check, _ int) (tidegate.Decision, error) {
		d, err := s.Backend.Reserve(ctx, rest, ttl)
		one.below = err == nil && !d.Receipt.Handle.IsZero()
		return d, err
	})
	if err != nil || !d.OK {
		return d, err
	}
	one.at = d.Receipt.At
	if apart := d.Receipt.Apart; apart != nil {
		one.at += apart.Local[s.receipts.Name(&p.own[0])]
	}
	for _, c := range p.own {
		if c.Estimate && !c.Over {
			c.Key = strings.Clone(c.Key)
			one.charged = append(one.charged, c)
		}
	}
	one.charged = slices.Clip(one.charged)
	if !one.below {
		d.Receipt.Handle = tidegate.NewHandle()
	}
	s.estimates.Keep(d.Receipt.Handle, one, s.sinceEpoch()+ttl)
	return d, nil
}

// sinceEpoch returns the time of the clock by which reservations expire: since the Store was made or,
// by Options.Now, since 1970.
func (s *Store) sinceEpoch() time.Duration {
	if s.o.Now != nil {
		return s.o.Now().Sub(time.Unix(0, 0))
	}
	return s.elapsed()
}

// Settle implements tidegate.Reserver.
func (s *Store) Settle(ctx context.Context, r tidegate.Receipt, actual int64) error {
	switch {
	case actual < 0:
		return s.local.Settle(ctx, r, actual) // says what is wrong
	case s.receipts.Foreign(r):
		return tidegate.ErrElsewhere
	}
	one, ok := s.estimates.Take(r.Handle, s.sinceEpoch())
	if !ok {
		if r.Origin == tidegate.OriginEventual {
			return tidegate.ErrSettled
		}
		r.Apart = s.receipts.Without(r.Apart)
		return s.Backend.Settle(ctx, r, actual)
	}
	var errs error
	for _, c := range one.charged {
		c.Cost = min(actual, 2*c.Limit.Capacity()) - c.Cost
		errs = errors.Join(errs, s.adjustOwn(ctx, tidegate.Receipt{At: one.at}, []tidegate.Check{c}))
	}
	if one.below {
		r.Apart = s.receipts.Without(r.Apart)
		errs = errors.Join(errs, s.Backend.Settle(ctx, r, actual))
	}
	return errs
}
