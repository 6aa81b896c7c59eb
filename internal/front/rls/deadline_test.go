package rls_test

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/rls"
)

// A call has an hour, or three quarters of what its client waits, however long that is.
func TestDeadlineOfTheClient(t *testing.T) {
	o := inMemory(t, plain)
	seen := &timed{Store: o.Store}
	o.Store, o.Near, o.Far, o.Deadline = seen, nil, true, time.Hour
	s := rls.New(o)
	defer s.Close()
	const most = time.Duration(1<<63 - 1)
	for _, wait := range []time.Duration{
		20 * time.Minute, time.Hour, 81 * time.Minute, 24 * time.Hour, most / 5, most/4 - 1, most / 4, most/3 - 1, most / 3, most/3 + 1, most / 2, most/3*2 - time.Hour, most/3*2 + time.Hour, most,
	} {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		_, err := s.ShouldRateLimit(ctx, request("d", "five=x"))
		cancel()
		want := min(time.Hour, wait/4*3)
		if err != nil || seen.left < want/2 || seen.left > want {
			t.Errorf("who waits for %v: the store has %v, want %v (%v)", wait, seen.left, want, err)
		}
	}
}

// timed is a store that notes how much time it has.
type timed struct {
	tidegate.Store
	left time.Duration
}

func (s *timed) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	by, _ := ctx.Deadline()
	s.left = time.Until(by)
	return s.Store.Take(ctx, checks, n)
}
