package main

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
)

// figures are what the races gave.
type figures struct {
	keys    []entrants // by number of callers
	hot     entrants
	attack  entrants
	truth   []truthful
	scripts []*scriptCost
	multi   entrants
	cluster entrants
}

// Places of the entrants.
const (
	byKeysTidegate, byKeysRate, byKeysThrottled = 0, 1, 2
	hotTidegate, hotPlain                       = 0, 1
	attackWith, attackWithout                   = 0, 1
	multiOne, multiTwo, multiThree              = 0, 1, 2
	clusterThree, clusterOne                    = 0, 1
)

// callersByKeys are the loads that the ratios to rivals are the worst of.
var callersByKeys = []int{64, 256, mostCallers}

// The quotas, of each key.
var (
	// plenty is more than anybody asks for: all pass, and all are counted.
	plenty = quota{"plenty", 1000, time.Second, 1000}
	// huge is the fastest that one key can have, with enough at once for the race.
	huge = quota{"huge", tidegate.MaxPerSecond, time.Second, 250_000_000}
	// scarce is used up by one request.
	scarce = quota{"scarce", 1, time.Minute, 1}
)

const (
	users      = 10_000
	hotCallers = 256
)

// all runs the races, or one of them.
func (b *bench) all(ctx context.Context, only string) (f figures, err error) {
	races := []struct {
		name string
		run  func(context.Context, *figures) error
	}{{"keys", b.byKeys}, {"hot", b.oneHotKey}, {"attack", b.underAttack}, {"truth", b.truth}, {"scripts", b.scripts}, {"several", b.multiLimits}, {"cluster", b.ofMasters}}
	ran := false
	for _, r := range races {
		if only != "" && only != r.name {
			continue
		}
		ran = true
		if err := r.run(ctx, &f); err != nil {
			return f, err
		}
	}
	if !ran {
		return f, fmt.Errorf("there is no race %q", only)
	}
	return f, nil
}

func (b *bench) byKeys(ctx context.Context, f *figures) error {
	drawn := uniform(makeKeys("user-", users))
	for _, callers := range callersByKeys {
		es, err := b.race(ctx, fmt.Sprintf("%d callers", callers), &load{callers: callers, drawn: drawn}, plenty,
			chain("Tidegate", "chain", tidegate.Terms{}), redisRate, throttledGCRA, redisRatePiped, plain("plain"))
		if err != nil {
			return err
		}
		f.keys = append(f.keys, es)
	}
	return nil
}

func (b *bench) oneHotKey(ctx context.Context, f *figures) (err error) {
	f.hot, err = b.race(ctx, "one hot key", &load{callers: hotCallers, drawn: makeKeys("hot-", 1)}, huge,
		chain("Tidegate", "chain", tidegate.Terms{}), plain("plain"))
	return err
}
