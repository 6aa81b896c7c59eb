package main

import (
	"context"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	layers "tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/node"
	"tidegate.dev/tidegate/store/redis"
)

// deadline is far above what serve has, 25 ms: the rivals wait for seconds, and a
// decision that a fallback makes is none that Redis made.
const deadline = time.Second

// chain returns what tidegate serve puts around the store, for a rule with these terms.
func chain(name, prefix string, terms tidegate.Terms) contestant {
	return contestant{name: name, open: func(address string, q quota) (limiter, error) {
		store, err := redis.Open(config(address, prefix))
		if err != nil {
			return limiter{}, err
		}
		node := node.New(layers.Adapt(store), node.Options{Deadline: deadline})
		ask, err := q.asker(node, &terms)
		return limiter{
			caller: ask,
			close: func() {
				_ = node.Close()
				_ = store.Close()
			},
		}, err
	}}
}

// config is of the store at an address, or several of a cluster.
func config(address, prefix string) redis.Config {
	addrs := strings.Split(address, ",")
	return redis.Config{Addrs: addrs, Cluster: len(addrs) > 1, Prefix: prefix}
}

// plain returns the store alone: one call of Redis per decision.
func plain(prefix string) contestant {
	return contestant{name: "Tidegate, a call per decision", open: func(address string, q quota) (limiter, error) {
		c := config(address, prefix)
		c.Deadline = -1
		store, err := redis.Open(c)
		if err != nil {
			return limiter{}, err
		}
		ask, err := q.asker(store, nil)
		return limiter{
			caller: ask,
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

// asker makes callers that ask a store as a Gate does: the memory of a check is used
// again. Attackers have what is scarce, whatever the others have.
func (q quota) asker(store tidegate.Store, terms *tidegate.Terms) (func() decide, error) {
	limit, err := q.limit(terms)
	if err != nil {
		return nil, err
	}
	low, err := scarce.limit(terms)
	return func() decide {
		checks := make([]tidegate.Check, 1)
		return func(ctx context.Context, key string) (bool, error) {
			checks[0] = tidegate.Check{Key: key, Limit: limit, Cost: 1}
			if attacks(key) {
				checks[0].Limit = low
			}
			d, err := store.Take(ctx, checks, 1)
			if err == nil {
				err = d.Err // a fallback has decided
			}
			return d.OK, err
		}
	}, err
}
