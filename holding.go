package tidegate

import (
	"context"
	"sync"
	"time"
)

// holding is slots in use. They are renewed until they are freed, at the latest by the end
// of the context that they were taken under.
type holding struct {
	store Store
	ctx   context.Context // outlives the caller's, to give slots back
	taken Receipt
	slots []Check

	mu     sync.Mutex
	freed  bool
	detach func() bool // no longer follow the caller's context
	renew  *time.Timer
}

func hold(ctx context.Context, store Store, taken Receipt, slots []Check) *holding {
	h := &holding{store: store, ctx: context.WithoutCancel(ctx), taken: taken, slots: slots}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.detach = context.AfterFunc(ctx, func() { _ = h.free() })
	h.keepAliveLocked()
	return h
}

// every is a third of the shortest lease.
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
		_ = renewer.Renew(h.ctx, h.taken, h.slots) // after an error the next one tries again
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.freed {
			h.renew.Reset(every)
		}
	})
}

// outliveContext holds the slots past the end of the context.
func (h *holding) outliveContext() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.detach()
}

// end stops renewing and returns the slots, to be given back by Adjust; none if that was
// done before.
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

// free gives the slots back, or returns ErrSettled when they are free.
func (h *holding) free() error {
	back := h.end()
	if back == nil {
		return ErrSettled
	}
	return h.store.Adjust(h.ctx, h.taken, back)
}
