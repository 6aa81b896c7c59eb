package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
)

// measureOffenders measures what the lists alone take of a decision, on all cores: of those
// admitted, and of those refused.
func measureOffenders(ctx context.Context, rounds int, heat time.Duration, s *summary) error {
	t := report.Table{
		Title: "The lists of offenders alone",
		Note:  "CPU time of telling the lists about a decision, as fast as they can be told: most are passed over. Below 5,000 a second each is looked at.",
		Head:  []string{"", "ns"},
	}
	lists := offenders.New(offenders.Options{})
	defer lists.Close()
	l := tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: "user", Events: 100, Period: time.Minute, Terms: &tidegate.Terms{Rule: "api"}})
	for _, ok := range []bool{true, false} {
		var nanos []float64
		for round := range rounds + 1 {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if round%5 == 0 {
				rig.Progress("offenders: round %d of %d", round, rounds)
			}
			if n := tell(lists, l, ok, heat/2); round > 0 {
				nanos = append(nanos, n-tell(nil, l, ok, heat/10))
			}
		}
		name, took := "refused", report.Median(nanos)
		if ok {
			name = "admitted"
		}
		s.offenders = max(s.offenders, took)
		t.Add(name, fmt.Sprintf("%.1f", took))
	}
	s.tables = append(s.tables, t)
	return nil
}

// tell tells lists of decisions for a while on every core, and returns the CPU time of one; nil
// lists are told nothing, which is what the loop takes.
func tell(lists *offenders.Offenders, l *tidegate.Limit, ok bool, during time.Duration) float64 {
	var all sync.WaitGroup
	var mu sync.Mutex
	var took time.Duration
	told := 0
	for core := range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			own := 0
			who := caller{user: []byte("user-00000000")}
			checks := []tidegate.Check{{Limit: l, Cost: 1, Key: who.name()}}
			d := tidegate.Decision{OK: ok, Limit: l, Remaining: 40}
			start := process.CPUTime()
			for begun := time.Now(); time.Since(begun) < during; {
				for range 256 {
					own++
					who.be(own*7919 + core*4099)
					if lists != nil {
						lists.Decided(checks, &d)
					}
				}
			}
			cpu := process.CPUTime() - start
			mu.Lock()
			defer mu.Unlock()
			told, took = told+own, took+cpu
		})
	}
	all.Wait()
	return float64(took) / float64(told)
}
