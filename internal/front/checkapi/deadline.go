package checkapi

import (
	"context"
	"sync"
	"time"
)

// deadline is a context with a deadline that takes a timer only once somebody waits for it:
// counters in memory are asked without waiting.
type deadline struct {
	context.Context
	at time.Time

	mu      sync.Mutex
	waiting context.Context // nil: nobody has waited yet
	cancel  context.CancelFunc
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting, d.cancel = context.WithDeadline(d.Context, d.at)
	}
	return d.waiting.Done()
}

// Err implements context.Context.
func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		return d.Context.Err()
	}
	return d.waiting.Err()
}

// stop ends what was waited for.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}
