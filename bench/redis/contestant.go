package main

import (
	"context"
	"time"
)

// decide asks about a key and reports whether it is admitted. One caller has it for
// itself, with whatever memory it needs.
type decide func(ctx context.Context, key string) (bool, error)

// contestant is a limiter on the Redis that all of them share.
type contestant struct {
	name    string
	open    func(address string, q quota) (limiter, error)
	cluster bool // it is on the cluster
}

// site is where contestants are: one Redis, or a cluster, whose addresses are joined by
// commas.
type site interface {
	where() string
	account(context.Context) (account, error)
}

// limiter is a contestant with its connections, for one quota.
type limiter struct {
	caller func() decide
	close  func()
}

// quota is so many events per period and key, and how many may pass at once.
type quota struct {
	name   string // counters of quotas with different names are apart
	events int
	period time.Duration
	burst  int
}

// due returns the most that may pass of so many keys in a time, from full buckets on.
func (q quota) due(keys int, took time.Duration) int64 {
	refilled := int64(float64(took) / float64(q.period) * float64(q.events))
	return int64(keys) * (int64(q.burst) + refilled)
}
