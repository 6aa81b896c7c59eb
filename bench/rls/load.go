package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
)

const (
	connections = 4  // Envoy has one per worker thread
	inFlight    = 64 // calls, over all connections
	sampled     = 16 // one of so many calls is timed
	headStart   = 300 * time.Millisecond
)

// tally is what the load generator counted in one heat.
type tally struct {
	Calls, Wrong int64
	Took, CPU    time.Duration // CPU is that of the server
	P50, P99     time.Duration
	First        string // error, or ""
}

func (t tally) rate() float64   { return float64(t.Calls) / t.Took.Seconds() }
func (t tally) micros() float64 { return float64(t.CPU.Microseconds()) / float64(max(1, t.Calls)) }

// drive asks address for d, after a head start that does not count.
func drive(ctx context.Context, address string, pid, descriptors int, d time.Duration) (tally, error) {
	debug.SetGCPercent(1600) // it is to take little of the cores
	asked, err := questions(descriptors)
	if err != nil {
		return tally{}, err
	}
	calling, stop := context.WithCancel(ctx)
	defer stop()
	var counting, over atomic.Bool
	conns := make([]*clientConn, connections)
	for i := range conns {
		if conns[i], err = dial(ctx, address, asked, descriptors, inFlight/connections, &counting); err != nil {
			return tally{}, fmt.Errorf("connect to %s: %w", address, err)
		}
		defer conns[i].conn.Close()
	}
	var all sync.WaitGroup
	for _, cc := range conns {
		all.Go(func() { cc.run(calling, &over) })
	}
	t := tally{}
	if err := pause(ctx, headStart); err != nil {
		return t, err
	}
	before, err := process.TreeTime(pid)
	if err != nil {
		return t, err
	}
	start := time.Now()
	counting.Store(true)
	if err := pause(ctx, d); err != nil {
		return t, err
	}
	counting.Store(false)
	t.Took = time.Since(start)
	after, err := process.TreeTime(pid)
	if err != nil {
		return t, err
	}
	t.CPU = after - before
	over.Store(true)
	all.Wait()
	t.add(conns)
	return t, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (t *tally) add(conns []*clientConn) {
	var times []time.Duration
	for _, cc := range conns {
		t.Calls += cc.calls
		t.Wrong += cc.wrong
		times = append(times, cc.times...)
		if cc.problem != nil && t.First == "" {
			t.First = cc.problem.Error()
		}
	}
	if slices.Sort(times); len(times) > 0 {
		t.P50, t.P99 = times[len(times)/2], times[len(times)*99/100]
	}
}
