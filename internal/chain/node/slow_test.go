package node

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// trip is the round trip to a slow store, in virtual time.
const trip = 2 * time.Millisecond

// slow is a memory store that is far away: it decides half a trip after it was asked.
type slow struct {
	*memory.Store
	deaf  chan struct{} // until it is closed, no call of Take returns, whatever its context says
	wrong any           // what a call of Take panics with
	lost  error         // what a call of Take ends with, after it has charged

	mu    sync.Mutex
	calls []int // the copies that each call of Take asked for
}

func newSlow() *slow { return &slow{Store: memory.New()} }

// suffer is the way of a call of Take to the store: it is recorded, and may get stuck or panic.
func (s *slow) suffer(n int) {
	s.mu.Lock()
	s.calls = append(s.calls, n)
	s.mu.Unlock()
	if s.deaf != nil {
		<-s.deaf
	}
	if s.wrong != nil {
		panic(s.wrong)
	}
	time.Sleep(trip / 2)
}

func (s *slow) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	s.suffer(n)
	defer time.Sleep(trip / 2)
	d, err := s.Store.Take(ctx, checks, n)
	if s.lost != nil {
		return tidegate.Decision{}, s.lost
	}
	return d, err
}

func (s *slow) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	time.Sleep(trip / 2)
	defer time.Sleep(trip / 2)
	return s.Store.Adjust(ctx, r, checks)
}

func (s *slow) Reset(ctx context.Context, checks []tidegate.Check) error {
	time.Sleep(trip / 2)
	defer time.Sleep(trip / 2)
	return s.Store.Reset(ctx, checks)
}

// slowShort also tells copies that are not granted why, as chain.Ask.Rest.
type slowShort struct{ *slow }

func (s slowShort) MaxBatch() int { return 1 }

func (s slowShort) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	for i := range asks {
		a := &asks[i]
		s.suffer(a.Copies)
		defer time.Sleep(trip / 2)
		a.Granted, a.Err = s.Store.Take(ctx, a.Checks, a.Copies)
		if a.Err == nil && a.Granted.OK && a.Granted.Granted < int64(a.Copies) {
			a.Rest, a.Err = s.Store.Take(ctx, a.Checks, 1)
		}
	}
	return nil
}

// wantCalls checks the calls of Take since it was last called: how many copies each asked for.
func (s *slow) wantCalls(t *testing.T, want ...int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := len(want) == len(s.calls)
	for i := range min(len(want), len(s.calls)) {
		ok = ok && want[i] == s.calls[i]
	}
	if !ok {
		t.Errorf("the inner store was asked for copies %v, want %v", s.calls, want)
	}
	s.calls = nil
}

// left returns what is left of c in the inner store.
func (s *slow) left(t *testing.T, c tidegate.Check) int64 {
	t.Helper()
	d, err := s.Store.Take(context.Background(), []tidegate.Check{{Key: c.Key, Limit: c.Limit}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// crowd is callers of a store, and the answers they got, in the order they came.
type crowd struct {
	store tidegate.Store
	sync.WaitGroup
	told []*told
}

type told struct {
	d     tidegate.Decision
	err   error
	after time.Duration
	leave context.CancelFunc
}

// come adds a caller that asks for n copies. When come returns, the caller waits or has its answer.
func (c *crowd) come(n int, checks ...tidegate.Check) *told {
	ctx, cancel := context.WithCancel(context.Background())
	return c.comeWith(ctx, cancel, n, checks)
}

// comeFor is come for one copy, with a deadline d from now.
func (c *crowd) comeFor(d time.Duration, checks ...tidegate.Check) *told {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	return c.comeWith(ctx, cancel, 1, checks)
}

func (c *crowd) comeWith(ctx context.Context, cancel context.CancelFunc, n int, checks []tidegate.Check) *told {
	who := &told{leave: cancel}
	c.told = append(c.told, who)
	start := time.Now()
	c.Go(func() {
		who.d, who.err = c.store.Take(ctx, checks, n)
		who.after = time.Since(start)
		if who.err == nil && who.d.Err != nil { // a fallback has decided, which is open here
			who.d, who.err = tidegate.Decision{}, who.d.Err
		}
	})
	synctest.Wait()
	return who
}

// granted returns how many copies the crowd was granted.
func (c *crowd) granted() (sum int64) {
	for _, who := range c.told {
		sum += who.d.Granted
	}
	return sum
}

func per(events int64, period time.Duration, a tidegate.Algorithm) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{Name: "test", Events: events, Period: period, Algorithm: a})
}
