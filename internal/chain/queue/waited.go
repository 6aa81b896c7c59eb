package queue

import (
	"context"
	"time"
)

// Waited is the key of a context value, a *time.Duration, to which the time that
// the request stands in line is added. It is for front ends that tell of it.
type Waited struct{}

// Watch is the key of a context value, a func() (stop func()), that is called when the request
// begins to stand in line; stop is called when it does no longer. It is for front ends that have
// to look whether their client has left, in order to end the context.
type Watch struct{}

// stand is called when a request begins to stand in line, and what it returns when it does no
// longer.
func stand(ctx context.Context, since time.Time) (end func()) {
	stop := func() {}
	if watch, ok := ctx.Value(Watch{}).(func() func()); ok {
		stop = watch()
	}
	return func() {
		stop()
		if sum, ok := ctx.Value(Waited{}).(*time.Duration); ok {
			*sum += time.Since(since)
		}
	}
}
