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
		patience := time.Duration(math.MaxInt64)
		if deadline, ok := ctx.Deadline(); ok {
			patience = max(0, time.Until(deadline))
		}
		var d Decision
		l.take(ctx, &d, key, n, patience)
		switch {
		case d.OK && d.Wait == 0:
			return nil
		case d.OK:
			return l.sleepBooked(ctx, key, n, d)
		case d.Never:
			return fmt.Errorf("tidegate: Wait(%q, %d) on %s: %w", key, n, d.Limit, ErrNever)
		case d.Err != nil && d.RetryAfter == 0:
			return fmt.Errorf("tidegate: Wait(%q, %d): %w", key, n, d.Err)
		case d.Err != nil && d.RetryAfter > patience:
			return fmt.Errorf("tidegate: Wait(%q, %d): %w, as the store has no answer: %w", key, n, ErrWait, d.Err)
		case turn(&d, n, patience) > patience:
			return fmt.Errorf("tidegate: Wait(%q, %d) on %s needs %s: %w", key, n, d.Limit, turn(&d, n, patience), ErrWait)
		}
		if err := sleep(ctx, d.RetryAfter); err != nil {
			return err
		}
	}
}

// bookAhead is how far ahead a token bucket is booked at most.
const bookAhead = time.Hour

// turn is how long after the refusal d the turn of n would come. RetryAfter is
// when asking again helps: for a bucket that is when it can be booked, by all
// the patience there is before the turn, or as soon as there is a place in line.
func turn(d *Decision, n int64, patience time.Duration) time.Duration {
	l := d.Limit
	switch {
	case d.Err != nil || l == nil:
		return d.RetryAfter
	case l.Algorithm == TokenBucket:
		return d.RetryAfter + min(patience, bookAhead)
	case l.Algorithm == LeakyBucket:
		line := float64(l.Capacity()-max(n, 1)) * float64(l.Period) / float64(l.Events)
		return d.RetryAfter + min(patience, time.Duration(line))
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
	return adjust(ctx, l.store, d.At, d.Wait, l.vector(key, -n))
}

// adjust is Store.Adjust of what was taken at the instant at, to wait for. A turn
// in a bucket counts from when it comes, not from when it was booked: a long wait
// would otherwise outlast it.
func adjust(ctx context.Context, store Store, at int64, wait time.Duration, checks []Check) error {
	var booked, taken []Check
	for _, c := range checks {
		if wait > 0 && (c.Limit.Algorithm == TokenBucket || c.Limit.Algorithm == LeakyBucket) {
			booked = append(booked, c)
		} else {
			taken = append(taken, c)
		}
	}
	var err error
	if len(booked) > 0 {
		err = store.Adjust(ctx, at+ticks(wait), booked)
	}
	if len(taken) > 0 {
		err = errors.Join(err, store.Adjust(ctx, at, taken))
	}
	return err
}

// ticks of 1/1024 µs, as in Decision.At.
func ticks(d time.Duration) int64 { return int64(d) + int64(d)*3/125 }

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
