package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/contestant"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

const spell = 40 * time.Millisecond

// measureCores compares two goroutines on one hot key with one: refused, where
// nothing has to be written, and admitted, where everybody writes one word.
func measureCores(ctx context.Context, p plan, f *findings) error {
	if runtime.GOMAXPROCS(0) < 2 {
		return fmt.Errorf("two cores are compared with one, and GOMAXPROCS is %d", runtime.GOMAXPROCS(0))
	}
	rivals := contestant.Rivals()
	ours := contestant.Tidegate()
	all := []contestant.Contestant{ours[0], ours[1], rivals[0], rivals[1]}
	refused := contestant.Quota{Events: 1, Period: 24 * time.Hour, Burst: 1}
	admitted := contestant.Quota{Events: tidegate.MaxCount, Period: 24 * time.Hour, Burst: tidegate.MaxCount}

	t := report.Table{
		Title: "One hot key, two goroutines against one",
		Note:  "Decisions per second of two goroutines, divided by those of one: 2.0x is perfect. The limit of every contestant is used up, or never.",
		Head:  []string{"contestant", "", "1 goroutine, ns", "2 goroutines, M/s", "2 against 1"},
	}
	for _, kind := range []struct {
		name  string
		all   []contestant.Contestant
		quota contestant.Quota
		ok    bool
	}{{"refused", all, refused, false}, {"admitted", slices.Concat(ours, rivals[:2]), admitted, true}} {
		for i, c := range kind.all {
			if c.MaxEvents > 0 && kind.ok { // a log is used up in a moment
				continue
			}
			rig.Progress("two cores: %s, %s", kind.name, c.Name)
			var d scaling
			once := func() (err error) {
				d, err = duel(ctx, c, kind.quota, kind.ok, p.of(25, 3))
				return err
			}
			if err := process.Undisturbed(ctx, c.Name, once, func() {}); err != nil {
				return fmt.Errorf("two cores: %s: %w", c.Name, err)
			}
			t.Add(c.Name, kind.name, fmt.Sprintf("%.0f", 1e9/d.one), fmt.Sprintf("%.1f", d.two/1e6), fmt.Sprintf("%.2fx", d.ratio))
			switch {
			case !kind.ok && i == 0:
				f.summary.deny2core = d.ratio
			case kind.ok && i == 0:
				f.summary.admit2core = d.ratio
			case kind.ok && i < len(ours):
				f.summary.admit2core = min(f.summary.admit2core, d.ratio)
			}
		}
	}
	f.tables = append(f.tables, t)
	return nil
}

type scaling struct{ one, two, ratio float64 } // decisions per second

// duel alternates one goroutine and two, in spells short enough that both of a
// pair see the same neighbours.
func duel(ctx context.Context, c contestant.Contestant, q contestant.Quota, ok bool, rounds int) (scaling, error) {
	newRun := c.Make(q)
	keys := slices.Repeat([]string{"user:1"}, 256)
	newRun()(keys) // uses up a quota of one
	var one, two, ratios []float64
	for range rounds {
		if err := ctx.Err(); err != nil {
			return scaling{}, err
		}
		a, errA := concurrentRate(newRun, keys, ok, 1)
		b, errB := concurrentRate(newRun, keys, ok, 2)
		if err := errors.Join(errA, errB); err != nil {
			return scaling{}, err
		}
		one, two, ratios = append(one, a), append(two, b), append(ratios, b/a)
	}
	return scaling{report.Median(one), report.Median(two), report.Median(ratios)}, nil
}

// concurrentRate returns the decisions per second of n goroutines that ask for one spell.
func concurrentRate(newRun func() contestant.Run, keys []string, ok bool, n int) (float64, error) {
	var wait sync.WaitGroup
	var ready atomic.Int32
	rates, wrong := make([]float64, n), make([]int, n)
	for i := range n {
		run := newRun()
		wait.Go(func() {
			for ready.Add(1); ready.Load() < int32(n); {
				runtime.Gosched()
			}
			asked, admitted := 0, 0
			start := time.Now()
			for time.Since(start) < spell {
				admitted += run(keys)
				asked += len(keys)
			}
			rates[i] = float64(asked) / time.Since(start).Seconds()
			wrong[i] = admitted
			if ok {
				wrong[i] = asked - admitted
			}
		})
	}
	wait.Wait()
	total := 0.0
	for i := range n {
		if wrong[i] != 0 {
			return 0, fmt.Errorf("%d decisions were not the expected one, so that the comparison is void", wrong[i])
		}
		total += rates[i]
	}
	return total, nil
}
