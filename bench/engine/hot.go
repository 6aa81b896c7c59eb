package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tidegate.dev/tidegate/bench/contestant"
	"tidegate.dev/tidegate/bench/internal/report"
)

const (
	hotOps = 500_000
	// slabKeys strings fit the first-level cache: reading them costs nothing
	// beside a decision.
	slabKeys = 1024
)

// measureHot asks again and again for one key that is always admitted.
func measureHot(ctx context.Context, p plan, f *findings) error {
	// The key changes every round, so that what is used in one round leaves
	// the next one's quota whole. A minute, because a round must not reach into
	// the next period: of a million per second, go-limiter gives back a thousand.
	quota := contestant.Quota{Events: 1_000_000, Period: time.Minute, Burst: 1_000_000}
	ours, rivals := contestant.Tidegate(), contestant.Rivals()
	es := enter(slices.Concat(rivals[:1], ours, rivals[1:]), quota)
	err := race(ctx, "hot key", es, p.of(15, 3), hotWork)
	if err != nil {
		return err
	}
	base, take, allow := es[0], es[1], es[2]
	f.summary.take, f.summary.allow = take.faster(base), allow.faster(base)
	f.summary.slowest = take.faster(base)
	f.summary.windows = min(es[3].faster(base), es[4].faster(base))
	for _, e := range es[1 : 1+len(ours)] {
		f.summary.slowest = min(f.summary.slowest, e.faster(base))
	}
	f.summary.allocs = max(f.summary.allocs, report.Median(take.allocs), report.Median(allow.allocs))
	f.addRace("One hot key, admitted", "ns of CPU time per decision, with the library's own clock read, in one goroutine.", es)
	return measureDefault(ctx, p, f)
}

// measureDefault measures the same for users who name no algorithm, at a limit for which that is
// sliding_log and at one for which it is sub_windows.
func measureDefault(ctx context.Context, p plan, f *findings) error {
	for _, events := range []int64{60, 1000} {
		quota := contestant.Quota{Events: events, Period: time.Minute, Burst: events}
		es := enter([]contestant.Contestant{contestant.Baseline(), contestant.Default()}, quota)
		if err := race(ctx, fmt.Sprintf("default at %d", events), es, p.of(15, 3), hotWork); err != nil {
			return err
		}
		f.summary.slowest = min(f.summary.slowest, es[1].faster(es[0]))
		f.addRace(fmt.Sprintf("One hot key, %d events", events), fmt.Sprintf("As above; a key is asked for %d times, then comes the next, a new one.", events), es)
	}
	return nil
}

// hotWork is one key as often as its quota admits, then the next.
func hotWork(e *entrant, round int) [][]string {
	slab := int(min(slabKeys, e.quota.Events))
	perKey := int(min(hotOps, e.quota.Events)) / slab
	var slabs [][]string
	for i := range hotOps / slab {
		if i%perKey == 0 {
			key := fmt.Sprintf("user:%d:%d", round, i/perKey)
			slabs = append(slabs, slices.Repeat([]string{key}, slab))
			continue
		}
		slabs = append(slabs, slabs[i-1])
	}
	return slabs
}
