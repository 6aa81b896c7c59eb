package chain

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// AnswerBy is the context of a caller that needs an answer by a given time. At that time a layer
// that has a fallback lets it decide, even if the layer's own deadline is later: the caller is still
// there. The timer starts when somebody first waits, so a store that answers at once needs none.
// End it with Stop.
type AnswerBy struct {
	context.Context
	at     time.Time
	alarms *Alarms

	mu      sync.Mutex
	early   <-chan struct{} // closed at the time at; nil until Waits is called
	waiting context.Context // nil until Done is called
	cancel  context.CancelFunc
}

// NewAnswerBy returns a context that ends with ctx, or at the given time if that is earlier. Waits
// uses the timers of alarms, which may be nil, instead of one for each context.
func NewAnswerBy(ctx context.Context, at time.Time, alarms *Alarms) *AnswerBy {
	return &AnswerBy{Context: ctx, at: at, alarms: alarms}
}

// Waits returns the channels to select on instead of ctx.Done while waiting for an answer. early is
// closed when the caller needs the answer of a fallback, and left when ctx ends in any other way. If
// early is nil, left stands for both.
func Waits(ctx context.Context) (left, early <-chan struct{}) {
	a, ok := ctx.(*AnswerBy)
	if !ok || a.alarms == nil {
		return ctx.Done(), nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.early == nil {
		a.early = a.alarms.At(a.at)
	}
	return a.Context.Done(), a.early
}

// answerBy is the key of the context value by which a layer finds the AnswerBy it runs under.
type answerBy struct{}

// FallsBack reports whether ctx is that of an AnswerBy and its deadline has passed: the caller is still
// there, and needs the answer of a fallback now.
func FallsBack(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) && ctx.Value(answerBy{}) != nil
}

// Value implements context.Context.
func (a *AnswerBy) Value(key any) any {
	if key == (answerBy{}) {
		return a
	}
	return a.Context.Value(key)
}

// Deadline implements context.Context.
func (a *AnswerBy) Deadline() (time.Time, bool) {
	if at, ok := a.Context.Deadline(); ok && at.Before(a.at) {
		return at, true
	}
	return a.at, true
}

// Done implements context.Context.
func (a *AnswerBy) Done() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting, a.cancel = context.WithDeadline(a.Context, a.at)
	}
	return a.waiting.Done()
}

// Err implements context.Context.
func (a *AnswerBy) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.early:
		return cmp.Or(a.Context.Err(), context.DeadlineExceeded)
	default:
	}
	if a.waiting == nil {
		return a.Context.Err()
	}
	return a.waiting.Err()
}

// Stop releases the timer.
func (a *AnswerBy) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cancel != nil {
		a.cancel()
	}
}
