package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Whoever is refused by one limit makes no key of another limit be forgotten, whatever keys it invents.
func TestRefusedVectorsForgetNobody(t *testing.T) {
	testdep.SkipUnderRace(t)
	const maxBytes = 256 << 10
	for i, a := range stateful {
		if raceEnabled && i%3 != 0 {
			continue // which only takes time where one goroutine asks
		}
		s, _ := openAt(maxBytes)
		address := tidegate.MustLimit(specOf("address", tidegate.SlidingLog, 5, time.Hour, tidegate.EvictLeast))
		user := tidegate.MustLimit(specOf("user", a, 5, 24*time.Hour, tidegate.EvictLeast))
		for range 5 {
			ask1(t, s, address, "mallory")
		}
		for k := 0; s.budget.freePages() > 2; k++ {
			ask1(t, s, user, fmt.Sprint("user", k))
		}
		before := s.LimitStats(user)
		for k := range maxBytes / 24 {
			checks := []tidegate.Check{{Key: "mallory", Limit: address, Cost: 1}, {Key: fmt.Sprint("invented", k), Limit: user, Cost: 1}}
			if d, err := s.Take(context.Background(), checks, 1); err != nil || d.OK || d.Err != nil || d.Limit != address {
				t.Fatalf("%s: %+v (%v)", a, d, err)
			}
		}
		if after := s.LimitStats(user); after != before {
			t.Errorf("%s: %+v, before %+v", a, after, before)
		}
	}
}
