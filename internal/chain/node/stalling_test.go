package node

import (
	"sync"
	"time"
)

// stalling is a server that can be stopped as by SIGSTOP, and the way to it. When it goes on, it does
// all that was sent meanwhile, whether somebody still waits for that or not.
type stalling struct {
	*remote

	mu   sync.Mutex
	goes chan struct{} // under mu: closed while it does not stand still
}

func newStalling() *stalling {
	s := &stalling{goes: make(chan struct{})}
	close(s.goes)
	s.remote = newRemote(8, s.arrive, func() { time.Sleep(trip / 2) })
	return s
}

// arrive waits until the server reads a message.
func (s *stalling) arrive() {
	time.Sleep(trip / 2)
	s.mu.Lock()
	goes := s.goes
	s.mu.Unlock()
	<-goes
}

func (s *stalling) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goes = make(chan struct{})
}

func (s *stalling) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.goes)
}
