package tidegate

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ReserveTTL is how long an unsettled reservation can be settled. After that
// its estimate stays charged.
const ReserveTTL = time.Hour

// Reservation is what Reserve and Acquire return. It is never nil: look at OK
// first. A reservation that was refused can be settled and cancelled without
// effect.
type Reservation struct {
	Decision

	settle func(actual int64) error // nil if nothing was reserved
	slots  *holding                 // nil unless it is Acquire's

	mu     sync.Mutex
	tried  bool  // under mu: Settle was called
	actual int64 // under mu: the cost that it was called with first
	done   bool  // under mu: there is nothing left to settle
}

// Delay returns how long to wait before acting; 0 for most limits.
func (r *Reservation) Delay() time.Duration { return r.Wait }

// Settle replaces the estimate by the true cost: what was reserved in excess is returned
// where it still counts, and what is missing is charged whether there is room or not. The
// first call settles; later ones, and one after ReserveTTL, return ErrSettled. If the store
// fails, Settle may be called again, and settles at the cost of the first call. A slot is
// freed, whatever actual is.
func (r *Reservation) Settle(actual int64) error {
	switch {
	case r.slots != nil:
		return r.slots.free()
	case r.settle == nil:
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return ErrSettled
	}
	if !r.tried {
		r.tried, r.actual = true, actual
	}
	err := r.settle(r.actual)
	r.done = err == nil || errors.Is(err, ErrSettled) || errors.Is(err, ErrElsewhere)
	if err == nil && actual != r.actual {
		return ErrSettled
	}
	return err
}

// Cancel is shorthand for Settle(0): it did not happen.
func (r *Reservation) Cancel() error { return r.Settle(0) }

// Detach keeps a slot when the context it was acquired under ends: only Cancel
// or Settle free it then.
func (r *Reservation) Detach() {
	if r.slots != nil {
		r.slots.outliveContext()
	}
}

// Reserve takes n as an estimate; Settle replaces it by the true cost. If it is never
// settled, n stays charged. If the store fails, or cannot reserve, the fail mode decides,
// as with Allow.
func (l *Limiter) Reserve(ctx context.Context, key string, n int64) *Reservation {
	store, ok := l.store.(Reserver)
	if !ok {
		return &Reservation{Decision: l.failed(ctx, ErrUnsupported)}
	}
	checks := l.vector(key, max(n, 0))
	for i := range checks {
		checks[i].Estimate = true
	}
	d, err := store.Reserve(ctx, checks, ReserveTTL)
	if err != nil {
		return &Reservation{Decision: l.failed(ctx, err)}
	}
	r := &Reservation{Decision: d}
	if !d.Receipt.Handle.IsZero() {
		after := context.WithoutCancel(ctx)
		r.settle = func(actual int64) error { return store.Settle(after, d.Receipt, max(actual, 0)) }
	}
	return r
}

// Settle settles a reservation of this or another process by its Receipt; see [Receipt] for
// how to hand that on. A later Settle of the Reservation returns ErrSettled. It returns
// ErrSettled if the reservation was settled before or has expired, and ErrElsewhere if the
// counters are those of another process, which has a memory store or has decided by itself
// while its Redis was away. In these cases nothing changes.
func (l *Limiter) Settle(ctx context.Context, r Receipt, actual int64) error {
	store, ok := l.store.(Reserver)
	if !ok {
		return ErrUnsupported
	}
	return store.Settle(ctx, r, max(actual, 0))
}

// Acquire takes a slot of a Concurrency limit and holds it, renewing its lease,
// until Cancel or Settle. A holder that dies frees it when the lease runs out.
// When ctx ends, the slot is freed as well. Limits of the other algorithms in
// the same Limiter are charged one event, which Cancel does not return.
func (l *Limiter) Acquire(ctx context.Context, key string) *Reservation {
	checks := l.vector(key, 1)
	d, err := l.store.Take(ctx, checks, 1)
	if err != nil {
		return &Reservation{Decision: l.failed(ctx, err)}
	}
	r := &Reservation{Decision: d}
	var slots []Check
	for i := range checks {
		if d.OK && checks[i].Limit.Algorithm == Concurrency {
			slots = append(slots, checks[i])
		}
	}
	if len(slots) > 0 {
		r.slots = hold(ctx, l.store, d.Receipt, slots)
	}
	return r
}
