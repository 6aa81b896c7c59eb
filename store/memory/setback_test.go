package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A store that is full of keys that it keeps has room again a period after its clock was set back, not
// when the old time returns.
func TestClockIsSetBackInAFullStore(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, a := range append(stateful, tidegate.Concurrency) {
		s, clock := openAt(256 << 10)
		l := tidegate.MustLimit(specOf("limit", a, 1, time.Minute, tidegate.RefuseNew))
		for k := range 12_000 {
			ask1(t, s, l, fmt.Sprint("old", k))
		}
		clock.pass(-30 * 24 * time.Hour)
		for k := range 500 {
			ask1(t, s, l, fmt.Sprint("soon", k))
		}
		clock.pass(2 * time.Minute)
		if a == tidegate.Quota {
			clock.pass(48 * time.Hour)
		}
		for k := range 500 {
			if d := ask1(t, s, l, fmt.Sprint("later", k)); !d.OK {
				t.Errorf("%s: key %d: %+v; %+v", a, k, d, s.Stats())
				break
			}
		}
	}
}

// A clock that is set back so far that the store counts from another origin refills nobody, also if
// the limit that was compiled last drains faster than the one that a key was charged under.
func TestOriginKeepsThePace(t *testing.T) {
	for _, burst := range []int64{10, 20} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s := Open(Config{Now: func() time.Time { return now }})
		slow := tidegate.MustLimit(tidegate.Spec{Name: "tier", Events: 10, Period: 24 * time.Hour, Algorithm: tidegate.TokenBucket})
		fast := tidegate.MustLimit(tidegate.Spec{Name: "tier", Events: 1e6, Burst: burst, Period: 24 * time.Hour, Algorithm: tidegate.TokenBucket})
		take := func(l *tidegate.Limit, key string, cost int64) tidegate.Decision {
			d, err := s.Take(context.Background(), []tidegate.Check{{Key: key, Limit: l, Cost: cost}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		take(slow, "used up", 10)
		take(slow, "reset", 10)
		if err := s.Reset(context.Background(), []tidegate.Check{{Key: "reset", Limit: slow}}); err != nil {
			t.Fatal(err)
		}
		take(fast, "other", 1)
		now = now.AddDate(-5, 0, 0)
		take(fast, "other", 1)
		now = now.Add(time.Minute)
		if d := take(slow, "used up", 1); d.OK || d.RetryAfter < 2*time.Hour {
			t.Errorf("burst %d: a key that was used up is answered %+v, a minute later", burst, d)
		}
		if d := take(slow, "reset", 10); !d.OK {
			t.Errorf("burst %d: a key that was reset is answered %+v", burst, d)
		}
	}
}
