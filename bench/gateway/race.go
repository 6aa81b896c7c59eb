package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/bench/internal/wrk"
)

// entrant is a contestant that runs, with what it did in each round.
type entrant struct {
	contestant
	server *server

	rates  []float64 // requests per second
	micros []float64 // of its own CPU time per request
	p99    []float64 // milliseconds
	wrong  int64     // requests without the answer that they should get
	asked  int64     // requests that were answered, all in all
}

// entrants are in the order of the contestants.
type entrants []*entrant

// race lets the entrants take turns.
func race(ctx context.Context, s *site, es entrants, rounds int, heat time.Duration) error {
	run := func(e *entrant, round int, d time.Duration) error {
		if err := e.run(ctx, s, round, rounds, d); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		return nil
	}
	if err := process.TakeTurns(ctx, es, rounds, heat, run, es.truncate); err != nil {
		return err
	}
	return checkLog(es[gatewayLogged])
}

// truncate drops all but the first rounds.
func (es entrants) truncate(rounds int) {
	for _, e := range es {
		e.rates, e.micros, e.p99 = e.rates[:rounds], e.micros[:rounds], e.p99[:rounds]
	}
}

// run is one heat of a round.
func (e *entrant) run(ctx context.Context, s *site, round, rounds int, d time.Duration) error {
	h, err := s.heat(ctx, e, d)
	if err != nil {
		return err
	}
	rig.Progress("round %d of %d: %s: %s requests/s, %.1f µs of CPU each", round, rounds, e.name, report.Thousands(int64(h.Rate())), h.micros())
	if h.wrong > 0 {
		rig.Progress("  %d wrong: of %d answers %d were of 400 and above, %d requests had none, the upstream served %d", h.wrong, h.Requests, h.Status, h.Socket, h.served)
	}
	e.wrong += h.wrong
	e.asked += h.Requests
	if round > 0 {
		e.rates, e.micros = append(e.rates, h.Rate()), append(e.micros, h.micros())
		e.p99 = append(e.p99, float64(h.P99)/1000)
	}
	return nil
}

// heatResult is one turn of one entrant.
type heatResult struct {
	wrk.Tally
	cpu    time.Duration // of the entrant
	served int64         // by the upstream
	wrong  int64
}

// probe asks the entrant once and looks at the whole answer.
func (e *entrant) probe(ctx context.Context) error { return e.server.probe(ctx, e.load, e.status) }

func (h heatResult) micros() float64 { return float64(h.cpu.Microseconds()) / float64(h.Requests) }

// heat asks an entrant for d and holds what the load generator counted against
// what the upstream saw. The whole answer is looked at before and after.
func (s *site) heat(ctx context.Context, e *entrant, d time.Duration) (h heatResult, err error) {
	if err := e.probe(ctx); err != nil {
		return h, err
	}
	pid := e.server.PID
	served, err := servedBy(ctx, s.upstream)
	if err != nil {
		return h, err
	}
	cpu, err := process.TreeTime(pid)
	if err != nil {
		return h, err
	}
	if h.Tally, err = e.load.run(ctx, s, e.server.Address, d); err != nil {
		return h, err
	}
	cpuNow, err := process.TreeTime(pid)
	if err != nil {
		return h, err
	}
	servedNow, err := settled(ctx, func(ctx context.Context) (int64, error) { return servedBy(ctx, s.upstream) })
	if err != nil {
		return h, err
	}
	h.cpu, h.served = cpuNow-cpu, servedNow-served
	h.wrong = wrong(h.Tally, e.status, h.served, e.load.underWay())
	return h, e.probe(ctx)
}

// wrong returns how many requests did not get the answer with status, or got it from
// somebody else than they should: the upstream sees what passes and nothing of
// what is refused. What is on its way when the time is up, at most underWay, is counted by
// the upstream alone.
func wrong(t wrk.Tally, status int, served, underWay int64) int64 {
	n := t.Socket
	if status != http.StatusOK {
		return n + t.Requests - t.Status + served
	}
	passed := t.Requests - t.Status
	return n + t.Status + max(0, passed-served, served-passed-underWay)
}

func wrongAnswers(es entrants) (n int64) {
	for _, e := range es {
		n += e.wrong
	}
	return n
}
