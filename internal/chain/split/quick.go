package split

import (
	"context"

	"tidegate.dev/tidegate"
)

// takeQuick decides the most common request without reading the clock of this layer: one check of a
// bucket, at a cost that fits one share of it, while the members have not changed. For any other
// request ok is false, and nothing is decided.
func (s *Store) takeQuick(ctx context.Context, checks []tidegate.Check, copies int) (d tidegate.Decision, ok bool, err error) {
	if len(checks) != 1 || copies != 1 {
		return d, false, nil
	}
	c := &checks[0]
	if c.Advisory || c.Cost <= 0 || c.Floor != 0 || c.Limit == nil || c.Limit.Algorithm != tidegate.TokenBucket || !Is(c.Limit) {
		return d, false, nil
	}
	last := s.history.last.Load()
	n, rank := s.o.Members()
	n = max(n, 1)
	known := rank >= 0 && rank < n
	if int64(n) != last.n || known != last.known || known && int64(rank) != last.rank || s.history.fresh.Load() {
		return d, false, nil
	}
	if burst := c.Limit.Burst; c.Cost > burst || c.Cost*last.n > burst || c.Cost*last.before > burst {
		return d, false, nil
	}
	d, err = s.local.TakeOne(ctx, c.Key, c.Limit, c.Cost*last.n, c.MaxWait)
	d.Remaining /= last.n
	s.receipts.Sign(&d.Receipt)
	return d, true, err
}
