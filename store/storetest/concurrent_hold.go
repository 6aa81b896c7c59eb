package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// gauge counts what is in use and remembers the most there ever was.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) up() {
	n := g.now.Add(1)
	for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
	}
}

func (g *gauge) down() { g.now.Add(-1) }

// cycle takes and returns one of l in every worker. What the gauge sees is at
// most what the store has charged: it goes up after a take, down before a return.
func (c *contest) cycle(l *tidegate.Limit, key string, times int) {
	c.Helper()
	var g gauge
	c.inParallel(func(int, *rand.Rand) {
		for range times {
			d := c.take(1, check(l, key, 1))
			if !d.OK {
				continue
			}
			g.up()
			g.down()
			if err := c.store.Adjust(context.Background(), after(d.Receipt, turnAfter(d.Wait)), []tidegate.Check{check(l, key, -1)}); err != nil {
				c.Errorf("Adjust failed: %v", err)
			}
		}
	})
	if most := g.most.Load(); most > l.Capacity() {
		c.Errorf("%s: %d in use at once", l, most)
	}
	if l.Algorithm != tidegate.LeakyBucket { // there a turn before another's stays a hole
		c.wantLeft(l.Capacity(), l, key)
	}
}

// contestReturns: what all return is all there again, no more and no less.
func contestReturns(c *contest) {
	for _, k := range c.kinds {
		c.cycle(k.slow("returned", 3), "all", lessIf(c.brief, 200, 50))
	}
}

// contestSlots: never more at a time than slots, and none is lost, also when
// other limits refuse after the slot was found free.
func contestSlots(c *contest) {
	l := slots("streams", 3)
	c.cycle(l, "all", lessIf(c.brief, 500, 100))
	calls := kinds[3].slow("calls", 100)
	var names sync.Map
	c.inParallel(func(int, *rand.Rand) {
		for range 100 {
			d := c.take(1, check(l, "mixed", 1), check(calls, "mixed", 1))
			if !d.OK {
				continue
			}
			if _, twice := names.LoadOrStore(d.Receipt, true); twice {
				c.Errorf("lease %v was handed out twice", d.Receipt)
			}
			if err := c.store.Adjust(context.Background(), d.Receipt, []tidegate.Check{check(l, "mixed", -1)}); err != nil {
				c.Errorf("Adjust failed: %v", err)
			}
		}
	})
	c.wantLeft(3, l, "mixed")
}

// contestSettle: of many that settle one reservation, one does.
func contestSettle(c *contest) {
	store, ok := c.store.(tidegate.Reserver)
	if !ok {
		return
	}
	ctx := context.Background()
	l := kinds[3].slow("tokens", 10_000)
	for range 30 {
		d, err := store.Reserve(ctx, []tidegate.Check{estimate(check(l, "all", 100))}, time.Hour)
		if err != nil || d.Receipt.Handle.IsZero() {
			c.Fatalf("Reserve = %s, %v; want it granted", show(d), err)
		}
		var settled atomic.Int64
		c.inParallel(func(int, *rand.Rand) {
			switch err := store.Settle(ctx, d.Receipt, 60); {
			case err == nil:
				settled.Add(1)
			case !errors.Is(err, tidegate.ErrSettled):
				c.Errorf("Settle failed: %v", err)
			}
		})
		if got := settled.Load(); got != 1 {
			c.Errorf("settled %d times, want once", got)
		}
	}
	c.wantLeft(10_000-30*60, l, "all")
}
