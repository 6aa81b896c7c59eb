package tidegate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// failing is a store that cannot answer.
type failing struct{ tidegate.Store }

func (failing) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	return tidegate.Decision{}, errors.New("connection refused")
}

// leaving is a store whose caller leaves while it waits.
type leaving struct {
	tidegate.Store
	leave context.CancelFunc
}

func (l leaving) Take(ctx context.Context, _ []tidegate.Check, _ int) (tidegate.Decision, error) {
	l.leave()
	return tidegate.Decision{}, ctx.Err()
}

func TestOriginOfDecisions(t *testing.T) {
	hour := tidegate.PerHour(1)
	closed := tidegate.MustLimit(tidegate.Spec{Name: "closed", Events: 1, Period: time.Hour, Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailClosed}}})
	banned := tidegate.MustLimit(tidegate.Spec{Name: "banned", Algorithm: tidegate.Deny})
	f := func(store tidegate.Store, l *tidegate.Limit, want tidegate.Origin) {
		t.Helper()
		d := tidegate.NewGate(vector{{Key: "k", Limit: l, Cost: 1}}, store).Decide(t.Context(), &tidegate.Request{})
		if d.Receipt.Origin != want {
			t.Errorf("%s: decided by %s, want %s", l, d.Receipt.Origin, want)
		}
	}
	f(memory.New(), hour, tidegate.OriginStore)
	f(memory.New(), banned, tidegate.OriginRule)
	f(failing{}, hour, tidegate.OriginRule)
	f(failing{}, closed, tidegate.OriginRule)
	for o, want := range map[tidegate.Origin]string{tidegate.OriginStore: "store", tidegate.OriginLocal: "local", tidegate.OriginRemembered: "remembered", tidegate.OriginRule: "rule", 99: "unknown"} {
		if o.String() != want {
			t.Errorf("%d is called %s, want %s", o, o, want)
		}
	}
}

// The refusal of a request that leaves the queue names the limit that has the queue, else the
// first that is enforced, and never an advisory one.
func TestWhoLeavesTheLineIsTheLines(t *testing.T) {
	hour, line := tidegate.PerHour(1), tidegate.MustLimit(tidegate.Spec{Name: "line", Algorithm: tidegate.LeakyBucket, Events: 1, Period: time.Hour})
	queue := tidegate.MustLimit(tidegate.Spec{Name: "queue", Events: 1, Period: time.Hour, Terms: &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 1, MaxWait: time.Hour}}}})
	advice := tidegate.Check{Limit: tidegate.PerDay(1), Advisory: true, MaxWait: time.Hour}
	f := func(want *tidegate.Limit, checks ...tidegate.Check) {
		t.Helper()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		d := tidegate.NewGate(vector(checks), leaving{leave: leave}).Decide(ctx, &tidegate.Request{})
		if d.OK || d.Limit != want || !errors.Is(d.Err, context.Canceled) {
			t.Errorf("%+v, want %v", d, want)
		}
	}
	f(line, tidegate.Check{Limit: hour}, advice, tidegate.Check{Limit: line, MaxWait: time.Minute})
	f(queue, tidegate.Check{Limit: hour}, tidegate.Check{Limit: queue})
	f(hour, advice, tidegate.Check{Limit: hour}, tidegate.Check{Limit: line})
	f(nil, advice)
}
