package tidegate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// vector holds every request to the same checks.
type vector []tidegate.Check

func (v vector) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, v...)
}

// counting is a store that counts how often it is asked.
type counting struct {
	*memory.Store
	takes int
}

func (s *counting) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	s.takes++
	return s.Store.Take(ctx, checks, n)
}

func deny(name string) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{Name: name, Algorithm: tidegate.Deny})
}

func TestAccessRuleRefusesBeforeTheStoreIsAsked(t *testing.T) {
	banned, other, hour := deny("banned"), deny("other"), tidegate.PerHour(5)
	store := &counting{Store: memory.New()}
	f := func(want *tidegate.Limit, checks ...tidegate.Check) {
		t.Helper()
		gate := tidegate.NewGate(vector(checks), store)
		for _, d := range []tidegate.Decision{gate.Decide(t.Context(), &tidegate.Request{}), first(gate.Enter(t.Context(), &tidegate.Request{}))} {
			if d != (tidegate.Decision{Never: true, Limit: want, Receipt: tidegate.Receipt{Origin: tidegate.OriginRule}}) {
				t.Errorf("%+v, want Never by %s", d, want)
			}
		}
	}
	count := tidegate.Check{Key: "a", Limit: hour, Cost: 1}
	f(banned, tidegate.Check{Limit: banned, Cost: 1})
	f(banned, tidegate.Check{Limit: banned})
	f(banned, count, tidegate.Check{Limit: banned, Cost: 1}, count)
	f(banned, tidegate.Check{Limit: other, Advisory: true}, count, tidegate.Check{Limit: banned}, tidegate.Check{Limit: other})
	if store.takes != 0 {
		t.Errorf("the store was asked %d times", store.takes)
	}
	wantLeft(t, tidegate.New(store.Store, hour), "a", 5)
}

func first(d tidegate.Decision, _ *tidegate.Visit) tidegate.Decision { return d }

// An access rule in shadow mode is shown, and neither refuses nor is counted.
func TestAdvisoryAccessRuleIsShownOnly(t *testing.T) {
	hour, day, shadow := tidegate.PerHour(5), tidegate.PerDay(9), deny("shadow")
	store := memory.New()
	var seen []tidegate.Check
	observe := func(_ *tidegate.Request, checks []tidegate.Check, _ tidegate.Decision) { seen = slices.Clone(checks) }
	hidden := tidegate.Check{Limit: shadow, Advisory: true}
	gate := tidegate.NewGate(vector{hidden, {Key: "a", Limit: hour, Cost: 1}, hidden, {Key: "a", Limit: day, Cost: 1}}, store).Observe(observe)
	if d := gate.Decide(t.Context(), &tidegate.Request{}); !d.OK || d.Limit != hour || d.Err != nil {
		t.Errorf("%+v", d)
	}
	if len(seen) != 4 || seen[0].Limit != hour || seen[1].Limit != day || !seen[2].Over || !seen[3].Over {
		t.Errorf("observed %+v", seen)
	}
	alone := tidegate.NewGate(vector{hidden}, &broken{err: errDown}).Observe(observe)
	if d := alone.Decide(t.Context(), &tidegate.Request{}); !d.OK || d.Limit != nil || d.Err != nil || d.Granted != 1 {
		t.Errorf("%+v", d)
	}
	if len(seen) != 1 || !seen[0].Over {
		t.Errorf("observed %+v", seen)
	}
}

func TestGateTellsItsObservers(t *testing.T) {
	hour, shadow := tidegate.PerHour(3), tidegate.MustLimit(tidegate.Spec{
		Name: "shadow", Events: 1, Period: time.Hour, Terms: &tidegate.Terms{Rule: "idea", Role: tidegate.Tries},
	})
	var told []string
	silent := tidegate.NewGate(vector{{Key: "a", Limit: hour, Cost: 1}, {Key: "a", Limit: shadow, Cost: 1, Advisory: true}}, memory.New())
	gate := silent.Observe(func(r *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
		line := r.Path + " no"
		if d.OK {
			line = r.Path + " ok"
		}
		if d.OK && checks[1].Over {
			line += ", over in " + checks[1].Limit.Terms.Rule
		}
		told = append(told, line)
	}).OnStoreFailure(tidegate.FailClosed).Observe(func(*tidegate.Request, []tidegate.Check, tidegate.Decision) {
		told = append(told, "and again")
	})
	r := &tidegate.Request{Path: "/x"}
	for range 2 {
		gate.Decide(t.Context(), r)
		gate.Enter(t.Context(), r)
	}
	silent.Decide(t.Context(), r)
	want := "/x ok|and again|/x ok, over in idea|and again|/x ok, over in idea|and again|/x no|and again"
	if got := strings.Join(told, "|"); got != want {
		t.Errorf("told  %s\nwant  %s", got, want)
	}
	if message := panicOf(func() { silent.Observe(nil) }); !strings.Contains(message, "nil") {
		t.Errorf("Observe(nil) panicked with %q", message)
	}
}

// A limit of 2 that admits 4: from the third on it is soft.
func TestSoftIsAboveTheNominalLimit(t *testing.T) {
	with := func(role tidegate.Role) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{
			Name: "search", Scope: "user#nominal", Events: 2, Period: time.Hour, Terms: &tidegate.Terms{Role: role},
		})
	}
	ceiling := tidegate.MustLimit(tidegate.Spec{Name: "search", Scope: "user", Events: 4, Period: time.Hour})
	f := func(role tidegate.Role, want ...bool) {
		t.Helper()
		gate := tidegate.NewGate(vector{
			{Key: "a", Limit: with(role), Cost: 1, Advisory: true}, {Key: "a", Limit: ceiling, Cost: 1},
		}, memory.New())
		for i := range 6 {
			if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK != (i < 4) || d.Soft != want[i] || d.Limit != ceiling {
				t.Errorf("role %d, request %d: %+v, want soft %t", role, i+1, d, want[i])
			}
		}
	}
	f(tidegate.Marks, false, false, true, true, false, false)
	f(tidegate.Tries, false, false, false, false, false, false)
}

// fallingBack says that it goes on by itself, and does not.
type fallingBack struct{ *broken }

func (fallingBack) LocalFallback() {}

// When the store cannot answer, a rule that fails closed is enough to refuse.
func TestStoreFailureByRule(t *testing.T) {
	rule := func(mode tidegate.FailMode) tidegate.Check {
		return tidegate.Check{Key: "a", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{
			Events: 5, Period: time.Hour, Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: mode}},
		})}
	}
	open, closed, local := rule(tidegate.FailOpen), rule(tidegate.FailClosed), rule(tidegate.FailLocal)
	bare := tidegate.Check{Key: "a", Cost: 1, Limit: tidegate.PerMinute(5)}
	shadow := closed
	shadow.Advisory = true
	f := func(mode tidegate.FailMode, closing *tidegate.Limit, checks ...tidegate.Check) {
		t.Helper()
		d := tidegate.NewGate(vector(checks), fallingBack{&broken{err: errDown}}).OnStoreFailure(mode).Decide(t.Context(), &tidegate.Request{})
		if !errors.Is(d.Err, errDown) || d.OK != (closing == nil) || d.Soft {
			t.Errorf("%+v", d)
		}
		if closing != nil && (d.Limit != closing || d.RetryAfter != time.Second || d.Granted != 0) {
			t.Errorf("%+v, want it closed by %s", d, closing)
		}
	}
	f(tidegate.FailOpen, nil, open, local)
	f(tidegate.FailOpen, closed.Limit, open, closed, local)
	f(tidegate.FailOpen, nil, open, shadow)
	f(tidegate.FailOpen, nil, open, bare)
	f(tidegate.FailClosed, nil, open, local)
	f(tidegate.FailClosed, bare.Limit, open, bare)
	f(tidegate.FailClosed, nil, shadow)
	f(tidegate.FailLocal, nil, bare)
	f(tidegate.FailLocal, closed.Limit, bare, closed)
}
