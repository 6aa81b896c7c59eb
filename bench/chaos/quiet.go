package main

import (
	"context"
	"time"
)

// awaitQuiet waits until the machine is quiet, at most for most: where other programs hold the
// cores for longer than the deadline of a decision, figures would measure those.
func awaitQuiet(ctx context.Context, most time.Duration) {
	const (
		quiet = 10 * time.Millisecond
		look  = 2 * time.Second
	)
	for end := time.Now().Add(most); ctx.Err() == nil && time.Now().Before(end); {
		if oversleep(look) < quiet {
			return
		}
	}
}

// oversleep sleeps for a millisecond again and again for as long as look says, at least once, and
// returns by how much the longest sleep was too long.
func oversleep(look time.Duration) (worst time.Duration) {
	const nap = time.Millisecond
	for start := time.Now(); ; {
		began := time.Now()
		time.Sleep(nap)
		worst = max(worst, time.Since(began)-nap)
		if time.Since(start) >= look {
			return worst
		}
	}
}
