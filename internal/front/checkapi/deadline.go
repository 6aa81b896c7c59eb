package checkapi

import (
	"context"
	"sync"
	"time"
)

// deadline is a context whose timer starts only when something waits for it: counters in memory
// answer without waiting.
type deadline struct {
	context.Context
	at time.Time

	mu      sync.Mutex
	waiting context.Context // nil means nobody has waited yet
	cancel  context.CancelFunc
}

// within returns the context for a question to the store, starting now.
func (s *Server) within(ctx context.Context) *deadline {
	return &deadline{Context: ctx, at: time.Now().Add(s.Deadline)}
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

// stop releases the timer.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}

// deadlines are the contexts of questions that are asked together. Each gets as long as a single
// one, since a distant store answers them in sequence; but after one has timed out, the rest gets
// no time.
type deadlines struct {
	server *Server
	ctx    context.Context
	last   *deadline // nil before the first
}

// next returns the context of the next question.
func (d *deadlines) next() *deadline {
	if d.last != nil && !time.Now().Before(d.last.at) {
		return d.last
	}
	d.stop()
	d.last = d.server.within(d.ctx)
	return d.last
}

func (d *deadlines) stop() {
	if d.last != nil {
		d.last.stop()
	}
}
