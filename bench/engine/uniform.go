package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/bench/contestant"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

const (
	uniformKeys = 1_000_000
	uniformOps  = 500_000
	batch       = 8
)

// measureUniform asks for keys drawn at random from a million: what counts is
// how much memory a decision touches. All contestants ask for the same keys in
// the same order.
func measureUniform(ctx context.Context, p plan, f *findings) error {
	keys := makeKeys(p.of(uniformKeys, 10_000))
	// An hour, so that no counter becomes void and is swept during the run;
	// 100 events, since a key is drawn some ten times.
	quota := contestant.Quota{Events: 100, Period: time.Hour, Burst: 100}
	ours, rivals := contestant.Tidegate(), contestant.Rivals()
	es := enter(slices.Concat(rivals[:1], ours[:1], []contestant.Contestant{contestant.Batch(batch)}, ours[1:], rivals[1:]), quota)
	if err := fillAll(ctx, es, keys); err != nil {
		return err
	}
	var drawn [][]string
	last := -1
	err := race(ctx, "uniform keys", es, p.of(7, 3), func(_ *entrant, round int) [][]string {
		if round != last {
			drawn, last = [][]string{draw(keys, p.of(uniformOps, 10_000), uint64(round))}, round
		}
		return drawn
	})
	if err != nil {
		return err
	}
	base, take, many := es[0], es[1], es[2]
	f.summary.batch8 = many.faster(base)
	f.summary.uniform = take.faster(base)
	f.summary.allocs = max(f.summary.allocs, report.Median(take.allocs), report.Median(many.allocs))
	f.addRace(fmt.Sprintf("%s uniform random keys, admitted", report.Thousands(int64(len(keys)))),
		"ns of CPU time per decision (per check for eight at once); every key exists beforehand.", es)
	return nil
}

// fillAll makes every key known to every entrant.
func fillAll(ctx context.Context, es []*entrant, keys []string) error {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // nothing is measured yet
	for _, e := range es {
		if err := ctx.Err(); err != nil {
			return err
		}
		rig.Progress("uniform keys: filling %s", e.Name)
		if n := e.run(keys); n != len(keys) {
			return fmt.Errorf("uniform keys: %s admitted %d of %d fresh keys", e.Name, n, len(keys))
		}
	}
	return nil
}

func makeKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%08d", i)
	}
	return keys
}

// draw gives n keys; those of one batch are different ones. They are copies
// that lie in memory in the order of the draw, as the key of a request has just
// been written when the limiter is asked: what is cold is the limiter's memory.
func draw(keys []string, n int, seed uint64) []string {
	rng := rand.New(rand.NewPCG(seed, 2))
	drawn := make([]string, 0, n/batch*batch)
	for len(drawn) < cap(drawn) {
		start := len(drawn) / batch * batch
		if key := keys[rng.IntN(len(keys))]; !slices.Contains(drawn[start:], key) {
			drawn = append(drawn, key)
		}
	}
	text := strings.Join(drawn, "")
	for i, key := range drawn {
		drawn[i], text = text[:len(key)], text[len(key):]
	}
	return drawn
}
