package sleep

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	// f sleeps for d with a context that ends after ends; a negative one has ended before.
	f := func(d, ends, took time.Duration, want error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), ends)
			defer cancel()
			start := time.Now()
			err := For(ctx, d)
			if got := time.Since(start); got != took || !errors.Is(err, want) {
				t.Errorf("%s, and the context lasts %s: %v after %s, want %v after %s", d, ends, err, got, want, took)
			}
		})
	}
	f(time.Second, time.Minute, time.Second, nil)
	f(time.Minute, time.Second, time.Second, context.DeadlineExceeded)
	f(0, time.Second, 0, nil)
	f(-time.Second, time.Second, 0, nil)
	f(time.Second, -1, 0, context.DeadlineExceeded)
	f(0, -1, 0, context.DeadlineExceeded)
	f(-time.Second, -1, 0, context.DeadlineExceeded)
}
