package tidegate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// WaitN returns when key may spend n, or at once with an error: ErrNever when n
// is above the limit's capacity, ErrWait when the turn would come after ctx's
// deadline, and ctx's error when it ends first. Buckets are booked ahead, so
// that waiters go in the order they came; other limits are asked again when
// they said they would admit. An n of 0 or less waits until 1 would pass, and
// charges nothing.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	n = max(n, 0)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		maxWait := time.Duration(math.MaxInt64)
		if deadline, ok := ctx.Deadline(); ok {
			maxWait = max(0, time.Until(deadline))
		}
		var d Decision
		l.take(ctx, &d, key, n, maxWait)
		if err := ctx.Err(); err != nil && d.Err != nil {
			return err
		}
		switch {
		case d.OK && d.Wait == 0:
			return nil
		case d.OK:
			return l.sleepBooked(ctx, key, n, d)
		case d.Never:
			return fmt.Errorf("tidegate: Wait(%q, %d) on %s: %w", key, n, d.Limit, ErrNever)
		case d.Err != nil && d.RetryAfter == 0:
			return fmt.Errorf("tidegate: Wait(%q, %d): %w", key, n, d.Err)
		case d.Err != nil && d.RetryAfter > maxWait:
			return fmt.Errorf("tidegate: Wait(%q, %d): %w, as the store has no answer: %w", key, n, ErrWait, d.Err)
		case turn(&d, n, maxWait) > maxWait:
			return fmt.Errorf("tidegate: Wait(%q, %d) on %s needs %s: %w", key, n, d.Limit, turn(&d, n, maxWait), ErrWait)
		}
		if err := sleep(ctx, d.RetryAfter); err != nil {
			return err
		}
	}
}

// bookAhead is how far ahead a token bucket is booked at most.
const bookAhead = time.Hour

// turn returns how long after the refusal d the turn of n would come. That is later than
// RetryAfter, which is when asking again helps: a token bucket can be booked maxWait before the
// turn, a leaky bucket as soon as there is a place in the queue.
func turn(d *Decision, n int64, maxWait time.Duration) time.Duration {
	l := d.Limit
	switch {
	case d.Err != nil || l == nil:
		return d.RetryAfter
	case l.Algorithm == TokenBucket:
		return d.RetryAfter + min(maxWait, bookAhead)
	case l.Algorithm == LeakyBucket:
		queueTime := float64(l.Capacity()-max(n, 1)) * float64(l.Period) / float64(l.Events)
		return d.RetryAfter + min(maxWait, time.Duration(queueTime))
	}
	return d.RetryAfter
}

// sleepBooked waits for a turn that is already charged, and gives it back when
// the caller leaves before it.
func (l *Limiter) sleepBooked(ctx context.Context, key string, n int64, d Decision) error {
	err := sleep(ctx, d.Wait)
	if err == nil {
		return nil
	}
	if back := l.giveBack(context.WithoutCancel(ctx), key, n, d); back != nil {
		return fmt.Errorf("%w (and the turn could not be given back: %w)", err, back)
	}
	return err
}

// giveBack returns a booked turn.
func (l *Limiter) giveBack(ctx context.Context, key string, n int64, d Decision) error {
	checks := l.vector(key, -n)
	return newTaken(&d, checks).adjust(ctx, l.store, checks)
}

// taken is what was charged together: the receipt, and when the turn in its buckets comes.
type taken struct {
	receipt   Receipt
	wait      time.Duration
	oneBucket bool // at most one of the limits is a bucket, so that the wait is its own
}

// newTaken returns what d, which granted checks, has charged.
func newTaken(d *Decision, checks []Check) taken {
	buckets := 0
	for i := range checks {
		if checks[i].isBucket() {
			buckets++
		}
	}
	return taken{d.Receipt, d.Wait + d.Waited, buckets < 2}
}

func (c *Check) isBucket() bool {
	return c.Limit.Algorithm == TokenBucket || c.Limit.Algorithm == LeakyBucket
}

// instantOf returns the instant at which c was charged, which is needed to give it back. A turn in
// a bucket counts from when it comes, not from when it was booked: a long wait would otherwise
// outlast it. If several buckets were waited for, the turn in a leaky one is not known; with the
// earlier instant that turn stays unused.
func (t *taken) instantOf(c *Check) int64 {
	if !c.isBucket() || c.Limit.Algorithm == LeakyBucket && (c.Advisory || !t.oneBucket) {
		return t.receipt.At
	}
	return t.receipt.At + ticks(t.wait)
}

// receiptAt returns the receipt with another instant.
func (t *taken) receiptAt(at int64) Receipt {
	r := t.receipt
	r.At = at
	return r
}

// adjust calls Store.Adjust for checks, once for each instant that they were taken at.
func (t taken) adjust(ctx context.Context, store Store, checks []Check) (err error) {
	for len(checks) > 0 {
		at := t.instantOf(&checks[0])
		var now, later []Check
		for _, c := range checks {
			if t.instantOf(&c) == at {
				now = append(now, c)
			} else {
				later = append(later, c)
			}
		}
		err = errors.Join(err, store.Adjust(ctx, t.receiptAt(at), now))
		checks = later
	}
	return err
}

// ticks returns d in ticks of 1/1024 µs, as in Receipt.At.
func ticks(d time.Duration) int64 { return int64(d) + int64(d)*3/125 }

// sleep waits for d, or returns ctx's error if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
