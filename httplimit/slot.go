package httplimit

import (
	"net/http"
	"sync/atomic"
)

// slot holds what a request holds from before the handler is called until the request
// is over or, if the handler hijacked the connection, until that is closed. When the
// client leaves, the request's context ends, and so does what is held.
type slot struct {
	held     held
	hijacked atomic.Bool
}

// held is a *tidegate.Reservation, or a visitRecorder.
type held interface {
	Detach()       // no longer ends with the context
	Cancel() error // ends it; only the first call has an effect
}

// serve calls f with a writer that notices hijacking, and frees the slot after,
// also when f panics.
func (s *slot) serve(w http.ResponseWriter, f func(http.ResponseWriter)) {
	defer s.returned()
	f(s.watch(w))
}

func (s *slot) returned() {
	if !s.hijacked.Load() {
		s.free()
	}
}

// hijack keeps the slot beyond the end of the request's context, which ends with the handler.
func (s *slot) hijack() {
	s.held.Detach()
	s.hijacked.Store(true)
}

// free gives the slot back, once. If the store cannot be reached, the slot comes free at
// the end of its lease.
func (s *slot) free() { _ = s.held.Cancel() }
