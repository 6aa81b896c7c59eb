package main

import (
	"context"
	"fmt"
	"time"
)

const (
	connections = 64
	heat        = 100 * time.Millisecond
)

// measureMiddleware serves the same handler bare and limited, from a process of
// its own, over connections that are kept. The heats alternate, each target
// beside the bare one, and in turns before and after it. The bare one again, as
// a control, shows how far from 1 a ratio gets by noise alone.
func measureMiddleware(ctx context.Context, p plan, r *report) error {
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
	rounds := p.of(50, 3)
	for round := range rounds + 1 {
		if round%10 == 0 {
			progress("middleware: round %d of %d", round, rounds)
		}
		for i := 1; i < len(loads); i++ {
			pair := [2]*load{loads[0], loads[i]}
			swapped := round % 2
			var rate [2]float64
			for turn := range 2 {
				which := turn ^ swapped
				if rate[which], err = pair[which].run(ctx, heat); err != nil {
					return fmt.Errorf("middleware: %w", err)
				}
			}
			if round > 0 { // the first is the warm-up
				rates[0], rates[i] = append(rates[0], rate[0]), append(rates[i], rate[1])
				ratios[i] = append(ratios[i], rate[1]/rate[0])
			}
		}
	}

	t := table{
		title: "net/http middleware over loopback",
		note:  fmt.Sprintf("%d kept connections, one request at a time on each, the load generator on the same cores; every answer is a 200.", connections),
		head:  []string{"handler", "requests/s", "against bare"},
	}
	for i, name := range targetNames {
		against := "1.00x"
		if i > 0 {
			against = fmt.Sprintf("%.2fx", median(ratios[i]))
		}
		t.add(targetLabels[name], thousands(int64(median(rates[i]))), against)
	}
	r.tables = append(r.tables, t)
	r.summary.middleware = median(ratios[1])
	return nil
}
