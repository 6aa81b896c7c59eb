package ledger

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever is paid, and when: every instant has at least the rate that was last paid for it, and
// all that was paid is what the rates cost, but for less than a token.
func TestCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		var c coverage
		paid := 0.0
		has := make([]float64, 2000) // of each millisecond
		now := 0
		for range 20 {
			now += r.IntN(60)
			perSecond, then := float64(r.IntN(1000)), now+1+r.IntN(400)
			at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
			next, cost := c.raise(perSecond, at(now), at(then), 0)
			c, paid = next, paid+float64(cost)
			for ms := now; ms < then; ms++ {
				has[ms] = max(has[ms], perSecond)
			}
		}
		want := 0.0
		for _, perSecond := range has {
			want += perSecond / 1000
		}
		if over := paid - want; over < -1e-6 || over > 1+1e-6 || math.Abs(over-c.credit) > 1e-6 {
			t.Fatalf("paid %.3f for %.3f, with a credit of %.3f", paid, want, c.credit)
		}
	}
}
