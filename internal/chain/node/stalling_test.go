package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// stalling is a server that can be stopped as by SIGSTOP, and the way to it. When it goes on, it does
// all that was sent meanwhile, whether somebody still waits for that or not.
type stalling struct {
	chain.Backend // for what is not below
	store         *memory.Store

	mu     sync.Mutex
	goes   chan struct{}     // closed while it does not stand still
	posted map[string]uint64 // the last number
	doubt  map[string]int64  // what calls without an answer were about, by counter
}

func newStalling() *stalling {
	store := memory.New()
	s := &stalling{Backend: chain.Adapt(store), store: store, goes: make(chan struct{}), posted: map[string]uint64{}, doubt: map[string]int64{}}
	close(s.goes)
	return s
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

// call has do done, and returns when the answer is here or the context ends.
func (s *stalling) call(ctx context.Context, do func()) error {
	answer := make(chan struct{})
	go func() {
		time.Sleep(trip / 2)
		s.mu.Lock()
		goes := s.goes
		s.mu.Unlock()
		<-goes
		s.mu.Lock()
		do()
		s.mu.Unlock()
		time.Sleep(trip / 2)
		close(answer)
	}()
	select {
	case <-answer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unanswered notes that nobody can know what became of checks.
func (s *stalling) unanswered(checks []tidegate.Check, copies int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range checks {
		s.doubt[counterName(&checks[i])] += max(checks[i].Cost, -checks[i].Cost) * int64(copies)
	}
}

func (s *stalling) used(c tidegate.Check) (used, doubt int64) {
	d, _ := s.store.Take(context.Background(), []tidegate.Check{{Key: c.Key, Limit: c.Limit}}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.Limit.Capacity() - d.Remaining, s.doubt[counterName(&c)]
}

func (s *stalling) MaxBatch() int { return 8 }

func (s *stalling) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	own := make([]chain.Ask, len(asks))
	for i := range asks {
		own[i] = chain.Ask{Checks: copied(asks[i].Checks), Copies: asks[i].Copies}
	}
	err := s.call(ctx, func() {
		for i := range own {
			own[i].Granted, own[i].Err = s.store.Take(context.Background(), own[i].Checks, own[i].Copies)
		}
	})
	for i := range own {
		if err != nil {
			s.unanswered(own[i].Checks, own[i].Copies)
			continue
		}
		asks[i].Granted, asks[i].Err = own[i].Granted, own[i].Err
	}
	return err
}

func (s *stalling) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	asks := []chain.Ask{{Checks: checks, Copies: n}}
	if err := s.TakeBatch(ctx, asks); err != nil {
		return tidegate.Decision{}, err
	}
	return asks[0].Granted, asks[0].Err
}

func (s *stalling) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	checks = copied(checks)
	err := s.call(ctx, func() { _ = s.store.Adjust(context.Background(), r, checks) })
	if err != nil {
		s.unanswered(checks, 1)
	}
	return err
}

func (s *stalling) Post(ctx context.Context, p chain.Post) error {
	p.Check = copied([]tidegate.Check{p.Check})[0]
	return s.call(ctx, func() {
		name := fmt.Sprint(p.Boot, counterName(&p.Check))
		if s.posted[name] < p.Number {
			s.posted[name] = p.Number
			_ = s.store.Adjust(context.Background(), tidegate.Receipt{}, []tidegate.Check{p.Check})
		}
	})
}
