package redis

import (
	"context"
	"errors"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Every call of a Redis that stands still ends by itself, at the store's deadline if the
// caller has none.
func TestDeadlineOfTheStore(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{Addrs: []string{server.Addr}, Deadline: 100 * time.Millisecond})
	eventually(t, func() error { return s.Ping(context.Background()) }) // a busy machine may miss the deadline
	l := bucket("a", "user", 10, time.Minute)
	checks := []tidegate.Check{{Key: "k", Limit: l, Cost: 1, Estimate: true}}
	var held tidegate.Decision
	eventually(t, func() (err error) {
		held, err = s.Reserve(context.Background(), checks, time.Hour)
		return err
	})
	server.Pause()
	defer server.Resume()
	calls := map[string]func(context.Context) error{
		"Take":   func(ctx context.Context) error { _, err := s.Take(ctx, checks, 1); return err },
		"Adjust": func(ctx context.Context) error { return s.Adjust(ctx, tidegate.Receipt{}, checks) },
		"Renew": func(ctx context.Context) error {
			return s.Renew(ctx, tidegate.Receipt{At: 1}, []tidegate.Check{{Key: "k", Limit: tidegate.Slots(1, time.Minute)}})
		},
		"Reserve": func(ctx context.Context) error {
			_, err := s.Reserve(ctx, checks, time.Hour)
			return err
		},
		"Settle": func(ctx context.Context) error { return s.Settle(ctx, held.Receipt, 1) },
		"Reset":  func(ctx context.Context) error { return s.Reset(ctx, checks) },
		"Ping":   s.Ping,
	}
	for name, call := range calls {
		start := time.Now()
		err := call(context.Background())
		took := time.Since(start)
		t.Logf("%s: %s", name, took)
		if !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second { // the machine may be busy
			t.Errorf("%s: %v after %s", name, err, took)
		}
	}
}
