package memory

import (
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Several rules at once are flooded with keys that are not to be forgotten: a rule that is
// used afterwards has room, however many they were.
func TestSparedFloodsOfSeveralRulesLeaveRoom(t *testing.T) {
	testdep.SkipUnderRace(t)
	sizes := []int64{512 << 10, 2 << 20}
	if raceEnabled {
		sizes = []int64{128 << 10}
	}
	for _, maxBytes := range sizes {
		for floods := 1; floods <= 7; floods++ {
			if raceEnabled && floods%3 != 1 {
				continue
			}
			t.Run(fmt.Sprintf("%d/%dKiB", floods, maxBytes>>10), func(t *testing.T) {
				p := newPair(t, maxBytes)
				var flooded []*tidegate.Limit
				for i := range floods {
					flooded = append(flooded, tidegate.MustLimit(specOf(fmt.Sprint("flooded", i), stateful[i], 1, 7*24*time.Hour, tidegate.RefuseNew)))
				}
				for k := range int(maxBytes / 12) {
					p.clock.pass(time.Millisecond)
					ask1(t, p.bounded, flooded[k%floods], fmt.Sprint("invented", k))
				}
				if p.bounded.Stats().RefusedFull == 0 {
					t.Error("the flood was not large enough")
				}
				for _, other := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.SubWindows} {
					l := tidegate.MustLimit(specOf(fmt.Sprint("login", other), other, 5, 15*time.Minute, tidegate.RefuseNew))
					for range 12 {
						for address := range int(maxBytes >> 14) {
							p.clock.pass(time.Millisecond)
							p.same(l, fmt.Sprint("address", address))
						}
					}
				}
				p.withinBound()
			})
		}
	}
}
