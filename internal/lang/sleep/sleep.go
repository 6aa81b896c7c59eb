// Package sleep waits for a time, or until a context ends. It is for the system clock; layers
// that are told their clock wait by that.
//
// Start with [For].
package sleep

import (
	"context"
	"time"
)

// For waits for d, or returns ctx's error if that ends first. It does not wait if d is not
// positive.
func For(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
