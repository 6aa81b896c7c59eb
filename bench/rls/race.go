package main

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// entrant is a server that is asked in one way, with what it did in each round.
type entrant struct {
	name        string
	race        string // entrants of one race are compared
	address     string
	pid         int
	descriptors int
	rival       *entrant

	rates  []float64
	micros []float64 // of its own CPU time per call
	p50    []float64 // milliseconds
	p99    []float64
	bad    int64
}

type entrants []*entrant

// race lets the entrants take turns.
func race(ctx context.Context, es entrants, rounds int, d time.Duration) error {
	return process.TakeTurns(ctx, es, rounds, d, func(e *entrant, round int, d time.Duration) error {
		if err := e.run(ctx, round, rounds, d); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		return nil
	}, es.truncate)
}

// truncate drops the results of all but the first rounds.
func (es entrants) truncate(rounds int) {
	for _, e := range es {
		e.rates, e.micros, e.p50, e.p99 = e.rates[:rounds], e.micros[:rounds], e.p50[:rounds], e.p99[:rounds]
	}
}

// run loads the server for d and records what it did; round 0 is for warming up.
func (e *entrant) run(ctx context.Context, round, rounds int, d time.Duration) error {
	t, err := load(ctx, e.address, e.pid, e.descriptors, d)
	if err != nil {
		return err
	}
	rig.Progress("round %d of %d: %s: %s calls/s, %.1f µs of CPU each", round, rounds, e.name, report.Thousands(int64(t.rate())), t.micros())
	if e.bad += t.Wrong; t.Wrong > 0 {
		rig.Progress("  %d are wrong; the first: %s", t.Wrong, t.First)
	}
	if round > 0 {
		e.rates, e.micros = append(e.rates, t.rate()), append(e.micros, t.micros())
		e.p50, e.p99 = append(e.p50, t.P50.Seconds()*1000), append(e.p99, t.P99.Seconds()*1000)
	}
	return nil
}

// against returns the rate divided by that of the rival, in the median round.
func (e *entrant) against() float64 { return report.MedianRatio(e.rates, e.rival.rates) }

// cost returns the CPU time per call divided by that of the rival, in the median round.
func (e *entrant) cost() float64 { return report.MedianRatio(e.micros, e.rival.micros) }

func (es entrants) wrong() (n int64) {
	for _, e := range es {
		n += e.bad
	}
	return n
}
