package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// bench is one run.
type bench struct {
	server  *server
	cluster *cluster // nil before its race
	rounds  int
	heat    time.Duration
}

// site returns where a contestant is.
func (b *bench) site(c contestant) site {
	if c.cluster {
		return b.cluster
	}
	return b.server
}

// entrant is a contestant with what it did in each round that counts.
type entrant struct {
	contestant
	limiter limiter
	heats   []tally
	opened  time.Time
	total   tally // of all rounds, the warm-up included
	span    time.Duration
}

// entrants are in the order of the contestants.
type entrants []*entrant

// race lets contestants take turns under one load.
func (b *bench) race(ctx context.Context, title string, l *load, q quota, contestants ...contestant) (entrants, error) {
	var es entrants
	defer func() {
		for _, e := range es {
			e.limiter.close()
		}
	}()
	for _, c := range contestants {
		lim, err := c.open(b.site(c).where(), q)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		es = append(es, &entrant{contestant: c, limiter: lim, opened: time.Now()})
	}
	run := func(e *entrant, round int, d time.Duration) error {
		if err := b.run(ctx, title, e, l, round, d); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		return nil
	}
	return es, process.TakeTurns(ctx, es, b.rounds, b.heat, run, es.truncate)
}

// truncate drops all but the first rounds.
func (es entrants) truncate(rounds int) {
	for _, e := range es {
		e.heats = e.heats[:rounds]
	}
}

// run is one heat of a round.
func (b *bench) run(ctx context.Context, title string, e *entrant, l *load, round int, d time.Duration) error {
	t, err := heatOf(ctx, b.site(e.contestant), e.limiter, l, d)
	if err != nil {
		return err
	}
	rig.Progress("%s, round %d of %d: %s: %s decisions/s, CPU µs each: Redis %.2f, callers %.2f", title, round, b.rounds, e.name, report.Thousands(int64(t.rate())), t.micros(), t.ownMicros())
	if t.failed > 0 {
		rig.Progress("  %d failed: %v", t.failed, t.why)
	}
	e.total.add(t)
	e.span = time.Since(e.opened)
	if round > 0 {
		e.heats = append(e.heats, t)
	}
	return nil
}

// heatOf is one turn of a limiter, with what it cost Redis.
func heatOf(ctx context.Context, at site, lim limiter, l *load, d time.Duration) (tally, error) {
	if err := ctx.Err(); err != nil {
		return tally{}, err
	}
	runtime.GC() // nobody pays for what the one before has left
	before, err := at.account(ctx)
	if err != nil {
		return tally{}, err
	}
	t := l.drive(ctx, lim, d)
	after, err := at.account(ctx)
	t.account = after.since(before)
	return t, err
}

// each returns what every heat gives.
func (e *entrant) each(of func(*tally) float64) (all []float64) {
	for i := range e.heats {
		all = append(all, of(&e.heats[i]))
	}
	return all
}

// figure returns the median of what a heat gives.
func (e *entrant) figure(of func(*tally) float64) float64 { return report.Median(e.each(of)) }

// against returns the ratio of what two entrants did, of the median round.
func (e *entrant) against(other *entrant, of func(*tally) float64) float64 {
	return report.MedianRatio(e.each(of), other.each(of))
}
