package main

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

const (
	connections = 64
	heat        = 100 * time.Millisecond
)

// measureMiddleware serves the same handler bare and limited, from a process of
// its own, over connections that are kept. In every round each target has one heat,
// starting with another one each time, and is compared with the bare one of that
// round: all of them have been idle for as long, so that none has warmer
// connections. The bare one again, as a control, shows how far from 1 a ratio gets
// by noise alone.
func measureMiddleware(ctx context.Context, p plan, f *findings) error {
	server, err := startServer(ctx)
	if err != nil {
		return fmt.Errorf("middleware: %w", err)
	}
	defer server.stop()
	var loads []*load
	defer func() {
		for _, l := range loads {
			l.close()
		}
	}()
	for _, name := range targetNames {
		l, err := dialLoad(server.addresses[name])
		if err != nil {
			return fmt.Errorf("middleware: %s: %w", name, err)
		}
		loads = append(loads, l)
	}

	rates, ratios := make([][]float64, len(loads)), make([][]float64, len(loads))
	rounds := p.of(80, 3)
	for round := range rounds + 1 {
		if round%10 == 0 {
			rig.Progress("middleware: round %d of %d", round, rounds)
		}
		rate := make([]float64, len(loads))
		for turn := range loads {
			i := (round + turn) % len(loads)
			if round/len(loads)%2 == 1 { // also the other way round
				i = len(loads) - 1 - i
			}
			if rate[i], err = loads[i].run(ctx, heat); err != nil {
				return fmt.Errorf("middleware: %w", err)
			}
		}
		if round == 0 { // the warm-up
			continue
		}
		for i := range loads {
			rates[i] = append(rates[i], rate[i])
			ratios[i] = append(ratios[i], rate[i]/rate[0])
		}
	}

	t := report.Table{
		Title: "net/http middleware over loopback",
		Note:  fmt.Sprintf("%d kept connections, one request at a time on each, the load generator on the same cores; every answer is a 200.", connections),
		Head:  []string{"handler", "requests/s", "against bare"},
	}
	for i, name := range targetNames {
		against := "1.00x"
		if i > 0 {
			against = fmt.Sprintf("%.2fx", report.Median(ratios[i]))
		}
		t.Add(targetLabels[name], report.Thousands(int64(report.Median(rates[i]))), against)
	}
	f.tables = append(f.tables, t)
	f.summary.middleware = report.Median(ratios[1])
	return nil
}
