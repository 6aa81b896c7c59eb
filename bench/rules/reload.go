package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// reloaded is how decisions fare while rules are read again and put in force.
type reloaded struct {
	decisions int           // of the gate whose rules are
	worst     time.Duration // by the clock
	cpu       time.Duration // of one, at worst
	// oversleep is the longest that the same thread slept too long, or that a gate beside
	// it took whose rules stay: the machine, or the garbage collector, stood in the way.
	oversleep time.Duration
}

// reload puts n rules in force again and again while a probe decides.
func reload(ctx context.Context, n, times int) (r reloaded, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as tidegate serve
	folder, err := os.MkdirTemp("", "bench-rules")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(folder)
	if err := writeFolder(folder, n); err != nil {
		return r, err
	}
	set, err := rules.Load(folder, rules.Config{})
	if err != nil {
		return r, err
	}
	live := rules.NewLive(set)
	changes, stays := tidegate.NewGate(live, memory.New()), tidegate.NewGate(set, memory.New())
	stop, probed := make(chan struct{}), make(chan reloaded)
	go func() { probed <- probe(changes, stays, stop) }()
	for range times {
		if err = ctx.Err(); err != nil {
			break
		}
		rig.Progress("reload %d rules", n)
		var again *rules.Set
		if again, err = rules.Load(folder, rules.Config{}); err != nil {
			break
		}
		live.Swap(again)
	}
	close(stop)
	return <-probed, err
}

// probe decides every fifth of a millisecond or so, by the gates in turns.
func probe(changes, stays *tidegate.Gate, stop <-chan struct{}) (r reloaded) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	request := new(tidegate.Request)
	for turn := 0; ; turn++ {
		select {
		case <-stop:
			return r
		default:
		}
		const nap = 200 * time.Microsecond
		lay := time.Now()
		time.Sleep(nap)
		r.oversleep = max(r.oversleep, time.Since(lay)-nap)
		if turn%2 == 1 {
			_, clock := timedDecision(stays, request)
			r.oversleep = max(r.oversleep, clock)
			continue
		}
		cpu, clock := timedDecision(changes, request)
		r.worst, r.cpu = max(r.worst, clock), max(r.cpu, cpu)
		r.decisions++
	}
}

// timedDecision measures a decision by the CPU time of the thread and by the clock.
func timedDecision(gate *tidegate.Gate, request *tidegate.Request) (cpu, clock time.Duration) {
	request.Reset()
	request.Method, request.Host, request.Path, request.Values = "GET", "shop.example.com", "/api/lists7", values{}
	began, start := process.CPUTime(), time.Now()
	gate.Decide(context.Background(), request)
	clock = time.Since(start)
	return process.CPUTime() - began, clock
}
