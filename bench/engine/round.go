package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"tidegate.dev/tidegate/bench/contestant"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// entrant is a contestant set up for one race, with what it did in each round.
type entrant struct {
	contestant.Contestant
	quota contestant.Quota
	run   contestant.Run

	mayRefuse bool // not all is admitted

	nanos  []float64 // per decision, one figure per round
	allocs []float64
}

func enter(all []contestant.Contestant, q contestant.Quota) []*entrant {
	var es []*entrant
	for _, c := range all {
		fit := c.Fit(q)
		es = append(es, &entrant{Contestant: c, quota: fit, run: c.Make(fit)()})
	}
	return es
}

const (
	// fewestRounds are run however slow the machine is; beyond them, no round
	// starts when a race has taken raceTime.
	fewestRounds = 5
	raceTime     = 50 * time.Second
)

// race lets the entrants take turns: one warm-up and then rounds that count.
// work gives the slices of keys an entrant asks for in a round; all of it must
// be admitted, since a refusal is cheaper than an admission.
//
// The collector rests within a round and runs between rounds: otherwise one
// entrant's garbage is collected in another one's time. That is in favour of
// those that allocate.
func race(ctx context.Context, name string, es []*entrant, rounds int, work func(e *entrant, round int) [][]string) error {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	start := time.Now()
	for round := range rounds + 1 {
		if round > fewestRounds && time.Since(start) > raceTime {
			rig.Progress("%s: a slow machine, so that %d rounds must do", name, round-1)
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rig.Progress("%s: round %d of %d", name, round, rounds)
		runtime.GC()
		for _, e := range es {
			slabs := work(e, round)
			nanos, allocs, err := e.timed(slabs)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if round > 0 {
				e.nanos = append(e.nanos, nanos)
				e.allocs = append(e.allocs, allocs)
			}
		}
	}
	return nil
}

// timed measures by the thread's CPU time: one goroutine that never sleeps
// takes as much of it as of the wall clock, but for what neighbours take.
func (e *entrant) timed(slabs [][]string) (nanos, allocs float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	asked, admitted := 0, 0
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := process.CPUTime()
	for _, keys := range slabs {
		admitted += e.run(keys)
		asked += len(keys)
	}
	took := process.CPUTime() - start
	runtime.ReadMemStats(&after)
	if admitted != asked && !e.mayRefuse {
		return 0, 0, fmt.Errorf("%s admitted %d of %d, so that the comparison is void", e.Name, admitted, asked)
	}
	return float64(took) / float64(asked), float64(after.Mallocs-before.Mallocs) / float64(asked), nil
}

// faster returns how many times as fast as base e was, by the median round.
func (e *entrant) faster(base *entrant) float64 {
	var ratios []float64
	for i := range e.nanos {
		ratios = append(ratios, base.nanos[i]/e.nanos[i])
	}
	return report.Median(ratios)
}
