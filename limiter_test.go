package tidegate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// bucket is a token bucket that refills to burst in a period.
func bucket(events int64, period time.Duration) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{Events: events, Period: period, Algorithm: tidegate.TokenBucket})
}

// wantLeft peeks.
func wantLeft(t *testing.T, lim *tidegate.Limiter, key string, want int64) {
	t.Helper()
	if d := lim.Peek(t.Context(), key); d.Remaining != want || d.OK != (want > 0) {
		t.Errorf("%q has %d left, OK %v; want %d", key, d.Remaining, d.OK, want)
	}
}

func TestAllowCountsDownAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(4, time.Minute)
		lim := tidegate.New(memory.New(), l)
		for left := int64(3); left >= 0; left-- {
			d := lim.Allow(t.Context(), "alice")
			if !d.OK || d.Granted != 1 || d.Remaining != left || d.Limit != l || d.RetryAfter != 0 || d.Err != nil {
				t.Fatalf("with %d to be left: %+v", left, d)
			}
		}
		d := lim.Allow(t.Context(), "alice")
		if d.OK || d.Never || d.Granted != 0 || d.Remaining != 0 || d.RetryAfter != 15*time.Second || d.ResetAfter != time.Minute {
			t.Fatalf("the fifth: %+v", d)
		}
		wantLeft(t, lim, "bob", 4)
		time.Sleep(d.RetryAfter - time.Nanosecond)
		wantLeft(t, lim, "alice", 0)
		time.Sleep(time.Nanosecond)
		wantLeft(t, lim, "alice", 1)
	})
}

func TestAllowN(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.PerHour(10))
	f := func(n int64, ok bool, left int64) {
		t.Helper()
		if d := lim.AllowN(t.Context(), "alice", n); d.OK != ok || d.Remaining != left || d.Err != nil {
			t.Errorf("AllowN(%d): OK %v, %d left, %v; want %v, %d", n, d.OK, d.Remaining, d.Err, ok, left)
		}
	}
	f(7, true, 3)
	f(4, false, 3)
	f(0, true, 3)
	f(-5, true, 3) // asking for less than nothing gives nothing back
	f(3, true, 0)
	f(0, false, 0)
	if d := lim.AllowN(t.Context(), "bob", 11); d.OK || !d.Never || d.RetryAfter != 0 {
		t.Errorf("eleven of ten: %+v", d)
	}
	wantLeft(t, lim, "bob", 10)
}

func TestSeveralLimitsAreChargedTogetherOrNotAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		second, hour := tidegate.PerSecond(2), tidegate.PerHour(5)
		lim, wide := tidegate.New(store, second, hour), tidegate.New(store, hour)
		for i := range 20 {
			d := lim.Allow(t.Context(), "alice")
			if d.OK != (i < 2) || d.Limit != second {
				t.Fatalf("request %d: %+v", i, d)
			}
		}
		wantLeft(t, wide, "alice", 3)
		time.Sleep(time.Second)
		lim.AllowN(t.Context(), "alice", 2)
		if d := lim.Allow(t.Context(), "alice"); d.OK || d.Limit != second {
			t.Errorf("the second is used up, and the hour has one left: %+v", d)
		}
		time.Sleep(time.Second)
		lim.Allow(t.Context(), "alice")
		if d := lim.Allow(t.Context(), "alice"); d.OK || d.Limit != hour {
			t.Errorf("the second has one left, and the hour is used up: %+v", d)
		}
	})
}

func TestLimiterWithoutLimitsAdmits(t *testing.T) {
	lim := tidegate.New(memory.New())
	if d := lim.Allow(t.Context(), "alice"); !d.OK || d.Limit != nil {
		t.Errorf("%+v", d)
	}
	if err := lim.Wait(t.Context(), "alice"); err != nil {
		t.Error(err)
	}
}

func TestNewPanicsOnMisuse(t *testing.T) {
	f := func(want string, limits ...*tidegate.Limit) {
		t.Helper()
		if message := panicOf(func() { tidegate.New(memory.New(), limits...) }); !strings.Contains(message, want) {
			t.Errorf("New(%v) panicked with %q, want %q in it", limits, message, want)
		}
	}
	f("a limit is nil", nil)
	f("a limit is nil", tidegate.PerMinute(1), nil)
	f("not made by NewLimit", &tidegate.Limit{Spec: tidegate.Spec{Events: 5, Period: time.Minute}})
	f("limits 5/1m0s sliding_log and 6/1m0s sliding_log share a counter; name them", tidegate.PerMinute(5), tidegate.PerMinute(6))
	f("access rule", tidegate.MustLimit(tidegate.Spec{Name: "banned", Algorithm: tidegate.Deny}))
	if message := panicOf(func() { tidegate.New(memory.New(), tidegate.PerMinute(5), tidegate.PerHour(6)) }); message != "" {
		t.Error(message)
	}
}

func TestLimitsAreTheLimitersOwn(t *testing.T) {
	limits := []*tidegate.Limit{tidegate.PerMinute(5), tidegate.PerHour(50)}
	lim := tidegate.New(memory.New(), limits...)
	want := limits[0]
	limits[0] = nil // the caller's slice
	if got := lim.Limits(); len(got) != 2 || got[0] != want {
		t.Errorf("got %v", got)
	}
	if d := lim.Allow(t.Context(), "alice"); !d.OK || d.Err != nil {
		t.Errorf("%+v", d)
	}
}

// broken is a store that cannot answer.
type broken struct{ err error }

var errDown = errors.New("connection refused")

func (b *broken) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	return tidegate.Decision{}, b.err
}

func (b *broken) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error { return b.err }

func TestFailModeDecidesWhenTheStoreCannot(t *testing.T) {
	l := tidegate.PerMinute(5)
	store := &broken{err: errDown}
	f := func(lim *tidegate.Limiter, ok bool, granted int64, retry time.Duration) {
		t.Helper()
		for name, d := range map[string]tidegate.Decision{
			"Allow":   lim.Allow(t.Context(), "alice"),
			"AllowN":  lim.AllowN(t.Context(), "alice", 3),
			"Peek":    lim.Peek(t.Context(), "alice"),
			"Acquire": lim.Acquire(t.Context(), "alice").Decision,
		} {
			if d.OK != ok || d.Granted != granted || d.RetryAfter != retry || d.Limit != l || !errors.Is(d.Err, errDown) {
				t.Errorf("%s: %+v", name, d)
			}
		}
		d := lim.Reserve(t.Context(), "alice", 3)
		if d.OK != ok || !errors.Is(d.Err, tidegate.ErrUnsupported) {
			t.Errorf("Reserve: %+v", d.Decision)
		}
		if err := d.Settle(9); err != nil {
			t.Errorf("nothing was reserved, and settling it says %v", err)
		}
	}
	lim := tidegate.New(store, l)
	f(lim, true, 1, 0)
	f(lim.OnStoreFailure(tidegate.FailOpen), true, 1, 0)
	f(lim.OnStoreFailure(tidegate.FailClosed), false, 0, time.Second)
	f(lim, true, 1, 0) // OnStoreFailure makes another Limiter
}

func TestOnStoreFailureKeepsTheCounters(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.PerHour(2))
	closed := lim.OnStoreFailure(tidegate.FailClosed)
	lim.Allow(t.Context(), "alice")
	closed.Allow(t.Context(), "alice")
	wantLeft(t, lim, "alice", 0)
}

func TestDecisionsAllocateNothing(t *testing.T) {
	testdep.SkipUnderRace(t)
	ctx := context.Background()
	window := tidegate.MustLimit(tidegate.Spec{Events: 100, Period: time.Hour, Algorithm: tidegate.SlidingWindow})
	f := func(name string, allow func()) {
		t.Helper()
		if n := testing.AllocsPerRun(500, allow); n != 0 { // admitted ones first, then refused
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	one := tidegate.New(memory.New(), bucket(100, time.Hour))
	auto := tidegate.New(memory.New(), tidegate.PerHour(10))
	three := tidegate.New(memory.New(), bucket(100, time.Hour), window, tidegate.PerMinute(64))
	gate := tidegate.NewGate(byHost{bucket(100, time.Hour), window}, memory.New())
	request := &tidegate.Request{Host: "a.example"}
	f("Allow on a bucket", func() { one.Allow(ctx, "alice") })
	f("Allow on a log", func() { auto.Allow(ctx, "alice") })
	f("Allow on three limits", func() { three.Allow(ctx, "alice") })
	f("Peek", func() { three.Peek(ctx, "alice") })
	f("Gate.Decide", func() { gate.Decide(ctx, request) })
	f("Gate.Enter without slots", func() { gate.Enter(ctx, request) })
	ruled := tidegate.NewGate(vector{
		{Key: "a", Limit: deny("shadow"), Advisory: true}, {Key: "a", Limit: window, Cost: 1, Advisory: true}, {Key: "a", Limit: bucket(200, time.Hour), Cost: 1},
	}, memory.New()).Observe(func(*tidegate.Request, []tidegate.Check, tidegate.Decision) {})
	f("Gate.Enter with advice and an observer", func() { ruled.Enter(ctx, request) })
}

// A store that cannot go on by itself is told of when the Limiter or Gate is made, not in
// the first outage.
func TestFailLocalNeedsAStoreThatCan(t *testing.T) {
	f := func(store tidegate.Store, want bool) {
		t.Helper()
		for who, make := range map[string]func(){
			"Limiter": func() { tidegate.New(store, tidegate.PerMinute(1)).OnStoreFailure(tidegate.FailLocal) },
			"Gate":    func() { tidegate.NewGate(everything{}, store).OnStoreFailure(tidegate.FailLocal) },
		} {
			func() {
				defer func() {
					message := recover()
					if (message != nil) != want || want && !strings.Contains(message.(string), "package fleet") {
						t.Errorf("a %s on %T: %v", who, store, message)
					}
				}()
				make()
			}()
		}
	}
	f(memory.New(), false)
	f(struct{ tidegate.Store }{memory.New()}, true)
}

type everything struct{}

func (everything) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check { return dst }
