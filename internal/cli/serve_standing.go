package cli

import (
	"log/slog"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/admin"
	"tidegate.dev/tidegate/internal/guard"
)

// standing is how the shared store is doing: by what becomes of requests and, when
// there are none, by heartbeats. It tells the log when that changes, and not per
// request.
type standing struct {
	log *slog.Logger
	ask func() guard.Health // of the guard

	mu      sync.Mutex
	missed  error     // under mu: why heartbeats fail; nil: they do not
	since   time.Time // under mu: they do
	trouble time.Time // under mu: when the trouble began that the log was told of
}

// beat is told how each heartbeat went.
func (s *standing) beat(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.missed == nil {
		s.since = time.Now()
	}
	s.missed = err
	s.tellLocked(s.healthLocked(s.ask()))
}

// turned is told when the guard's state changes.
func (s *standing) turned(h guard.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.State == guard.OK {
		s.missed = nil // the store answers; the next beat tells whether them, too
	}
	s.tellLocked(s.healthLocked(h))
}

// health is how it is now.
func (s *standing) health() admin.Health {
	h := s.ask()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.healthLocked(h)
}

func (s *standing) healthLocked(h guard.Health) admin.Health {
	is := admin.Health{Status: h.State.String(), Since: h.Since}
	why := h.Why
	if s.missed != nil && (h.State == guard.OK || s.since.Before(h.Since)) {
		is.Since = s.since
		if h.State == guard.OK {
			is.Status, why = guard.Degraded.String(), s.missed
		}
	}
	if why != nil {
		is.Why = why.Error()
	}
	return is
}

func (s *standing) tellLocked(is admin.Health) {
	switch ok := is.Status == guard.OK.String(); {
	case !ok && s.trouble.IsZero():
		s.trouble = is.Since
		s.log.Warn("the store does not answer: on_store_failure of each rule decides until it does", "err", is.Why)
	case ok && !s.trouble.IsZero():
		s.log.Info("the store answers again", "after", time.Since(s.trouble).Round(time.Millisecond))
		s.trouble = time.Time{}
	}
}
