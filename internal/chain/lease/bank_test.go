package lease

import (
	"context"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// bank is a shared store that lends. Each call takes a while.
type bank struct {
	chain.Backend
	takes time.Duration

	mu      sync.Mutex
	away    error
	loans   int
	lent    int64
	strict  int
	returns int64
}

func newBank() *bank { return &bank{Backend: chain.Adapt(memory.New()), takes: time.Millisecond} }

// open returns a Store that ends with the test.
func open(t *testing.T, b *bank) *Store {
	s := New(b, b, Options{})
	t.Cleanup(s.Close)
	return s
}

func (b *bank) enter(count func()) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	count()
	return b.away
}

func (b *bank) TakeAhead(ctx context.Context, checks []tidegate.Check, copies int, _ time.Duration) (granted, rest tidegate.Decision, err error) {
	if err := b.enter(func() { b.loans++ }); err != nil {
		return granted, rest, err
	}
	time.Sleep(b.takes)
	granted, err = b.Backend.Take(ctx, checks, copies)
	_ = b.enter(func() { b.lent += granted.Granted * checks[0].Cost })
	if err != nil || granted.Granted == int64(copies) {
		return granted, rest, err
	}
	rest, err = b.Backend.Take(ctx, checks, 1)
	return granted, rest, err
}

func (b *bank) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if err := b.enter(func() { b.strict++ }); err != nil {
		return tidegate.Decision{OK: true, Granted: 1, Err: err, Receipt: tidegate.Receipt{Origin: tidegate.OriginLocal}}, nil
	}
	time.Sleep(b.takes)
	return b.Backend.Take(ctx, checks, n)
}

func (b *bank) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	_ = b.enter(func() {
		for _, c := range checks {
			b.returns -= min(c.Cost, 0)
		}
	})
	return b.Backend.Adjust(ctx, r, checks)
}

func (b *bank) calls() (loans, strict int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.loans, b.strict
}

func limit(name string, a tidegate.Algorithm, events int64, period time.Duration) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{
		Name: name, Events: events, Period: period, Algorithm: a,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Leased}},
	})
}

func check(l *tidegate.Limit, cost int64) tidegate.Check {
	return tidegate.Check{Key: "ann", Limit: l, Cost: cost}
}

func take(t *testing.T, s tidegate.Store, checks ...tidegate.Check) tidegate.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), checks, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// heat makes a key hot: it returns when a portion is there.
func heatUp(t *testing.T, s *Store, checks ...tidegate.Check) {
	t.Helper()
	for range 5000 { // a busy machine may be too slow for a while
		take(t, s, checks...)
		time.Sleep(time.Millisecond)
		if _, left := s.Outstanding(); left > 3 {
			return
		}
	}
	t.Fatal("a key that is asked for all the time has no portion")
}
