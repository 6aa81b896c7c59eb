package node

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// A limit was used up in one instant, and the store goes away when half of its period has
// passed: nothing is free before the store said so, whatever the algorithm.
func TestRefusalStandsWhileTheStoreIsAway(t *testing.T) {
	const period = 10 * time.Second
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows,
	} {
		for _, away := range []time.Duration{100 * time.Millisecond, period / 4, period / 2, period * 3 / 4} {
			t.Run(a.String()+" "+away.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := new(faulty)
					g := newNode(store, Options{})
					defer g.Close()
					l := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 100, Period: period, Algorithm: a})
					take := func() tidegate.Decision {
						d, err := g.Take(t.Context(), []tidegate.Check{one(l)}, 1)
						if err != nil {
							t.Fatal(err)
						}
						return d
					}
					time.Sleep(time.Until(time.Now().Truncate(period).Add(period)))
					for range 100 {
						take()
					}
					start, retry := time.Now(), time.Duration(0)
					for time.Since(start) < away {
						if d := take(); !d.OK {
							retry = max(retry, time.Since(start)+d.RetryAfter)
						}
						time.Sleep(50 * time.Millisecond)
					}
					store.set(broken)
					early := 0
					for time.Since(start) < retry-20*time.Millisecond {
						if d := take(); d.OK {
							early++
						} else if d.RetryAfter <= 0 {
							t.Fatalf("a refusal says %+v", d)
						}
						time.Sleep(10 * time.Millisecond)
					}
					if early > 0 {
						t.Errorf("%d are admitted before the store would have had room for one", early)
					}
					time.Sleep(2 * period)
					if d := take(); !d.OK {
						t.Errorf("still refused: %+v", d)
					}
				})
			})
		}
	}
}
