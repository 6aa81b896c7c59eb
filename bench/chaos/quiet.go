package main

import (
	"context"
	"time"
)

// awaitQuiet waits for the machine to have time for us, for so long at most: where
// others take the cores for longer than the deadline, figures tell of them.
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

// oversleep is the most by which a sleep of a millisecond, one at least, is too long
// meanwhile.
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
