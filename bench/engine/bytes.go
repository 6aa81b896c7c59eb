package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/contestant"
	"tidegate.dev/tidegate/bench/internal/keybuf"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/store/memory"
)

const (
	bytesKeys      = 10_000_000
	bytesRivalKeys = 2_000_000
	bytesTime      = 90 * time.Second
)

// footprint is what a child answers.
type footprint struct {
	Keys  int64
	Bytes int64 // resident, beyond those of the empty process
}

func (f footprint) perKey() float64 { return float64(f.Bytes) / float64(f.Keys) }

// measureBytes fills fresh processes with keys and looks at what stays resident.
func measureBytes(ctx context.Context, p plan, f *findings) error {
	t := report.Table{
		Title: "Resident memory per key",
		Note:  "Growth of VmRSS of a fresh process after a collection, divided by the keys it remembers; keys are 13 bytes.",
		Head:  []string{"contestant", "keys", "bytes per key"},
	}
	for _, who := range []struct {
		name, label string
		keys        int
	}{
		{tidegate.TokenBucket.String(), "Tidegate, token_bucket", bytesKeys},
		{tidegate.SlidingWindow.String(), "Tidegate, sliding_window", bytesKeys},
		{"baseline", contestant.Baseline().Name, bytesRivalKeys},
	} {
		keys := p.of(who.keys, 100_000)
		rig.Progress("memory: %s keys, %s", report.Thousands(int64(keys)), who.label)
		var held footprint
		if err := process.Ask(ctx, bytesTime, &held, "-child", "bytes", who.name, strconv.Itoa(keys)); err != nil {
			return fmt.Errorf("memory: %s: %w", who.label, err)
		}
		t.Add(who.label, report.Thousands(held.Keys), fmt.Sprintf("%.1f", held.perKey()))
		if who.name != "baseline" {
			f.summary.bytes = max(f.summary.bytes, held.perKey())
		}
	}
	f.tables = append(f.tables, t)
	return nil
}

// bytesChild runs in the child process.
func bytesChild(name string, keys int) error {
	f, err := fill(name, keys)
	if err != nil {
		return err
	}
	return process.Answer(f)
}

func fill(name string, keys int) (footprint, error) {
	before, err := process.SettledRSS()
	if err != nil {
		return footprint{}, err
	}
	// Long enough that none of the keys is as good as new when they are counted.
	quota := contestant.Quota{Events: 100, Period: 24 * time.Hour, Burst: 100}
	var kept any
	if name == "baseline" {
		newRun := contestant.Baseline().Make(quota)
		run := newRun()
		var buf keybuf.Buffer
		for i := range keys {
			run([]string{strings.Clone(buf.Key("user:", i))}) // a map keeps its keys
		}
		kept = newRun
	} else {
		store, err := fillStore(name, quota, keys)
		if err != nil {
			return footprint{}, err
		}
		kept = store
	}
	after, err := process.SettledRSS()
	runtime.KeepAlive(kept)
	return footprint{Keys: int64(keys), Bytes: after - before}, err
}

func fillStore(name string, q contestant.Quota, keys int) (*memory.Store, error) {
	algorithm, err := tidegate.ParseAlgorithm(name)
	if err != nil {
		return nil, err
	}
	store := memory.Open(memory.Config{MaxBytes: 4 << 30})
	checks := []tidegate.Check{{
		Limit: tidegate.MustLimit(tidegate.Spec{Events: q.Events, Period: q.Period, Algorithm: algorithm}),
		Cost:  1,
	}}
	var buf keybuf.Buffer
	for i := range keys {
		checks[0].Key = buf.Key("user:", i)
		if d, err := store.Take(context.Background(), checks, 1); err != nil || !d.OK {
			return nil, fmt.Errorf("fresh key %s: %+v, %v", checks[0].Key, d, err)
		}
	}
	if held := store.Stats().Keys; held != int64(keys) {
		return nil, fmt.Errorf("%d keys put in, %d held", keys, held)
	}
	return store, nil
}
