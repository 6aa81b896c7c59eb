package tidegate

import (
	"context"
	"fmt"
	"math"
	"time"
)

// WaitN returns when key may spend n, or at once with an error: ErrNever when n
// is above the limit's capacity, ErrWait when the turn would come after ctx's
// deadline, and ctx's error when it ends first. Buckets are booked ahead, so
// that waiters go in the order they came; other limits are asked again when
// they said they would admit.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		patience := time.Duration(math.MaxInt64)
		if deadline, ok := ctx.Deadline(); ok {
			patience = max(0, time.Until(deadline))
		}
		d := l.take(ctx, key, n, patience)
		switch {
		case d.OK && d.Wait == 0:
			return nil
		case d.OK:
			return l.sleepBooked(ctx, key, n, d)
		case d.Never:
			return fmt.Errorf("tidegate: Wait(%q, %d) on %s: %w", key, n, d.Limit, ErrNever)
		case d.Err != nil && d.RetryAfter == 0:
			return fmt.Errorf("tidegate: Wait(%q, %d): %w", key, n, d.Err)
		case d.RetryAfter > patience:
			return fmt.Errorf("tidegate: Wait(%q, %d) on %s needs %s: %w", key, n, d.Limit, d.RetryAfter, ErrWait)
		}
		if err := sleep(ctx, d.RetryAfter); err != nil {
			return err
		}
	}
}

// sleepBooked waits for a turn that is already charged, and gives it back when
// the caller leaves before it.
func (l *Limiter) sleepBooked(ctx context.Context, key string, n int64, d Decision) error {
	err := sleep(ctx, d.Wait)
	if err == nil {
		return nil
	}
	if back := l.store.Adjust(context.WithoutCancel(ctx), d.At, l.vector(key, -n)); back != nil {
		return fmt.Errorf("%w (and the turn could not be given back: %w)", err, back)
	}
	return err
}

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
