package listen

import (
	"context"
	"time"
)

// Draining reports whether Shutdown or Close was called: responses should end their
// connections.
func (s *Server) Draining() bool { return s.draining.Load() }

// SkipIdleGrace makes Shutdown close idle connections almost at once: no successor takes
// over, so nothing is gained by waiting for one more request.
func (s *Server) SkipIdleGrace() { s.noGrace.Store(true) }

const (
	// shortGrace is the longest IdleGrace after SkipIdleGrace.
	shortGrace = 100 * time.Millisecond
	// lastFrames is how long Shutdown waits for connections to end after the last response.
	lastFrames = 200 * time.Millisecond
)

// Shutdown accepts no more connections and closes those that are open, each after its next
// response, or after IdleGrace: a connection that is closed while idle may have a request
// on its way at that moment. It returns when all requests are done, tunnels included, or
// when ctx ends; Close ends what is left then.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closeListeners()
	grace := s.o.IdleGrace
	if s.noGrace.Load() {
		grace = min(grace, shortGrace)
	}
	if deadline, ok := ctx.Deadline(); ok {
		grace = min(grace, time.Until(deadline)/4)
	}
	s.awaitNoConns(ctx, grace)
	closing, stop := context.WithCancel(ctx)
	defer stop()
	// It closes idle connections and sends GOAWAY at once, but returns late: it waits for
	// connections without a request, and for a second after GOAWAY.
	go func() { _ = s.http.Shutdown(closing) }()
	if err := waitUntil(ctx, s.isIdle); err != nil {
		return err
	}
	s.awaitNoConns(ctx, lastFrames) // of HTTP/2, which are written after the end of their stream
	return nil
}

// isIdle reports whether no request is in progress, and no response.
func (s *Server) isIdle() bool { return s.requests.Load() == 0 && s.group.Active() == 0 }

func (s *Server) awaitNoConns(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_ = waitUntil(ctx, func() bool { return s.group.Open() == 0 })
}

// waitUntil polls, as http.Server.Shutdown does.
func waitUntil(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// closeListeners closes all listeners, and makes later calls of Serve return at once.
func (s *Server) closeListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining.Store(true)
	for _, l := range s.listeners {
		_ = l.Close() // it may be closed already
	}
	s.listeners = nil
}

// Close ends everything at once: requests in progress are aborted.
func (s *Server) Close() error {
	s.closeListeners()
	s.stop()
	return s.http.Close()
}
