package redis

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// lawTwin is one bucket as internal/algo has it, dated: the memory store, which has no
// room for when a state was written, judges a clock that was set back in another way.
type lawTwin struct {
	now func() time.Time
	s   algo.Bucket
}

func (t *lawTwin) Take(_ context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	c, now := checks[0], algo.Instant(t.now())
	law := algo.NewBucketLaw(c.Limit)
	law.SetFloor(c.Floor)
	var v algo.Verdict
	t.s, v = law.Take(t.s, now, algo.Ask{Cost: c.Cost, Copies: int64(n), MaxWait: algo.Ticks(c.MaxWait)})
	return tidegate.Decision{
		OK: v.Granted > 0, Never: v.Never(), Limit: c.Limit, Granted: v.Granted, Remaining: v.Remaining,
		RetryAfter: algo.Duration(v.Retry()), ResetAfter: algo.Duration(v.Reset), Wait: algo.Duration(v.Wait()), Receipt: tidegate.Receipt{At: now},
	}, nil
}

func (t *lawTwin) Adjust(_ context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	c, now := checks[0], algo.Instant(t.now())
	law := algo.NewBucketLaw(c.Limit)
	switch {
	case c.Cost > 0:
		t.s = law.Force(t.s, now, c.Cost)
	case c.Cost < 0:
		t.s = law.Return(t.s, now, r.At, -c.Cost)
	}
	return nil
}

func (t *lawTwin) Renew(context.Context, tidegate.Receipt, []tidegate.Check) error { return nil }

func (t *lawTwin) Reset(context.Context, []tidegate.Check) error {
	t.s = algo.Bucket{}
	return nil
}
