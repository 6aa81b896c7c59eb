package main

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// scriptCost is what one algorithm takes of Redis.
type scriptCost struct {
	name string
	tally
}

// inScript returns the time in the script itself, the rest of Redis' CPU time is the
// protocol and the network.
func (c *scriptCost) inScript() float64 {
	return c.spent.Seconds() * 1e6 / float64(max(1, c.calls))
}

// scripts measures a call per decision of every algorithm.
func (b *bench) scripts(ctx context.Context, f *figures) error {
	for _, s := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Events: 1000, Period: time.Minute},
		{Algorithm: tidegate.LeakyBucket, Events: 1000, Period: time.Minute, Burst: 100},
		{Algorithm: tidegate.FixedWindow, Events: 1000, Period: time.Minute},
		{Algorithm: tidegate.Quota, Events: 100_000, Calendar: tidegate.Day},
		{Algorithm: tidegate.SlidingWindow, Events: 1000, Period: time.Minute},
		{Algorithm: tidegate.SubWindows, Events: 1000, Period: time.Minute},
		{Algorithm: tidegate.SlidingLog, Events: 1000, Period: time.Minute},
	} {
		s.Scope = "user"
		cost, err := b.script(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Algorithm, err)
		}
		rig.Progress("%s: %.1f µs in the script", cost.name, cost.inScript())
		f.scripts = append(f.scripts, cost)
	}
	return nil
}

func (b *bench) script(ctx context.Context, spec tidegate.Spec) (*scriptCost, error) {
	name := spec.Algorithm.String()
	lim, err := multi(name, spec).open(b.server.Address, quota{})
	if err != nil {
		return nil, err
	}
	defer lim.close()
	l := &load{callers: multiCallers, drawn: uniform(makeKeys("user-", users))}
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

func (f *figures) scriptTable() report.Table {
	t := report.Table{
		Title: "A call of store/redis",
		Note:  fmt.Sprintf("One call per decision, %s keys, %d callers; of %d heats the one with the least CPU time. The CPU time is that of the whole Redis, with the protocol and the network.", report.Thousands(users), multiCallers, scriptHeats),
		Head:  []string{"", "µs in the script", "Redis CPU µs/call", "calls/s"},
	}
	for _, c := range f.scripts {
		t.Add(c.name, fmt.Sprintf("%.1f", c.inScript()), fmt.Sprintf("%.1f", c.micros()), report.Thousands(int64(c.rate())))
	}
	return t
}
