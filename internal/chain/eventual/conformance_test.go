package eventual

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

// all is a store whose limits are all eventual, as far as they can be.
type all struct {
	*Store
	mu   sync.Mutex
	made map[*tidegate.Limit]*tidegate.Limit
	was  map[*tidegate.Limit]*tidegate.Limit
}

func newAll(s *Store) *all {
	return &all{Store: s, made: map[*tidegate.Limit]*tidegate.Limit{}, was: map[*tidegate.Limit]*tidegate.Limit{}}
}

func (s *all) eventual(checks []tidegate.Check) []tidegate.Check {
	s.mu.Lock()
	defer s.mu.Unlock()
	some := append([]tidegate.Check{}, checks...)
	for i := range some {
		l := some[i].Limit
		if l == nil || l.Identity() == "" || !tidegate.Eventual.Suits(l.Algorithm) {
			continue
		}
		if s.made[l] == nil {
			spec := l.Spec
			terms := tidegate.Terms{}
			if spec.Terms != nil {
				terms = *spec.Terms
			}
			terms.Handling.Consistency = tidegate.Eventual
			spec.Terms = &terms
			s.made[l] = tidegate.MustLimit(spec)
			s.was[s.made[l]] = l
		}
		some[i].Limit = s.made[l]
	}
	return some
}

func (s *all) tell(checks, some []tidegate.Check, d *tidegate.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range checks {
		checks[i].Over = some[i].Over
	}
	if l := s.was[d.Limit]; l != nil {
		d.Limit = l
	}
}

func (s *all) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	some := s.eventual(checks)
	d, err := s.Store.Take(ctx, some, n)
	s.tell(checks, some, &d)
	return d, err
}

func (s *all) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	some := s.eventual(checks)
	ours := r.Apart == nil && r.Origin == tidegate.OriginStore
	for i := range some {
		ours = ours && Is(some[i].Limit)
	}
	if ours { // a receipt of the suite's own, as the layer would have written it
		s.receipts.Sign(&r)
	}
	return s.Store.Adjust(ctx, r, some)
}

func (s *all) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	return s.Store.Renew(ctx, r, s.eventual(checks))
}

func (s *all) Reset(ctx context.Context, checks []tidegate.Check) error {
	return s.Store.Reset(ctx, s.eventual(checks))
}

func (s *all) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	some := s.eventual(checks)
	d, err := s.Store.Reserve(ctx, some, ttl)
	s.tell(checks, some, &d)
	return d, err
}

// inTurn asks about one vector at a time: what is granted here and refused below is put back, and
// looks taken in between.
type inTurn struct {
	*all
	turn sync.Mutex
}

func (s *inTurn) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.all.Take(ctx, checks, n)
}

// An instance that is alone answers what a memory store does, to the letter.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() time.Time) tidegate.Store {
		return newAll(New(chain.Adapt(memory.Open(memory.Config{Now: now})), Options{Now: now}))
	}, storetest.Only("fixed_window", "sliding_window", "sub_windows", "quota",
		"vectors", "copies", "advisory", "floors", "returns", "changes", "clock_steps", "misuse", "reservations", "resets"))
}

// So does it beside limits of a store below.
func TestConformanceMixed(t *testing.T) {
	storetest.RunReal(t, func(t *testing.T) tidegate.Store {
		return &inTurn{all: newAll(New(chain.Adapt(memory.New()), Options{}))}
	}, storetest.Brief())
}

// So does one that exchanges counts all the time.
func TestConformanceWithExchanges(t *testing.T) {
	storetest.RunReal(t, func(t *testing.T) tidegate.Store {
		f := newFleet(t, 1, 0, nil)
		f.nodes[0].o.Interval = 2 * time.Millisecond
		t.Cleanup(f.close)
		return &inTurn{all: newAll(f.nodes[0])}
	}, storetest.Brief())
}
