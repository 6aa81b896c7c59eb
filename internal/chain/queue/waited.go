package queue

import (
	"context"
	"time"
)

// Waited is the key of a context value, a *time.Duration, to which the time that
// the request waits in a queue is added. It is for front ends that tell of it.
type Waited struct{}

// recordWait starts to measure how long a request waits in a queue; the function that it returns ends
// that, and adds the time to Waited.
func recordWait(ctx context.Context, since time.Time) (end func()) {
	return func() {
		if sum, ok := ctx.Value(Waited{}).(*time.Duration); ok {
			*sum += time.Since(since)
		}
	}
}
