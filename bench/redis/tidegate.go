package main

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/cluster"
	"tidegate.dev/tidegate/internal/guard"
	"tidegate.dev/tidegate/store/redis"
)

// deadline is far above what serve has, 25 ms: the rivals wait for seconds, and a
// decision that a fallback makes is none that Redis made.
const deadline = time.Second

// chain is what tidegate serve puts around the store, for a rule with these terms.
func chain(name, prefix string, terms tidegate.Terms) contestant {
	return contestant{name, func(address string, q quota) (limiter, error) {
		store, err := redis.Open(redis.Config{Addrs: []string{address}, Prefix: prefix})
		if err != nil {
			return limiter{}, err
		}
		node := cluster.New(store, cluster.Options{Deadline: deadline})
		guarded := guard.New(node, guard.Options{Deadline: deadline, Inline: true})
		limit, err := q.limit(&terms)
		if err != nil {
			return limiter{}, err
		}
		low, err := scarce.limit(&terms)
		return limiter{
			caller: func() decide { return oneCheck(guarded, limit, low) },
			close: func() {
				_ = guarded.Close()
				_ = node.Close()
				_ = store.Close()
			},
		}, err
	}}
}

// plain is the store alone: one call of Redis per decision.
func plain(prefix string) contestant {
	return contestant{"Tidegate, a call per decision", func(address string, q quota) (limiter, error) {
		store, err := redis.Open(redis.Config{Addrs: []string{address}, Prefix: prefix})
		if err != nil {
			return limiter{}, err
		}
		limit, err := q.limit(nil)
		return limiter{
			caller: func() decide { return oneCheck(store, limit, limit) },
			close:  func() { _ = store.Close() },
		}, err
	}}
}

func (q quota) limit(terms *tidegate.Terms) (*tidegate.Limit, error) {
	return tidegate.NewLimit(tidegate.Spec{
		Name: q.name, Scope: "user", Algorithm: tidegate.TokenBucket,
		Events: int64(q.events), Period: q.period, Burst: int64(q.burst), Terms: terms,
	})
}

// oneCheck asks a store as a Gate does: the memory of a check is used again. Attackers
// are held to a limit of their own.
func oneCheck(store tidegate.Store, limit, attackers *tidegate.Limit) decide {
	checks := make([]tidegate.Check, 1)
	return func(ctx context.Context, key string) (bool, error) {
		checks[0] = tidegate.Check{Key: key, Limit: limit, Cost: 1}
		if attacks(key) {
			checks[0].Limit = attackers
		}
		d, err := store.Take(ctx, checks, 1)
		if err == nil {
			err = d.Err // a fallback has decided
		}
		return d.OK, err
	}
}
