package httplimit

import (
	"context"
	"net/http"
	"sync/atomic"

	"tidegate.dev/tidegate"
)

// slot is held from before the handler is called until the request is over,
// or, if the handler hijacked the connection, until that is closed.
type slot struct {
	held     *tidegate.Reservation
	hijacked atomic.Bool
}

func (h *limitHandler) serveHolding(w http.ResponseWriter, r *http.Request, key string) {
	// Not under the request's own context, which ends with the handler: a
	// hijacked connection goes on.
	held := h.lim.Acquire(context.WithoutCancel(r.Context()), key)
	s := &slot{held: held}
	stop := context.AfterFunc(r.Context(), s.requestOver)
	defer func() { // also when the handler panics
		stop()
		s.requestOver()
	}()
	if h.admit(w, r, &held.Decision) {
		h.next.ServeHTTP(s.watch(w), r)
	}
}

func (s *slot) requestOver() {
	if !s.hijacked.Load() {
		s.free()
	}
}

// free gives the slot back, once. When the store cannot be told, the slot comes
// free by the end of its lease.
func (s *slot) free() { _ = s.held.Cancel() }
