package main

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate/bench/contestant"
	"tidegate.dev/tidegate/bench/internal/report"
)

const (
	manyLimits    = 10_000
	limitsAtOnce  = 16
	limitsRefused = 3
)

// measureLimits asks by many limits in turn, as a service with as many customers does, and by
// several at once, as a request does that comes under several rules.
func measureLimits(ctx context.Context, p plan, f *findings) error {
	quota := contestant.Quota{Events: 1_000_000, Period: time.Second, Burst: 200_000_000}
	turns := enter([]contestant.Contestant{contestant.OfMany(1), contestant.OfMany(256), contestant.OfMany(manyLimits), contestant.OfMany(10 * manyLimits)}, quota)
	if err := race(ctx, "limits in turn", turns, p.of(15, 3), hotWork); err != nil {
		return err
	}
	f.summary.limits10k = 1 / turns[2].faster(turns[0])
	f.addRace("Many limits in turn, admitted", "ns of CPU time per decision; every limit has one key.", turns)

	admitted := enter([]contestant.Contestant{contestant.Multi(1, false), contestant.Multi(limitsRefused, false), contestant.Multi(8, false), contestant.Multi(9, false), contestant.Multi(limitsAtOnce, false)}, quota)
	if err := race(ctx, "limits at once", admitted, p.of(15, 3), hotWork); err != nil {
		return err
	}
	widest := admitted[len(admitted)-1]
	f.summary.limits16 = report.Median(widest.nanos) / limitsAtOnce
	f.summary.allocs = max(f.summary.allocs, report.Median(widest.allocs))
	f.addRace("Several limits at once, admitted", "ns of CPU time per request: all limits or none.", admitted)
	return measureRefused(ctx, p, f, admitted[1])
}

// measureRefused compares a request that one of its limits refuses with one that passes all.
func measureRefused(ctx context.Context, p plan, f *findings, admitted *entrant) error {
	refused := &entrant{Contestant: contestant.Multi(limitsRefused, true), quota: admitted.quota}
	refused.run = refused.Make(refused.quota)()
	refused.mayRefuse = true
	es := []*entrant{admitted, refused}
	admitted.nanos, admitted.allocs = nil, nil
	if err := race(ctx, "a refused vector", es, p.of(15, 3), hotWork); err != nil {
		return err
	}
	f.summary.refused3 = 1 / refused.faster(admitted)
	f.addRace(fmt.Sprintf("%d limits at once, one of them used up", limitsRefused), "ns of CPU time per request.", es)
	return nil
}
