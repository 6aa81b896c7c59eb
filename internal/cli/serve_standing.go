package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/admin"
	"tidegate.dev/tidegate/internal/chain/node"
)

// standing is how the shared store is doing: by what becomes of requests and, when
// there are none, by heartbeats. It tells the log when that changes, and not per
// request.
type standing struct {
	log *slog.Logger
	ask func() node.Health // of the node
	// why the connections are of no use, as far as that is known; may be nil
	connection func() error

	mu      sync.Mutex
	missed  error     // under mu: why heartbeats fail; nil: they do not
	since   time.Time // under mu: they do
	trouble time.Time // under mu: when the trouble began that the log was told of
	reason  bool      // under mu: it was told why connections are of no use
}

// beat is told how each heartbeat went.
func (s *standing) beat(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.missed == nil {
		s.since = time.Now()
		if errors.Is(err, tidegate.ErrCannotAsk) {
			s.log.Warn("the store cannot be asked for the instances that share it: their number stays as it was last known", "err", err)
		}
	}
	s.missed = err
	s.tellLocked(s.healthLocked(s.ask()))
}

// turned is told when the node's state changes.
func (s *standing) turned(h node.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.State == node.OK {
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

func (s *standing) healthLocked(h node.Health) admin.Health {
	is := admin.Health{Status: h.State.String(), Since: h.Since}
	why := h.Why
	switch {
	case s.missed == nil:
	case errors.Is(s.missed, tidegate.ErrCannotAsk): // the store works
		is.Unasked = append(is.Unasked, admin.Unasked{Rule: "instances", Why: s.missed.Error(), Since: s.since})
	case h.State == node.OK || s.since.Before(h.Since):
		is.Since = s.since
		if h.State == node.OK {
			is.Status, why = node.Degraded.String(), s.missed
		}
	}
	if why != nil {
		is.Why = s.explain(why)
	}
	for _, u := range h.Unasked {
		if !u.Over {
			is.Unasked = append(is.Unasked, admin.Unasked{Rule: u.Rule, Why: u.Why.Error(), Since: u.Since})
		}
	}
	if len(is.Unasked) > 0 && is.Status == node.OK.String() {
		first := is.Unasked[0]
		is.Status, is.Since = partial, first.Since
		is.Why = fmt.Sprintf("the store cannot be asked about %s: %s", first.Rule, first.Why)
	}
	return is
}

// partial is the status of a store that works, but for some rules.
const partial = "partial"

// explain adds what is wrong with the connection: callers with a short deadline see only
// that it passed.
func (s *standing) explain(why error) string {
	text := why.Error()
	if err := s.unusable(); err != nil && !strings.Contains(text, errors.Unwrap(err).Error()) {
		text += ": " + err.Error()
	}
	return text
}

// unusable is why connections are of no use, if that is known, with the address before it.
func (s *standing) unusable() error {
	if s.connection == nil {
		return nil
	}
	return s.connection()
}

// unasked tells the log that the store cannot be asked about a rule, and when that is over.
func (s *standing) unasked(u node.Unasked) {
	if u.Over {
		s.log.Info("the store can be asked about the rule again", "rule", u.Rule, "after", time.Since(u.Since).Round(time.Millisecond))
		return
	}
	s.log.Warn("the store cannot be asked about a rule: its on_store_failure decides", "rule", u.Rule, "err", u.Why)
}

func (s *standing) tellLocked(is admin.Health) {
	switch ok := is.Status == node.OK.String() || is.Status == partial; { // unasked tells of those
	case !ok && s.trouble.IsZero():
		s.trouble, s.reason = is.Since, s.unusable() != nil
		s.log.Warn("the store does not answer: on_store_failure of each rule decides until it does", "err", is.Why)
	case !ok && !s.reason: // connecting may take longer than a request waits
		if err := s.unusable(); err != nil {
			s.reason = true
			s.log.Warn("the connection to the store is of no use", "err", err)
		}
	case ok && !s.trouble.IsZero():
		s.log.Info("the store answers again", "after", time.Since(s.trouble).Round(time.Millisecond))
		s.trouble = time.Time{}
	}
}
