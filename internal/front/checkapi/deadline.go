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
	waiting context.Context // nil means nobody has waited yet
	cancel  context.CancelFunc
}

// within is the context of one question that is put to the store now.
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

// stop ends what was waited for.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}

// deadlines is the time of questions that are asked together. Each has as long as a single one,
// as a store that is far away answers them one after the other; but once one was not answered in
// time, those after it have none.
type deadlines struct {
	server *Server
	ctx    context.Context
	last   *deadline // nil before the first
}

// next is the context of the next question.
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
