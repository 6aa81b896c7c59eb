package storetest

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// workers is how many goroutines ask at once.
const workers = 8

// contest is a store asked by many goroutines at once, by its own clock.
type contest struct {
	*testing.T
	store tidegate.Store
	kinds []kind // that are asked of it
	brief bool
}

// runConcurrent uses limits that do not refill during a test, so that what must
// come out is exact whatever the order in which goroutines run.
func runConcurrent(t *testing.T, a scope, brief bool, open func(t *testing.T) tidegate.Store) {
	for _, c := range []struct {
		name string
		run  func(*contest)
	}{
		{"exact", contestExact},
		{"exact vectors", contestVectors},
		{"exact copies", contestCopies},
		{"overlapping limits", contestOverlap},
		{"last place of a wide limit", contestLastPlace},
		{"returns", contestReturns},
		{"slots", contestSlots},
		{"settle once", contestSettle},
	} {
		if a.hasAll(contestParts[c.name]) {
			t.Run("concurrent/"+c.name, func(t *testing.T) { c.run(&contest{T: t, store: open(t), kinds: a.kinds(), brief: brief}) })
		}
	}
}

// contestParts are the parts that contests use, beside the algorithms that are asked.
var contestParts = map[string][]string{
	"exact vectors":              {"vectors"},
	"exact copies":               {"vectors", "copies"},
	"overlapping limits":         {"vectors"},
	"last place of a wide limit": {"vectors"},
	"returns":                    {"returns"},
	"slots":                      {"vectors", "returns", "concurrency", "sliding_log"},
	"settle once":                {"reservations", "sliding_log"},
}

// duration returns how long a contest that repeats itself goes on.
func (c *contest) duration() time.Duration {
	if long() {
		return 10 * time.Second
	}
	return lessIf(c.brief, time.Second, 200*time.Millisecond)
}

// long reports whether there is time to be thorough.
func long() bool { return os.Getenv("TIDEGATE_LONG") == "1" }

// inParallel runs f in every worker and waits for all.
func (c *contest) inParallel(f func(worker int, r *rand.Rand)) {
	c.Helper()
	var all sync.WaitGroup
	var start sync.WaitGroup
	start.Add(1)
	for w := range workers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			start.Wait()
			f(w, r)
		})
	}
	start.Done()
	all.Wait()
	if c.Failed() {
		c.FailNow()
	}
}

// take reports a store that cannot answer; it may be called by any goroutine.
func (c *contest) take(n int, checks ...tidegate.Check) tidegate.Decision {
	d, err := c.store.Take(context.Background(), checks, n)
	if err != nil {
		c.Errorf("Take(%s, %d) failed: %v", describe(checks), n, err)
	}
	return d
}

// wantLeft peeks when all is quiet.
func (c *contest) wantLeft(want int64, l *tidegate.Limit, key string) {
	c.Helper()
	if d := c.take(1, check(l, key, 0)); d.Remaining != want {
		c.Errorf("in the end a peek at key %q of %s = %s, want remaining %d", key, l, show(d), want)
	}
}

// contestExact: however many ask for the places of one key, exactly its
// capacity is admitted; of two that want the last one, one.
func contestExact(c *contest) {
	for _, k := range c.kinds {
		for _, places := range []int64{1, 2, 100} {
			l := k.slow("exact", places)
			key := tidegate.Key("exact", l.String())
			var admitted atomic.Int64
			c.inParallel(func(int, *rand.Rand) {
				for range 60 {
					if c.take(1, check(l, key, 1)).OK {
						admitted.Add(1)
					}
				}
			})
			if got := admitted.Load(); got != places {
				c.Errorf("%s: %d admitted, want exactly %d", l, got, places)
			}
			c.wantLeft(0, l, key)
		}
	}
}

// contestVectors: three checks in any order, two of them on one counter. The
// store must not mind the order, lock itself out, nor lose the duplicate.
func contestVectors(c *contest) {
	for _, k := range c.kinds {
		pair, one := k.slow("pair", 101), k.slow("one", 100)
		var admitted atomic.Int64
		c.inParallel(func(_ int, r *rand.Rand) {
			checks := []tidegate.Check{check(pair, "all", 1), check(one, "all", 1), check(pair, "all", 1)}
			for range 60 {
				r.Shuffle(len(checks), func(i, j int) { checks[i], checks[j] = checks[j], checks[i] })
				if c.take(1, checks...).OK {
					admitted.Add(1)
				}
			}
		})
		if got := admitted.Load(); got != 50 {
			c.Errorf("%s: %d pairs admitted, want 50", k.name, got)
		}
		c.wantLeft(1, pair, "all")
		c.wantLeft(50, one, "all")
	}
}

// contestCopies: the copies granted to all add up to exactly the capacity.
func contestCopies(c *contest) {
	for _, k := range c.kinds {
		l, beside := k.slow("copies", 100), k.slow("beside copies", 110)
		var granted atomic.Int64
		c.inParallel(func(_ int, r *rand.Rand) {
			for range 40 {
				n := 1 + r.IntN(7)
				d := c.take(n, check(beside, "all", 1), check(l, "all", 1))
				if d.Granted < 0 || d.Granted > int64(n) {
					c.Errorf("%d copies = %s", n, show(d))
				}
				granted.Add(d.Granted)
			}
		})
		if got := granted.Load(); got != 100 {
			c.Errorf("%s: %d copies granted, want exactly 100", k.name, got)
		}
		c.wantLeft(10, beside, "all")
	}
}
