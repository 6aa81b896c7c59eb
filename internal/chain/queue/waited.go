package queue

import (
	"context"
	"time"
)

// Waited is the key of a context value, a *time.Duration, to which the time that
// the request stands in line is added. It is for front ends that tell of it.
type Waited struct{}

// stand is called when a request begins to stand in line, and what it returns when it does no
// longer.
func stand(ctx context.Context, since time.Time) (end func()) {
	return func() {
		if sum, ok := ctx.Value(Waited{}).(*time.Duration); ok {
			*sum += time.Since(since)
		}
	}
}
