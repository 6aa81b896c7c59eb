package main

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// heatOf asks a server for about d.
type heatOf func(ctx context.Context, d time.Duration) (heat, error)

// heat is one turn of one entrant.
type heat struct {
	answers int64
	wrong   int64
	rate    float64 // per second
	p99     time.Duration
}

// entrant is a server that is asked in one way, with what it did in each round.
type entrant struct {
	name  string
	race  string // resp or http
	depth int    // of the pipeline; 0 over HTTP
	rival *entrant
	pid   int
	ask   heatOf

	rates  []float64
	micros []float64 // of its own CPU time per answer
	p99    []float64 // milliseconds
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

// truncate drops all but the first rounds.
func (es entrants) truncate(rounds int) {
	for _, e := range es {
		e.rates, e.micros, e.p99 = e.rates[:rounds], e.micros[:rounds], e.p99[:rounds]
	}
}

// run is one heat.
func (e *entrant) run(ctx context.Context, round, rounds int, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	before, err := process.TreeTime(e.pid)
	if err != nil {
		return err
	}
	h, err := e.ask(ctx, d)
	if err != nil {
		return err
	}
	after, err := process.TreeTime(e.pid)
	if err != nil {
		return err
	}
	micros := float64((after - before).Microseconds()) / float64(max(1, h.answers))
	rig.Progress("round %d of %d: %s: %s answers/s, %.2f µs of CPU each", round, rounds, e.name, report.Thousands(int64(h.rate)), micros)
	if e.bad += h.wrong; h.wrong > 0 {
		rig.Progress("  %d of %d are wrong", h.wrong, h.answers)
	}
	if round > 0 {
		e.rates, e.micros = append(e.rates, h.rate), append(e.micros, micros)
		e.p99 = append(e.p99, h.p99.Seconds()*1000)
	}
	return nil
}

// against returns the rate of one by that of its rival, of the median round.
func (e *entrant) against() float64 { return report.MedianRatio(e.rates, e.rival.rates) }

func (es entrants) wrong() (n int64) {
	for _, e := range es {
		n += e.bad
	}
	return n
}
