package httplimit

import (
	"net/http"
	"sync/atomic"

	"tidegate.dev/tidegate"
)

// slot is held from before the handler is called until the request is over,
// or, if the handler hijacked the connection, until that is closed. When the
// client leaves, the request's context ends and the reservation with it.
type slot struct {
	held     *tidegate.Reservation
	hijacked atomic.Bool
}

// serve calls f with a writer that notices hijacking, and frees the slot after,
// also when f panics.
func (s *slot) serve(w http.ResponseWriter, f func(http.ResponseWriter)) {
	defer func() {
		if !s.hijacked.Load() {
			s.free()
		}
	}()
	f(s.watch(w))
}

// hijack keeps the slot past the request's context, which ends with the handler.
func (s *slot) hijack() {
	s.held.Detach()
	s.hijacked.Store(true)
}

// free gives the slot back, once. When the store cannot be told, the slot comes
// free by the end of its lease.
func (s *slot) free() { _ = s.held.Cancel() }
