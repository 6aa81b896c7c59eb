package eventual

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// What others know of an instance is as old as the first thing that it has not told: at most an
// interval and two round trips while the store answers, however long nothing was asked for before.
func TestLag(t *testing.T) {
	for _, a := range algorithms {
		synctest.Test(t, func(t *testing.T) {
			const trip = 2 * time.Millisecond
			f := newFleet(t, 2, trip, nil)
			defer f.close()
			l := limitOf(a, 1000, 12*time.Hour)
			at := func(when string, least, most time.Duration) {
				t.Helper()
				if lag := f.nodes[0].Lag(); lag < least || lag > most {
					t.Errorf("%s: %s: a lag of %s, want %s to %s", a, when, lag, least, most)
				}
			}
			for _, idle := range []time.Duration{time.Hour, 0, time.Second} {
				time.Sleep(idle)
				for range 50 {
					f.ask(0, "one", l)
					at("while it is asked", 0, DefaultInterval+2*trip)
					time.Sleep(7 * time.Millisecond)
				}
				time.Sleep(2 * DefaultInterval)
				at("when all is told", trip, trip)
			}
			f.ask(0, "one", l)
			time.Sleep(2 * DefaultInterval)
			f.wires[0].setAway(true)
			f.ask(0, "one", l)
			time.Sleep(time.Minute)
			f.ask(0, "two", l)
			at("after a minute without the store", time.Minute, time.Minute+2*DefaultInterval+time.Second)
			f.wires[0].setAway(false)
			time.Sleep(2 * DefaultInterval)
			at("when it is back", trip, DefaultInterval+2*trip)
		})
	}
}

// What one key still has to tell counts, whatever others have told.
func TestLagOfOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, time.Millisecond, nil)
		defer f.close()
		f.nodes[0].o.Tallies = lossOf{f.wires[0], "lost"}
		l := limitOf(tidegate.FixedWindow, 1000, 12*time.Hour)
		f.ask(0, "lost", l)
		for range 100 {
			f.ask(0, "kept", l)
			time.Sleep(100 * time.Millisecond)
		}
		if lag := f.nodes[0].Lag(); lag < 9*time.Second || lag > 11*time.Second {
			t.Errorf("a lag of %s, and a key has not been told for 10 s", lag)
		}
	})
}

// lossOf does not answer about one key, as when its shard is away.
type lossOf struct {
	chain.Tallies
	key string
}

func (o lossOf) Exchange(ctx context.Context, tallies []chain.Tally) error {
	err := o.Tallies.Exchange(ctx, tallies)
	for i := range tallies {
		if tallies[i].Key == o.key {
			tallies[i].Err = errLost
		}
	}
	return err
}
