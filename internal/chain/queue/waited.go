package queue

import (
	"context"
	"time"
)

// Waited is the key of a context value, a *time.Duration, to which the time that the request
// waits in a queue is added. It is for front ends that report that time.
type Waited struct{}

// recordWait starts to measure how long a request waits in a queue. The function that it returns ends
// the measurement and adds the time to Waited.
func recordWait(ctx context.Context, since time.Time) (end func()) {
	return func() {
		if sum, ok := ctx.Value(Waited{}).(*time.Duration); ok {
			*sum += time.Since(since)
		}
	}
}
