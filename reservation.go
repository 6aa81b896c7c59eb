package tidegate

import (
	"context"
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

	mu     sync.Mutex
	done   bool
	settle func(actual int64) error
	detach func() bool // no longer follow the context
	renew  *time.Timer
}

// Delay is how long to wait before acting; 0 for most limits.
func (r *Reservation) Delay() time.Duration { return r.Wait }

// Settle tells the true cost: less than reserved is returned where it still
// counts, more is charged unasked. The first call settles; later ones, and one
// that comes after ReserveTTL, return ErrSettled. For a slot, any actual ends it.
func (r *Reservation) Settle(actual int64) error {
	r.mu.Lock()
	if r.done {
		r.mu.Unlock()
		return ErrSettled
	}
	r.done = true
	if r.renew != nil {
		r.renew.Stop()
	}
	r.mu.Unlock()
	if r.settle == nil {
		return nil
	}
	return r.settle(actual)
}

// Cancel is shorthand for Settle(0): it did not happen.
func (r *Reservation) Cancel() error { return r.Settle(0) }

// Detach keeps a slot when the context it was acquired under ends: only Cancel
// or Settle free it then.
func (r *Reservation) Detach() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.detach != nil {
		r.detach()
	}
}

// Reserve takes n as an estimate; Settle replaces it by the true cost. When it
// is never settled, n stays charged. A store without reservations, or one that
// fails, is answered for by the fail mode, as with Allow.
func (l *Limiter) Reserve(ctx context.Context, key string, n int64) *Reservation {
	store, ok := l.store.(Reserver)
	if !ok {
		return &Reservation{Decision: l.failed(ErrUnsupported)}
	}
	checks := l.vector(key, max(n, 0))
	for i := range checks {
		checks[i].Estimate = true
	}
	d, id, err := store.Reserve(ctx, checks, ReserveTTL)
	if err != nil {
		return &Reservation{Decision: l.failed(err)}
	}
	r := &Reservation{Decision: d}
	if id != "" {
		after := context.WithoutCancel(ctx)
		r.settle = func(actual int64) error { return store.Settle(after, id, max(actual, 0)) }
	}
	return r
}

// Acquire takes a slot of a Concurrency limit and holds it, renewing its lease,
// until Cancel or Settle. A holder that dies frees it when the lease runs out.
// When ctx ends, the slot is freed as well. Limits of the other algorithms in
// the same Limiter are charged one event, which Cancel does not return.
func (l *Limiter) Acquire(ctx context.Context, key string) *Reservation {
	checks := l.vector(key, 1)
	d, err := l.store.Take(ctx, checks, 1)
	if err != nil {
		return &Reservation{Decision: l.failed(err)}
	}
	if held := hold(ctx, l.store, checks, d); held != nil {
		return held
	}
	return &Reservation{Decision: d}
}

// hold keeps the slots that were taken with d until the reservation is settled
// or ctx ends; nil when there are none.
func hold(ctx context.Context, store Store, checks []Check, d Decision) *Reservation {
	if !d.OK {
		return nil
	}
	var slots, release []Check
	for _, c := range checks {
		if c.Limit.Algorithm == Concurrency && !c.Advisory && c.Cost > 0 {
			slots = append(slots, c)
			c.Cost = -c.Cost
			release = append(release, c)
		}
	}
	if len(slots) == 0 {
		return nil
	}
	r := &Reservation{Decision: d}
	after := context.WithoutCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detach = context.AfterFunc(ctx, func() { _ = r.Cancel() })
	r.settle = func(int64) error {
		r.Detach()
		return store.Adjust(after, d.At, release)
	}
	r.keepAliveLocked(after, store, slots)
	return r
}

// keepAliveLocked renews the leases at a third of the shortest, until settled.
func (r *Reservation) keepAliveLocked(ctx context.Context, store Store, slots []Check) {
	renewer, ok := store.(Renewer)
	if !ok {
		return
	}
	every := slots[0].Limit.Period
	for _, c := range slots[1:] {
		every = min(every, c.Limit.Period)
	}
	every /= 3
	r.renew = time.AfterFunc(every, func() {
		_ = renewer.Renew(ctx, r.At, slots) // lost or not reached: the next one tells
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.done {
			r.renew.Reset(every)
		}
	})
}
