package queue

import (
	"context"
	"time"
)

// Waited is the key of a context value, a *time.Duration, to which the time that
// the request stands in line is added. It is for front ends that tell of it.
type Waited struct{}

func note(ctx context.Context, since time.Time) {
	if sum, ok := ctx.Value(Waited{}).(*time.Duration); ok {
		*sum += time.Since(since)
	}
}
