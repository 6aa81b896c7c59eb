package fleet

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/node"
)

// healthWatch combines what requests and heartbeats show of Redis.
type healthWatch struct {
	ask  func() (h node.Health, instances int, connection error)
	tell func(Health)

	mu     sync.Mutex
	missed error                 // under mu: why heartbeats fail
	since  time.Time             // under mu: when heartbeats began to fail
	silent map[string]*oneServer // under mu: of several servers, those that have not answered the last heartbeats
	told   string                // under mu: the summary of which tell was last called; "" is OK
	reason bool                  // under mu: tell was called with why connections fail
}

// oneServer is one of several servers that has not answered the last heartbeats.
type oneServer struct {
	why   error
	since time.Time
	times int
}

// missedBeats is how many heartbeats in a row a server must leave unanswered to count as down: a
// single one may get lost on a busy machine.
const missedBeats = 2

// beat is called with the result of each heartbeat.
func (s *healthWatch) beat(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var some interface{ Servers() map[string]error }
	if errors.As(err, &some) && !errors.Is(err, tidegate.ErrCannotAsk) {
		s.missLocked(some.Servers())
		err = nil
	} else {
		s.silent = nil
	}
	if err != nil && s.missed == nil {
		s.since = time.Now()
	}
	s.missed = err
	s.lookLocked()
}

// missLocked notes which servers have not answered a heartbeat.
func (s *healthWatch) missLocked(servers map[string]error) {
	before := s.silent
	s.silent = make(map[string]*oneServer, len(servers))
	for name, why := range servers {
		one := before[name]
		if one == nil {
			one = &oneServer{since: time.Now()}
		}
		one.why, one.times = why, one.times+1
		s.silent[name] = one
	}
}

// turned is called when the state of the node changes.
func (s *healthWatch) turned(h node.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.State == node.OK {
		s.missed = nil // Redis answers; the next heartbeat shows whether it answers those, too
	}
	for _, server := range h.Servers {
		if m := s.silent[server.Name]; m != nil && server.State == node.OK && server.Since.After(m.since) {
			delete(s.silent, server.Name)
		}
	}
	s.lookLocked()
}

// now returns the current health.
func (s *healthWatch) now() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.healthLocked()
}

// lookLocked calls tell if the health has changed.
func (s *healthWatch) lookLocked() {
	is := s.healthLocked()
	tells := is.summary()
	changed := tells != s.told && (tells != OK || s.told != "")
	// The reason may come later than the status, since connecting may take longer than a request waits.
	if !changed && (is.Status == OK || is.Connection == nil || s.reason) {
		return
	}
	s.told, s.reason = tells, is.Connection != nil && is.Status != OK
	if s.tell != nil {
		s.tell(is)
	}
}

// summary returns the status and, if it is Partial, the servers that are not OK.
func (h *Health) summary() string {
	tells := h.Status
	for i := range h.Servers {
		if s := &h.Servers[i]; s.Status != OK && h.Status == Partial {
			tells += " " + s.Name + " " + s.Status
		}
	}
	return tells
}

func (s *healthWatch) healthLocked() Health {
	h, instances, connection := s.ask()
	is := Health{Status: h.State.String(), Since: h.Since, Why: h.Why, Instances: instances, Connection: connection}
	if len(h.Servers) > 1 {
		s.serversLocked(&is, h.Servers)
	}
	switch {
	case s.missed == nil:
	case errors.Is(s.missed, tidegate.ErrCannotAsk): // Redis works
		is.Unasked = append(is.Unasked, Unasked{Rule: "instances", Why: s.missed, Since: s.since})
	case h.State == node.OK || s.since.Before(h.Since):
		is.Since = s.since
		if h.State == node.OK {
			is.Status, is.Why = Degraded, s.missed
		}
	}
	if is.Why != nil && connection != nil && !strings.Contains(is.Why.Error(), errors.Unwrap(connection).Error()) {
		is.Why = fmt.Errorf("%w: %w", is.Why, connection)
	}
	for _, u := range h.Unasked {
		if !u.Over {
			is.Unasked = append(is.Unasked, Unasked(u))
		}
	}
	if len(is.Unasked) > 0 && is.Status == OK {
		first := is.Unasked[0]
		is.Status, is.Since = Partial, first.Since
		is.Why = fmt.Errorf("the store cannot be asked about %s: %w", first.Rule, first.Why)
	}
	return is
}

// serversLocked sets how each of several servers is doing, and what follows for the whole.
func (s *healthWatch) serversLocked(is *Health, servers []node.ServerHealth) {
	well := 0
	var first *Server
	is.Servers = make([]Server, len(servers))
	for i, h := range servers {
		one := Server{Name: h.Name, Status: h.State.String(), Since: h.Since, Why: h.Why, Backlog: h.Backlog}
		if m := s.silent[h.Name]; m != nil && m.times >= missedBeats && h.State == node.OK {
			one.Status, one.Since, one.Why = Degraded, m.since, m.why
		}
		is.Servers[i] = one
		if one.Status == OK {
			well++
		} else if first == nil || one.Since.Before(first.Since) {
			first = &is.Servers[i]
		}
	}
	if first == nil {
		return
	}
	is.Since, is.Why = first.Since, fmt.Errorf("%s: %w", first.Name, first.Why)
	if is.Status = Partial; well == 0 {
		is.Status = first.Status
	}
}
