package optional

import (
	"context"
	"errors"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/storetest"
)

// around is a store that only passes on.
type around struct{ Store }

func (a around) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	return a.Inner.Take(ctx, checks, n)
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, now func() time.Time) tidegate.Store {
		return around{Store{memory.Open(memory.Config{Now: now})}}
	})
}

// bare is able to count and nothing else.
type bare struct{ tidegate.Store }

func TestWhatIsNotThere(t *testing.T) {
	s, ctx := Store{bare{memory.New()}}, t.Context()
	_, _, reserve := s.Reserve(ctx, nil, time.Minute)
	for name, err := range map[string]error{
		"Renew": s.Renew(ctx, 0, nil), "Reserve": reserve, "Settle": s.Settle(ctx, "", 0), "Reset": s.Reset(ctx, nil),
	} {
		if !errors.Is(err, tidegate.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
