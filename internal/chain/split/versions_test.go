package split

import (
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// While some instances go by another version of a limit, all together admit in a window at most the larger limit.
func TestWindowsOfTwoVersions(t *testing.T) {
	for seed := range uint64(2000 / thin) {
		random := rand.New(rand.NewPCG(seed, 3))
		c := newCrowd(t, 1+random.IntN(20))
		version := func() *tidegate.Limit {
			return limitOf(tidegate.Spec{Name: "l", Algorithm: tidegate.FixedWindow, Events: 1 + random.Int64N(40), Period: time.Second})
		}
		versions := []*tidegate.Limit{version(), version()}
		for range 4 {
			var admitted int64
			for _, i := range c.live() {
				for l := versions[random.IntN(2)]; c.take(i, l, 1); {
					admitted++
				}
			}
			if most := max(versions[0].Events, versions[1].Events); admitted > most {
				t.Fatalf("seed %d: %d instances, %v: %d admitted", seed, len(c.live()), versions, admitted)
			}
			c.now = c.now.Add(time.Second)
		}
	}
}
