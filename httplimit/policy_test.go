package httplimit

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

func TestPolicySaysTheLimit(t *testing.T) {
	f := func(spec tidegate.Spec, want11, want6 string) {
		t.Helper()
		ps := newPolicies([]*tidegate.Limit{tidegate.MustLimit(spec)})
		if ps.all11 != want11 || ps.all6 != want6 {
			t.Errorf("%+v:\ndraft 11 %s, want %s\ndraft 6 %s, want %s", spec, ps.all11, want11, ps.all6, want6)
		}
	}
	minute := tidegate.Spec{Events: 100, Period: time.Minute}
	f(minute, `"default";q=100;w=60`, `100;w=60`)
	f(tidegate.Spec{Events: 10, Period: 100 * time.Millisecond}, `"default";q=10;w=1`, `10;w=1`)
	f(tidegate.Spec{Events: 10, Period: 1500 * time.Millisecond}, `"default";q=10;w=2`, `10;w=2`)
	f(tidegate.Spec{Events: 10, Algorithm: tidegate.Quota, Calendar: tidegate.Week}, `"default";q=10;w=604800`, `10;w=604800`)
	f(tidegate.Spec{Events: 10, Algorithm: tidegate.Quota, Calendar: tidegate.Month}, `"default";q=10`, ``)
	f(tidegate.Spec{Events: 2, Period: time.Minute, Algorithm: tidegate.Concurrency}, `"default";q=2;qu="concurrent-requests"`, ``)

	minute.Name = `say "50%" \o/`
	f(minute, `"say \"50%\" \\o/";q=100;w=60`, `100;w=60`)
	minute.Name = "caf\u00e9\r\nX-Evil: 1"
	f(minute, `"caf%C3%A9%0D%0AX-Evil: 1";q=100;w=60`, `100;w=60`)
}

func TestPoliciesOfOneLimiterHaveDifferentNames(t *testing.T) {
	ps := newPolicies([]*tidegate.Limit{tidegate.PerSecond(5), tidegate.PerMinute(50), tidegate.PerHour(500)})
	want := `"default";q=5;w=1, "default-2";q=50;w=60, "default-3";q=500;w=3600`
	if ps.all11 != want {
		t.Errorf("got %s, want %s", ps.all11, want)
	}
	if want := "5;w=1, 50;w=60, 500;w=3600"; ps.all6 != want {
		t.Errorf("got %s, want %s", ps.all6, want)
	}
}

func TestPoliciesLearnedByAGateAreBounded(t *testing.T) {
	ps := newPolicies(nil)
	for range 3 * maxPolicies {
		ps.of(tidegate.PerSecond(5))
	}
	n := 0
	ps.learned.Range(func(any, any) bool { n++; return true })
	if n > maxPolicies {
		t.Errorf("%d policies are remembered, want at most %d", n, maxPolicies)
	}
	lim := tidegate.PerSecond(5)
	if first := ps.of(lim); ps.of(lim) != first {
		t.Error("a policy is made anew each time")
	}
}

func TestALimitThatIsNoneOfTheLimitersIsReported(t *testing.T) {
	// A wrapping store may answer with a limit of its own.
	other := tidegate.MustLimit(tidegate.Spec{Name: "share", Events: 3, Period: time.Second})
	store := &script{decisions: []tidegate.Decision{{OK: true, Limit: other, Remaining: 2}}}
	w := get(Limit(tidegate.New(store, tidegate.PerMinute(9)), IP())(hello))
	if got := w.Header().Get("RateLimit"); got != `"share";r=2;t=0` {
		t.Errorf("RateLimit: %s", got)
	}
}

func BenchmarkLimit(b *testing.B) {
	lim := tidegate.New(free{tidegate.PerMinute(100)}, tidegate.PerMinute(100))
	h := Limit(lim, IP())(nothing{})
	benchmarkHandler(b, h)
}

// What no response said before has to be written anew.
func BenchmarkLimitNeverSaidBefore(b *testing.B) {
	limit := tidegate.PerMinute(100)
	benchmarkHandler(b, Limit(tidegate.New(&countdown{limit: limit}, limit), IP())(nothing{}))
}

// countdown is a store whose every answer is another.
type countdown struct {
	free
	limit *tidegate.Limit
	next  int64
}

func (s *countdown) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	s.next++
	return tidegate.Decision{OK: true, Granted: 1, Limit: s.limit, Remaining: 1_000_000_000 - s.next, ResetAfter: time.Second}, nil
}

// free is a store that costs nothing.
type free struct{ limit *tidegate.Limit }

func (s free) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	return tidegate.Decision{OK: true, Granted: 1, Limit: s.limit, Remaining: 57, ResetAfter: 31 * time.Second}, nil
}

func (free) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error { return nil }
