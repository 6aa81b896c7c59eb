package split

import (
	"context"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/storetest"
)

// splitting is a store whose limits are all split, as far as they can be.
type splitting struct {
	*Store
	mu   sync.Mutex
	made map[*tidegate.Limit]*tidegate.Limit
	was  map[*tidegate.Limit]*tidegate.Limit
}

func newSplitting(s *Store) *splitting {
	return &splitting{Store: s, made: map[*tidegate.Limit]*tidegate.Limit{}, was: map[*tidegate.Limit]*tidegate.Limit{}}
}

// splitLimit is l with the word.
func splitLimit(l *tidegate.Limit) *tidegate.Limit {
	spec := l.Spec
	terms := tidegate.Terms{}
	if spec.Terms != nil {
		terms = *spec.Terms
	}
	terms.Handling.Consistency = tidegate.Split
	spec.Terms = &terms
	return tidegate.MustLimit(spec)
}

func (s *splitting) split(checks []tidegate.Check) []tidegate.Check {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append([]tidegate.Check{}, checks...)
	for i := range all {
		l := all[i].Limit
		if l == nil || l.Identity() == "" || !tidegate.Split.Suits(l.Algorithm) {
			continue
		}
		if s.made[l] == nil {
			s.made[l] = splitLimit(l)
			s.was[s.made[l]] = l
		}
		all[i].Limit = s.made[l]
	}
	return all
}

func (s *splitting) tell(checks, all []tidegate.Check, d *tidegate.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range checks {
		checks[i].Over = all[i].Over
	}
	if l := s.was[d.Limit]; l != nil {
		d.Limit = l
	}
}

// back is a receipt of the suite's own as the layer would have written it.
func (s *splitting) back(r tidegate.Receipt, checks []tidegate.Check) tidegate.Receipt {
	if r.Apart != nil || r.Origin != tidegate.OriginStore {
		return r
	}
	for i := range checks {
		if !Is(checks[i].Limit) {
			return r
		}
	}
	s.receipts.Sign(&r)
	return r
}

func (s *splitting) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	all := s.split(checks)
	d, err := s.Store.Take(ctx, all, n)
	s.tell(checks, all, &d)
	return d, err
}

func (s *splitting) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	all := s.split(checks)
	return s.Store.Adjust(ctx, s.back(r, all), all)
}

func (s *splitting) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	return s.Store.Renew(ctx, r, s.split(checks))
}

func (s *splitting) Reset(ctx context.Context, checks []tidegate.Check) error {
	return s.Store.Reset(ctx, s.split(checks))
}

func (s *splitting) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	all := s.split(checks)
	d, err := s.Store.Reserve(ctx, all, ttl)
	s.tell(checks, all, &d)
	return d, err
}

// An instance that is alone answers what a memory store does, to the letter.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() time.Time) tidegate.Store {
		store := memory.Open(memory.Config{Now: now})
		return newSplitting(New(chain.Adapt(store), Options{Now: now, Local: store, Whole: true}))
	})
}

// So do vectors of which a store below has a part, one after the other. What a share grants
// and the store then refuses is put back; in between it looks taken to others, whom a limit
// may refuse that has room a moment later. TestSharesRace has them all at once.
func TestConformanceMixed(t *testing.T) {
	storetest.RunReal(t, func(t *testing.T) tidegate.Store {
		return &inTurn{splitting: newSplitting(New(chain.Adapt(memory.New()), Options{}))}
	}, storetest.Brief())
}

// inTurn asks about one vector at a time.
type inTurn struct {
	*splitting
	turn sync.Mutex
}

func (s *inTurn) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.splitting.Take(ctx, checks, n)
}
