package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// usage is what is known from outside of the use of one counter. The asks begun
// less those refused are at least what is charged at any moment.
type usage struct {
	limit                    *tidegate.Limit
	begun, refused, admitted atomic.Int64
}

// contestOverlap: workers ask for three of six limits each, over and over. No
// limit is ever over. A refusal names a limit that has no room for it, counting
// only what may have been admitted: no limit refuses because of what another
// one refused. And in the end every limit that refused is full.
func contestOverlap(c *contest) {
	round := 0
	for end := time.Now().Add(c.duration()); time.Now().Before(end) && !c.Failed(); round++ {
		var limits []*usage
		for i, places := range []int64{3, 10, 25, 60, 90, 100} {
			k := c.kinds[(round+i)%len(c.kinds)]
			limits = append(limits, &usage{limit: k.slow(fmt.Sprint("overlap ", i), places)})
		}
		overlapRound(c, fmt.Sprint("round ", round), limits)
	}
	c.Logf("%d rounds", round)
}

func overlapRound(c *contest, key string, limits []*usage) {
	c.inParallel(func(w int, r *rand.Rand) {
		for range 40 {
			var mine []*usage
			var checks []tidegate.Check
			for _, i := range r.Perm(len(limits))[:3] {
				mine = append(mine, limits[i])
				checks = append(checks, check(limits[i].limit, key, 1))
				limits[i].begun.Add(1)
			}
			d := c.take(1, checks...)
			for _, u := range mine {
				if d.OK {
					u.admitted.Add(1)
					continue
				}
				if d.Limit == u.limit {
					// Read before the count of refusals grows by this one.
					refused := u.refused.Load()
					if others := u.begun.Load() - refused - 1; others < u.limit.Capacity() {
						c.Errorf("%s: refused by %s, of which at most %d of %d can be taken", key, u.limit, others, u.limit.Capacity())
					}
				}
			}
			if d.OK {
				continue
			}
			for _, u := range mine {
				if d.Limit == u.limit && d.Remaining != 0 {
					c.Errorf("%s: refused by %s with %d left", key, u.limit, d.Remaining)
				}
				u.refused.Add(1)
			}
		}
	})
	for _, u := range limits {
		left := u.limit.Capacity() - u.admitted.Load()
		if left < 0 {
			c.Errorf("%s: %d admitted by %s: over", key, u.admitted.Load(), u.limit)
			continue
		}
		c.wantLeft(left, u.limit, key)
	}
}

// contestLastPlace: while a used-up limit refuses half of the workers all the
// time, the others, who ask for the wide limit alone, get every one of its
// places at the first try. A store that charges first and refunds fails here:
// the last place looked taken in 98 of 100 looks.
func contestLastPlace(c *contest) {
	round := 0
	for end := time.Now().Add(c.duration()); time.Now().Before(end) && !c.Failed(); round++ {
		key := fmt.Sprint("round ", round)
		k := c.kinds[round%len(c.kinds)]
		tight, mid, wide := k.slow("tight", 1), k.slow("mid", 50), k.slow("wide", 40)
		if !c.take(1, check(tight, key, 1)).OK {
			c.Fatalf("the first place of %s is taken", tight)
		}
		var places, done atomic.Int64
		c.inParallel(func(w int, r *rand.Rand) {
			if w%2 == 0 {
				for done.Load() < workers/2 {
					if d := c.take(1, check(wide, key, 1), check(mid, key, 1), check(tight, key, 1)); d.OK {
						c.Errorf("%s admits a second: %s", tight, show(d))
						return
					}
				}
				return
			}
			defer done.Add(1)
			for places.Add(1) <= wide.Capacity() {
				if d := c.take(1, check(wide, key, 1)); !d.OK {
					c.Errorf("a free place of %s was refused: %s", wide, show(d))
					return
				}
			}
		})
		c.wantLeft(0, wide, key)
		c.wantLeft(50, mid, key)
	}
	c.Logf("%d rounds", round)
}
