package tidegate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// blocking is a limit of events an hour, with a block, and the peek of it that
// belongs into every vector.
func blocking(events int64, block time.Duration) (limit, peek tidegate.Check) {
	b := tidegate.MustLimit(tidegate.Spec{Name: "login", Scope: "ip#block", Events: 1, Period: block, Terms: &tidegate.Terms{Role: tidegate.Blocks}})
	l := tidegate.MustLimit(tidegate.Spec{Name: "login", Scope: "ip", Events: events, Period: time.Minute, Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Block: b}}})
	return tidegate.Check{Key: "a", Limit: l, Cost: 1}, tidegate.Check{Key: "a", Limit: b}
}

func TestBlockRefusesForItsPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, peek := blocking(2, 15*time.Minute)
		gate := tidegate.NewGate(vector{limit, peek}, memory.New())
		f := func(ok bool, by *tidegate.Limit, retry time.Duration) {
			t.Helper()
			if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK != ok || d.Limit != by || d.RetryAfter != retry {
				t.Errorf("%+v, want %t by %s, retry %s", d, ok, by, retry)
			}
		}
		f(true, limit.Limit, 0)
		f(true, limit.Limit, 0)
		begin := time.Now()
		f(false, limit.Limit, 15*time.Minute) // the refusal that starts it
		for range 14 {                        // and those after it do not prolong it
			f(false, peek.Limit, 15*time.Minute-time.Since(begin))
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Minute - time.Microsecond)
		f(false, peek.Limit, time.Microsecond)
		time.Sleep(time.Microsecond)
		f(true, limit.Limit, 0)
	})
}

// A limit that takes longer than its block goes on refusing, and is what clients
// are told of; its refusals start no second block before the first has ended.
func TestBlockShorterThanItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, peek := blocking(1, 10*time.Second)
		store := &counting{Store: memory.New()}
		gate := tidegate.NewGate(vector{limit, peek}, store)
		for range 6 { // one passes, and for a minute none does
			gate.Decide(t.Context(), &tidegate.Request{})
			time.Sleep(5 * time.Second)
		}
		if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK || d.Limit != limit.Limit || d.RetryAfter != 30*time.Second {
			t.Errorf("%+v", d)
		}
		time.Sleep(30 * time.Second) // blocks started at 5, 15 and 25 s have ended
		if d := gate.Decide(t.Context(), &tidegate.Request{}); !d.OK {
			t.Errorf("%+v", d)
		}
	})
}

// Only a key that has used the limit up is blocked: not one that asks for more than there can
// be, nor one that there was no memory for, nor another key.
func TestBlockIsForThoseWhoUsedTheLimitUp(t *testing.T) {
	limit, peek := blocking(2, time.Hour)
	store := memory.New()
	big := limit
	big.Cost = 3
	if d := tidegate.NewGate(vector{big, peek}, store).Decide(t.Context(), &tidegate.Request{}); !d.Never {
		t.Errorf("%+v", d)
	}
	full := fullStore{store}
	if d := tidegate.NewGate(vector{limit, peek}, full).Decide(t.Context(), &tidegate.Request{}); d.OK || !errors.Is(d.Err, tidegate.ErrFull) {
		t.Errorf("%+v", d)
	}
	shadow := limit
	shadow.Key, shadow.Advisory = "b", true
	gate := tidegate.NewGate(vector{shadow, limit, peek}, store)
	for i := range 3 {
		if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK != (i < 2) {
			t.Errorf("request %d: %+v", i+1, d)
		}
	}
	blocked := tidegate.New(store, peek.Limit)
	wantLeft(t, blocked, "a", 0)
	wantLeft(t, blocked, "b", 1)
}

// fullStore has no room for any key.
type fullStore struct{ tidegate.Store }

func (fullStore) Take(_ context.Context, checks []tidegate.Check, _ int) (tidegate.Decision, error) {
	return tidegate.Decision{Limit: checks[0].Limit, RetryAfter: time.Second, Err: tidegate.ErrFull}, nil
}

// A client that hangs up at the refusal is blocked all the same, and a store that fails
// then leaves the refusal as it was.
func TestBlockOfAClientThatLeft(t *testing.T) {
	limit, peek := blocking(1, time.Hour)
	store := attentiveTaker{attentive{memory.New()}}
	gate := tidegate.NewGate(vector{limit, peek}, store)
	gate.Decide(t.Context(), &tidegate.Request{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d := gate.Decide(ctx, &tidegate.Request{}); d.OK || d.RetryAfter != time.Hour {
		t.Errorf("%+v", d)
	}
	flaky := &secondTakeFails{Store: memory.New()}
	gate = tidegate.NewGate(vector{limit}, flaky)
	gate.Decide(t.Context(), &tidegate.Request{})
	flaky.failing = true
	if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK || d.Err != nil || d.RetryAfter > time.Minute {
		t.Errorf("%+v", d)
	}
}

// attentiveTaker charges nothing for a single check of a context that has ended.
type attentiveTaker struct{ attentive }

func (s attentiveTaker) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if err := ctx.Err(); err != nil && len(checks) == 1 {
		return tidegate.Decision{}, err
	}
	return s.Store.Take(ctx, checks, n)
}

// secondTakeFails answers about the hour but not about the block.
type secondTakeFails struct {
	*memory.Store
	failing bool
}

func (s *secondTakeFails) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if s.failing && checks[0].Limit.Terms.Role == tidegate.Blocks {
		return tidegate.Decision{}, errDown
	}
	return s.Store.Take(ctx, checks, n)
}
