package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/rules"
)

// perRound requests are matched at a time.
const perRound = 50_000

// checks that the three rules make of the request.
const checks = 4

// race lets the sets take turns: one warm-up and then rounds that count.
func race(ctx context.Context, few, many *rules.Set, rounds int) (summary, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var nanos [2][]float64
	var ratios, allocs []float64
	for round := range rounds + 1 {
		if err := ctx.Err(); err != nil {
			return summary{}, err
		}
		if round%10 == 0 {
			rig.Progress("round %d of %d", round, rounds)
		}
		runtime.GC()
		var took [2]float64
		for i, set := range []*rules.Set{few, many} {
			n, a, err := timed(set)
			if err != nil {
				return summary{}, err
			}
			took[i] = n
			if round > 0 {
				nanos[i], allocs = append(nanos[i], n), append(allocs, a)
			}
		}
		if round > 0 {
			ratios = append(ratios, took[1]/took[0])
		}
	}
	return summary{few: median(nanos[0]), many: median(nanos[1]), ratio: median(ratios), allocs: median(allocs)}, nil
}

// timed measures by the thread's CPU time, which stands still while a neighbour
// has the core.
func timed(set *rules.Set) (nanos, allocs float64, err error) {
	r := new(tidegate.Request)
	dst := make([]tidegate.Check, 0, 16)
	v := values{}
	match := func() {
		r.Reset()
		r.Method, r.Host, r.Path, r.Values = "POST", "shop.example.com", "/api/orders/4711", v
		dst = set.Match(r, dst[:0])
	}
	match() // the request gets its memory
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := process.CPUTime()
	for range perRound {
		match()
	}
	took := process.CPUTime() - start
	runtime.ReadMemStats(&after)
	if len(dst) != checks {
		return 0, 0, fmt.Errorf("the request is held to %d checks, not %d, so that the comparison is void", len(dst), checks)
	}
	return float64(took) / perRound, float64(after.Mallocs-before.Mallocs) / perRound, nil
}

// values is what a front end knows of the request.
type values struct{}

func (values) Value(name string) (string, bool) {
	switch name {
	case "ip", "addr":
		return "203.0.113.7", true
	case "header X-User":
		return "user-123456789", true
	case "header X-Plan":
		return "premium", true
	}
	return "", false
}

func median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(figures))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
