package algo

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Left by multiplication is left by division, whatever an event takes and however much there is,
// above all around whole events.
func TestLeftIsADivision(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	check := func(em, ticks int64) {
		law := BucketLaw{Em: em, inverse: inverse(em), Brim: ticks}
		if got, want := law.left(0), ticks/em; got != want {
			t.Fatalf("%d ticks of %d: %d, want %d", ticks, em, got, want)
		}
	}
	for range 200_000 {
		em := rng.Int64()>>rng.IntN(63) + 1
		events := rng.Int64N(math.MaxInt64 / em)
		for _, off := range []int64{-1, 0, 1, em / 2, em - 1} {
			if ticks := events*em + off; ticks >= 0 {
				check(em, ticks)
			}
		}
	}
	for _, em := range []int64{1, 2, 3, 1 << 31, 1<<32 - 1, 1 << 62, math.MaxInt64 - 1, math.MaxInt64} {
		for _, ticks := range []int64{0, 1, em - 1, em, math.MaxInt64 - 1, math.MaxInt64} {
			check(em, ticks)
		}
	}
}
