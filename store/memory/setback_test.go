package memory

import (
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A store that is full of keys that it keeps has room again a period after its clock was set back, not
// when the old time returns.
func TestClockIsSetBackInAFullStore(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, a := range append(stateful, tidegate.Concurrency) {
		s, clock := openAt(256 << 10)
		l := tidegate.MustLimit(specOf("limit", a, 1, time.Minute, tidegate.RefuseNew))
		for k := range 12_000 {
			ask1(t, s, l, fmt.Sprint("old", k))
		}
		clock.pass(-30 * 24 * time.Hour)
		for k := range 500 {
			ask1(t, s, l, fmt.Sprint("soon", k))
		}
		clock.pass(2 * time.Minute)
		if a == tidegate.Quota {
			clock.pass(48 * time.Hour)
		}
		for k := range 500 {
			if d := ask1(t, s, l, fmt.Sprint("later", k)); !d.OK {
				t.Errorf("%s: key %d: %+v; %+v", a, k, d, s.Stats())
				break
			}
		}
	}
}
