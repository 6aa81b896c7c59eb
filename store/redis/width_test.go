package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// The counter that most callers share is asked last, whatever the rates are.
func TestWidestLast(t *testing.T) {
	limit := func(scope string, events int64, period time.Duration) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: scope, Events: events, Period: period, Algorithm: tidegate.FixedWindow})
	}
	pair := tidegate.Key("42", "/orders")
	for _, c := range []struct {
		name   string
		checks []tidegate.Check
		want   []string
	}{
		{"everyone by the hour, one by the second", []tidegate.Check{
			{Limit: limit("everyone", 1000, time.Hour), Cost: 1},
			{Key: "42", Limit: limit("user", 5, time.Second), Cost: 1},
		}, []string{"user", "everyone"}},
		{"more parts are narrower", []tidegate.Check{
			{Key: "42", Limit: limit("user", 10, time.Hour), Cost: 1},
			{Key: pair, Limit: limit("user,ip", 1_000_000, time.Second), Cost: 1},
		}, []string{"user,ip", "user"}},
		{"a route is shared by all", []tidegate.Check{
			{Key: "/orders", Limit: limit("route", 10, time.Hour), Cost: 1},
			{Key: "42", Limit: limit("user", 1_000_000, time.Second), Cost: 1},
			{Key: pair, Limit: limit("user,route", 1000, time.Second), Cost: 1},
		}, []string{"user,route", "user", "route"}},
		{"of equals the larger one is shared by more", []tidegate.Check{
			{Key: "10.0.0.1", Limit: limit("ip", 500, time.Minute), Cost: 1},
			{Key: "42", Limit: limit("user", 100, time.Second), Cost: 1},
			{Limit: limit("everyone", 7, time.Minute), Cost: 1},
		}, []string{"user", "ip", "everyone"}},
	} {
		for range 2 {
			slices.Reverse(c.checks)
			s := &Store{}
			pending, _, err := s.prepare(c.checks)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, sub := range split(pending) {
				got = append(got, sub.pending[0].lim.limit.Scope)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: asked in the order %q, want %q", c.name, got, c.want)
			}
		}
	}
}

// A limit that everybody shares is not charged, not even for a moment, for what a
// caller's own limits refuse: honest callers find every place that is free.
func TestTrapWideLimitIsNotChargedForTheRefused(t *testing.T) {
	t.Parallel()
	s := openTest(t, clusterOf(testdep.RedisCluster(t, 3, 0)))
	ctx := context.Background()
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog} {
		t.Run(a.String(), func(t *testing.T) {
			const exhausted, honest, free = 200, 25, 10
			wide := tidegate.MustLimit(tidegate.Spec{Name: a.String(), Scope: "everyone", Events: honest + free, Period: 24 * time.Hour, Algorithm: a})
			narrow := tidegate.MustLimit(tidegate.Spec{Name: a.String(), Scope: "ip", Events: 40, Period: time.Hour, Algorithm: a})
			checks := func(ip string) []tidegate.Check {
				return []tidegate.Check{{Key: ip, Limit: narrow, Cost: 1}, {Limit: wide, Cost: 1}}
			}
			for i := range exhausted {
				mustTake(t, s, 40, tidegate.Check{Key: fmt.Sprint("10.9.0.", i), Limit: narrow, Cost: 1})
			}
			var refused, admitted atomic.Int64
			var callers sync.WaitGroup
			for i := range exhausted {
				callers.Go(func() {
					for range 3 {
						if d, err := s.Take(ctx, checks(fmt.Sprint("10.9.0.", i)), 1); err != nil {
							t.Error(err)
						} else if d.OK {
							admitted.Add(1)
						}
					}
				})
			}
			for i := range honest {
				callers.Go(func() {
					if d, err := s.Take(ctx, checks(fmt.Sprint("10.8.0.", i)), 1); err != nil {
						t.Error(err)
					} else if !d.OK {
						refused.Add(1)
					}
				})
			}
			callers.Wait()
			if refused.Load() > 0 || admitted.Load() > 0 {
				t.Errorf("%d of %d honest callers refused with %d places to spare, %d of the exhausted admitted", refused.Load(), honest, free, admitted.Load())
			}
		})
	}
}
