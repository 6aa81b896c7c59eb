package split

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// estimate is a reservation: what was charged to shares, until Settle replaces it by the true cost.
type estimate struct {
	taken   tidegate.Receipt
	charged []charged
	below   bool // Backend holds a reservation for the other checks, by the same handle
}

type charged struct {
	check tidegate.Check // as s.local was asked about it, at the cost in shares
	cost  int64          // that the caller estimated
	n     int64          // by which cost was multiplied to charge a share
	wait  int64          // ticks until the turn that was booked
}

// Reserve implements tidegate.Reserver. What is reserved of shares can be settled at this
// instance alone; if another one settles a reservation that is partly of shares, it settles
// the other part, and the estimate stays charged to the shares.
func (s *Store) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	p := s.divide(checks)
	if p == nil {
		return s.Backend.Reserve(ctx, checks, ttl)
	}
	defer s.putPart(p)
	if ttl <= 0 {
		return s.local.Reserve(ctx, checks, ttl) // says what is wrong
	}
	if !s.estimates.Room(s.elapsed()) {
		return tidegate.Decision{Err: tidegate.ErrFull, Limit: p.own[0].Limit, RetryAfter: time.Second}, nil
	}
	one := estimate{}
	d, err := s.take(ctx, p, checks, 1, func(ctx context.Context, rest []tidegate.Check, _ int) (tidegate.Decision, error) {
		d, err := s.Backend.Reserve(ctx, rest, ttl)
		one.below = err == nil && !d.Receipt.Handle.IsZero()
		return d, err
	})
	if err != nil || !d.OK {
		return d, err
	}
	one.taken = d.Receipt
	if apart := d.Receipt.Apart; apart != nil {
		one.taken = tidegate.Receipt{At: d.Receipt.At + apart.Local[s.receipts.Name(&p.own[0])]}
	}
	one.charged = s.chargedOf(p, &d)
	if !one.below {
		d.Receipt.Handle = tidegate.NewHandle()
	}
	s.estimates.Keep(d.Receipt.Handle, one, s.elapsed()+ttl)
	return d, nil
}

// elapsed returns the time of the clock by which reservations expire: since the Store was made or,
// by Options.Now, since 1970.
func (s *Store) elapsed() time.Duration {
	if s.o.Now != nil {
		return s.o.Now().Sub(time.Unix(0, 0))
	}
	return time.Since(s.start)
}

// chargedOf returns what was charged to shares for the checks of p that are estimates.
func (s *Store) chargedOf(p *part, d *tidegate.Decision) (all []charged) {
	buckets := 0
	for i := range p.asked {
		if isBucket(p.asked[i].Limit) {
			buckets++
		}
	}
	for i, at := range p.askedFrom {
		c := &p.own[at]
		if !c.Estimate || c.Over {
			continue
		}
		one := charged{check: p.asked[i], cost: c.Cost, n: p.questions[at].n}
		one.check.Key = strings.Clone(one.check.Key)
		if buckets == 1 && isBucket(c.Limit) { // of several buckets, it is not known for whose turn the request waits
			one.wait = algo.Ticks(d.Wait)
		}
		all = append(all, one)
	}
	return slices.Clip(all)
}

func isBucket(l *tidegate.Limit) bool {
	return l.Algorithm == tidegate.TokenBucket || l.Algorithm == tidegate.LeakyBucket
}

// Settle implements tidegate.Reserver.
func (s *Store) Settle(ctx context.Context, r tidegate.Receipt, actual int64) error {
	switch {
	case actual < 0:
		return s.local.Settle(ctx, r, actual) // says what is wrong
	case s.receipts.Foreign(r):
		return tidegate.ErrElsewhere
	}
	one, ok := s.estimates.Take(r.Handle, s.elapsed())
	if !ok {
		if r.Origin == tidegate.OriginSplit {
			return tidegate.ErrSettled
		}
		r.Apart = s.receipts.Without(r.Apart)
		return s.Backend.Settle(ctx, r, actual)
	}
	var errs error
	for _, c := range one.charged {
		taken := one.taken
		taken.At += c.wait + c.check.Limit.Turn(min(actual, c.cost))
		c.check.Cost = max((min(actual, c.check.Limit.Capacity()*2)-c.cost)*c.n, -c.check.Cost)
		errs = errors.Join(errs, s.local.Adjust(ctx, taken, []tidegate.Check{c.check}))
	}
	if one.below {
		r.Apart = s.receipts.Without(r.Apart)
		errs = errors.Join(errs, s.Backend.Settle(ctx, r, actual))
	}
	return errs
}
