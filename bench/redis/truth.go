package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// steady is used up at once, and refilled often enough to be watched.
var steady = quota{"steady", 50, time.Second, 50}

const steadyUsers = 20

// leastUsed is the share of the limit that must be admitted when at least this many
// times as much is asked for.
const (
	leastUsed = 0.95
	enough    = 2
)

// truthful is a contestant of which everybody asked for more than there is.
type truthful struct {
	name string
	tally
}

// used returns the share of the limit that was admitted.
func (t *truthful) used() float64 {
	return float64(t.admitted) / float64(steady.due(steadyUsers, t.took))
}

// truth lets each contestant decide for a while about keys that nobody has used.
func (b *bench) truth(ctx context.Context, f *figures) error {
	l := &load{callers: 64, drawn: uniform(makeKeys("user-", steadyUsers))}
	for _, c := range []contestant{chain("Tidegate", "chain", tidegate.Terms{}), redisRate, throttledGCRA} {
		lim, err := c.open(b.server.Address, steady)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		t, err := heatOf(ctx, b.server, lim, l, 5*b.heat)
		lim.close()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		f.truth = append(f.truth, truthful{c.name, t})
		rig.Progress("over the limit: %s: %.3f of what the limit allows", c.name, f.truth[len(f.truth)-1].used())
	}
	return nil
}

// wrong returns what makes the comparison void: Tidegate refused what the limit allows,
// admitted more, or had no answer of Redis. Rivals are reported as they are.
func (f *figures) wrong() error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	answered := func(name string, t *tally) {
		if t.failed > 0 {
			say("%s had no answer for %d of %d: %w", name, t.failed, t.failed+t.decisions, t.why)
		}
	}
	within := entrants{}
	for _, es := range f.keys {
		within = append(within, es[byKeysTidegate])
	}
	if len(f.hot) > 0 {
		within = append(within, f.hot[hotTidegate])
	}
	within = append(within, f.multi...)
	if len(f.cluster) > 0 {
		within = append(within, f.cluster[clusterThree], f.cluster[clusterOne])
	}
	for _, e := range within {
		answered(e.name, &e.total)
		if refused := e.total.decisions - e.total.admitted; refused > 0 {
			say("%s refused %d of %d that are within the limit", e.name, refused, e.total.decisions)
		}
	}
	for _, e := range f.attack {
		answered(e.name, &e.total)
		if due := scarce.due(attackers, e.span); e.total.admitted > due {
			say("%s admitted %d of the attackers, where %d are due", e.name, e.total.admitted, due)
		}
	}
	if len(f.truth) > 0 {
		t := &f.truth[0]
		answered(t.name, &t.tally)
		hungry := t.decisions >= enough*steady.due(steadyUsers, t.took)
		if share := t.used(); share > 1 || hungry && share < leastUsed {
			say("%s admitted %.3f of what the limit allows", t.name, share)
		}
	}
	return errors.Join(wrong...)
}
