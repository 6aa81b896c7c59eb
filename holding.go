package tidegate

import (
	"context"
	"sync"
	"time"
)

// holding is slots in use. Their leases are renewed until they are freed, which happens at the
// latest when the context ends under which they were taken; see outliveContext.
type holding struct {
	store Store
	ctx   context.Context // the caller's without its end, to give slots back
	taken Receipt
	slots []Check

	mu     sync.Mutex
	freed  bool
	detach func() bool // stops following the end of the caller's context
	renew  *time.Timer
}

// hold starts to renew the leases of slots that were taken with the receipt taken. When ctx ends, the
// slots are freed.
func hold(ctx context.Context, store Store, taken Receipt, slots []Check) *holding {
	h := &holding{store: store, ctx: context.WithoutCancel(ctx), taken: taken, slots: slots}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.detach = context.AfterFunc(ctx, func() { _ = h.free() })
	h.keepAliveLocked()
	return h
}

// every returns the time from one renewal to the next: a third of the shortest lease.
func (h *holding) every() time.Duration {
	shortest := h.slots[0].Limit.Period
	for _, c := range h.slots[1:] {
		shortest = min(shortest, c.Limit.Period)
	}
	return shortest / 3
}

// keepAliveLocked renews the leases until they are freed.
func (h *holding) keepAliveLocked() {
	renewer, ok := h.store.(Renewer)
	if !ok {
		return
	}
	every := h.every()
	h.renew = time.AfterFunc(every, func() {
		_ = renewer.Renew(h.ctx, h.taken, h.slots) // after an error, the next renewal tries again
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.freed {
			h.renew.Reset(every)
		}
	})
}

// outliveContext keeps the slots even when the caller's context ends.
func (h *holding) outliveContext() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.detach()
}

// end stops renewing and returns the slots with negative costs, for Adjust to give back; none if
// it was called before.
func (h *holding) end() []Check {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.freed {
		return nil
	}
	h.freed = true
	h.detach()
	if h.renew != nil {
		h.renew.Stop()
	}
	back := append([]Check(nil), h.slots...)
	for i := range back {
		back[i].Cost = -back[i].Cost
	}
	return back
}

// free gives the slots back, or returns ErrSettled if that was done before.
func (h *holding) free() error {
	back := h.end()
	if back == nil {
		return ErrSettled
	}
	return h.store.Adjust(h.ctx, h.taken, back)
}
