package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/keybuf"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/store/memory"
)

const (
	lookEvery = 10_000 // keys, between two looks at the table
	sayEvery  = 3 * time.Second
)

// player asks the store as one rule would.
type player struct {
	store  *memory.Store
	checks []tidegate.Check
	keys   keybuf.Buffer
}

// play runs the case.
func (c floodCase) play(ctx context.Context, s size) (outcome, error) {
	p := &player{
		store: memory.Open(memory.Config{MaxBytes: s.maxBytes}),
		checks: []tidegate.Check{{Limit: tidegate.MustLimit(tidegate.Spec{
			Name: "flood", Events: quota, Period: 24 * time.Hour, Algorithm: tidegate.TokenBucket, OnFull: c.onFull,
		})}},
	}
	if err := p.exhaust(ctx); err != nil {
		return outcome{}, err
	}
	o, err := c.flood(ctx, p, s)
	if err != nil {
		return outcome{}, err
	}
	if err := p.askAgain(ctx, &o); err != nil {
		return outcome{}, err
	}
	st := p.store.Stats()
	o.Keys, o.Evicted, o.Forgotten, o.RefusedFull = st.Keys, st.Evicted, st.Forgotten, st.RefusedFull
	o.PeakRSS, err = process.PeakRSS()
	return o, err
}

// exhaust makes the debtors, one unit at a time, and sees them refused.
func (p *player) exhaust(ctx context.Context) error {
	for i := range debtors {
		for n := range quota + 1 {
			d, err := p.take(ctx, "debtor", i, 1)
			if err != nil {
				return fmt.Errorf("debtor %d: %w", i, err)
			}
			if d.OK != (n < quota) {
				return fmt.Errorf("debtor %d, unit %d of %d: admitted is %v", i, n+1, quota, d.OK)
			}
		}
	}
	return nil
}

func (c floodCase) flood(ctx context.Context, p *player, s size) (o outcome, err error) {
	start := time.Now()
	reported := start
	for i := range s.keys {
		d, err := p.take(ctx, "fresh", i, c.cost)
		switch {
		case err == nil && d.OK:
			o.Admitted++
		case err == nil && noRoom(d):
			o.Refused++
		default:
			o.Wrong++
		}
		o.Came++
		if i%lookEvery != 0 && i != s.keys-1 {
			continue
		}
		st := p.store.Stats()
		o.MaxTable, o.MaxKeys = max(o.MaxTable, st.Bytes), max(o.MaxKeys, st.Keys)
		if time.Since(reported) > sayEvery {
			reported = time.Now()
			rss, err := process.RSS()
			if err != nil {
				return o, err
			}
			rig.Progress("%s: %d keys came, %d held; table %.1f MB, process %.1f MB", c.name, i+1, st.Keys, mb(st.Bytes), mb(rss))
		}
		if err := ctx.Err(); err != nil {
			return o, err
		}
		if time.Since(start) > floodTime {
			break
		}
	}
	o.Took = time.Since(start)
	return o, nil
}

// askAgain sees whether the store still knows the debtors.
func (p *player) askAgain(ctx context.Context, o *outcome) error {
	for i := range debtors {
		d, err := p.take(ctx, "debtor", i, 1)
		switch {
		case err != nil:
			return fmt.Errorf("debtor %d: %w", i, err)
		case noRoom(d):
			o.AsNew++
			o.Refused++
		case d.OK:
			o.Again++
		}
	}
	return nil
}

func noRoom(d tidegate.Decision) bool { return !d.OK && errors.Is(d.Err, tidegate.ErrFull) }

// take asks for the i-th key of a kind.
func (p *player) take(ctx context.Context, kind string, i int, cost int64) (tidegate.Decision, error) {
	p.checks[0].Key, p.checks[0].Cost = p.keys.Key(kind, i), cost
	return p.store.Take(ctx, p.checks, 1)
}
