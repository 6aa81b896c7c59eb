package sim

import (
	"context"
	"slices"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/eventual/hub"
)

// linkTallies is the chain.Tallies of a link.
type linkTallies struct{ l *link }

// Exchange implements chain.Tallies.
func (t linkTallies) Exchange(ctx context.Context, tallies []chain.Tally) error {
	own := slices.Clone(tallies) // it may arrive when nobody waits any more
	err := t.l.effect(ctx, func(s *server) error { return s.tallies().Exchange(ctx, own) })
	if err == nil {
		copy(tallies, own)
	}
	return err
}

// Time implements chain.Tallies.
func (t linkTallies) Time(ctx context.Context) (time.Time, error) {
	answer := make(chan time.Time, 1)
	if err := t.l.call(ctx, simply(func(s *server) { answer <- s.now() })); err != nil {
		return time.Time{}, err
	}
	return <-answer, nil
}

// tallies returns what the server has been told of the counts that instances keep by themselves.
func (s *server) tallies() *hub.Hub {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.tallies
}
