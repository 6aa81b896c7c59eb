package main

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/store/redis"
)

// multiCallers make calls that are pipelined, and no more than Redis is busy with.
const multiCallers = 64

// multiLimits lets calls with one limit and with several take turns: a call decides about
// all of them.
func (b *bench) multiLimits(ctx context.Context, f *figures) (err error) {
	bucket := func(scope string, events int64, period time.Duration) tidegate.Spec {
		return tidegate.Spec{Algorithm: tidegate.TokenBucket, Scope: scope, Events: events, Period: period}
	}
	user := bucket("user", 1000, time.Minute)
	f.multi, err = b.race(ctx, "several limits", &load{callers: multiCallers, drawn: uniform(makeKeys("user-", users))}, quota{},
		multi("one limit", user),
		multi("two limits of one user", user, bucket("user", 10_000, time.Hour)),
		multi("user, address and everyone", user, bucket("ip", 1000, time.Minute), bucket("everyone", 10_000_000, time.Minute)))
	return err
}

// multi returns the store alone, which holds each key to limits that nobody reaches.
func multi(name string, specs ...tidegate.Spec) contestant {
	return contestant{name: name, open: func(address string, _ quota) (limiter, error) {
		limits, err := limitsOf(name, specs)
		if err != nil {
			return limiter{}, err
		}
		store, err := redis.Open(redis.Config{Addrs: []string{address}, Prefix: "several"})
		if err != nil {
			return limiter{}, err
		}
		return limiter{
			caller: func() decide { return manyChecks(store, limits) },
			close:  func() { _ = store.Close() },
		}, nil
	}}
}

// limitsOf are limits of one rule.
func limitsOf(name string, specs []tidegate.Spec) (all []*tidegate.Limit, err error) {
	for _, s := range specs {
		s.Name = name
		l, err := tidegate.NewLimit(s)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// manyChecks holds a key to several limits, in one call.
func manyChecks(store tidegate.Store, limits []*tidegate.Limit) decide {
	checks := make([]tidegate.Check, len(limits))
	return func(ctx context.Context, key string) (bool, error) {
		for i, l := range limits {
			checks[i] = tidegate.Check{Key: key, Limit: l, Cost: 1}
			if l.Scope == "everyone" {
				checks[i].Key = "all"
			}
		}
		d, err := store.Take(ctx, checks, 1)
		return d.OK, err
	}
}

func (f *figures) multiTable() report.Table {
	t := report.Table{
		Title: "token_bucket, several limits in a call",
		Note:  fmt.Sprintf("One call of store/redis per decision, %s keys, %d callers. The ratio is that of Redis' CPU time by that of one limit.", report.Thousands(users), multiCallers),
		Head:  []string{"", "decisions/s", "Redis CPU µs/decision", "by one limit's", "own CPU µs", "p50 ms", "p99 ms", "failed"},
	}
	for _, e := range f.multi {
		t.Add(e.name, e.rateText(), e.microsText(), ratio(e.against(f.multi[multiOne], (*tally).micros)), e.ownText(), e.p50Text(), e.p99Text(), report.Thousands(e.total.failed))
	}
	return t
}
