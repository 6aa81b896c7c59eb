package main

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/store/redis"
)

// scriptCost is what one algorithm takes of Redis.
type scriptCost struct {
	name string
	tally
}

// inScript is the time in the script itself, the rest of Redis' CPU time is the
// protocol and the network.
func (c *scriptCost) inScript() float64 {
	return c.spent.Seconds() * 1e6 / float64(max(1, c.calls))
}

// scripts measures a call per decision of every algorithm.
func (b *bench) scripts(ctx context.Context, f *figures) error {
	for _, c := range []struct {
		name  string
		specs []tidegate.Spec
	}{
		{"token_bucket", []tidegate.Spec{{Algorithm: tidegate.TokenBucket, Events: 1000}}},
		{"leaky_bucket", []tidegate.Spec{{Algorithm: tidegate.LeakyBucket, Events: 1000, Burst: 100}}},
		{"fixed_window", []tidegate.Spec{{Algorithm: tidegate.FixedWindow, Events: 1000}}},
		{"quota", []tidegate.Spec{{Algorithm: tidegate.Quota, Events: 100_000, Calendar: tidegate.Day}}},
		{"sliding_window", []tidegate.Spec{{Algorithm: tidegate.SlidingWindow, Events: 1000}}},
		{"sub_windows", []tidegate.Spec{{Algorithm: tidegate.SubWindows, Events: 1000}}},
		{"sliding_log", []tidegate.Spec{{Algorithm: tidegate.SlidingLog, Events: 1000}}},
		{"two limits of one user", []tidegate.Spec{{Algorithm: tidegate.TokenBucket, Events: 1000}, {Algorithm: tidegate.TokenBucket, Events: 10_000, Period: time.Hour}}},
		{"user, address and everyone", []tidegate.Spec{
			{Algorithm: tidegate.TokenBucket, Events: 1000},
			{Algorithm: tidegate.TokenBucket, Events: 1000, Scope: "ip"},
			{Algorithm: tidegate.TokenBucket, Events: 10_000_000, Scope: "everyone"},
		}},
	} {
		cost, err := b.script(ctx, c.name, c.specs)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rig.Progress("%s: %.1f µs in the script", cost.name, cost.inScript())
		f.scripts = append(f.scripts, cost)
	}
	return nil
}

func (b *bench) script(ctx context.Context, name string, specs []tidegate.Spec) (*scriptCost, error) {
	store, err := redis.Open(redis.Config{Addrs: []string{b.server.address}, Prefix: "scripts"})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	var limits []*tidegate.Limit
	for _, s := range specs {
		if s.Name = name; s.Scope == "" {
			s.Scope = "user"
		}
		if s.Period == 0 && s.Algorithm != tidegate.Quota {
			s.Period = time.Minute
		}
		l, err := tidegate.NewLimit(s)
		if err != nil {
			return nil, err
		}
		limits = append(limits, l)
	}
	lim := limiter{caller: func() decide { return manyChecks(store, limits) }}
	l := &load{callers: 64, drawn: uniform(makeKeys("user-", users))}
	if _, err := heatOf(ctx, b.server, lim, l, b.heat/4); err != nil { // the keys are there, the script is known
		return nil, err
	}
	var least *scriptCost
	for range scriptHeats {
		t, err := heatOf(ctx, b.server, lim, l, b.heat)
		if err == nil && t.failed > 0 {
			err = t.why
		}
		if err != nil {
			return nil, err
		}
		if c := (&scriptCost{name, t}); least == nil || c.micros() < least.micros() {
			least = c
		}
	}
	return least, nil
}

// scriptHeats is how many there are of each; the one that was disturbed least counts.
const scriptHeats = 5

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

func (f *figures) scriptTable() report.Table {
	t := report.Table{
		Title: "A call of store/redis",
		Note:  fmt.Sprintf("One call per decision, %s keys, 64 callers; of %d heats the one with the least CPU time. The CPU time is that of the whole Redis, with the protocol and the network.", report.Thousands(users), scriptHeats),
		Head:  []string{"", "µs in the script", "Redis CPU µs/call", "calls/s"},
	}
	for _, c := range f.scripts {
		t.Add(c.name, fmt.Sprintf("%.1f", c.inScript()), fmt.Sprintf("%.1f", c.micros()), report.Thousands(int64(c.rate())))
	}
	return t
}
