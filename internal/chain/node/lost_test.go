package node

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A store is lost for 44 seconds and comes back with nothing. There is no error, keys
// do not start with a full budget in the meantime, and afterwards they have at most
// one burst more, of which what was admitted meanwhile is taken.
func TestTrap24LostStoreDoesNotRefill(t *testing.T) {
	testdep.SkipUnderRace(t)
	for name, is := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := tidegate.MustLimit(tidegate.Spec{Name: "hour", Events: 900, Period: time.Hour, Algorithm: tidegate.FixedWindow})
				f := newFleet(t, 3, l)
				for i := range 600 {
					f.ask(f.nodes[i%3])
					time.Sleep(10 * time.Millisecond)
				}
				start := time.Since(f.start)
				f.each(func(w *faulty) { w.set(is) })
				f.press(2, 50*time.Millisecond)
				time.Sleep(44 * time.Second)
				back := time.Since(f.start)
				f.server.restart()
				f.each(func(w *faulty) { w.set(none) })
				time.Sleep(time.Minute)
				f.end()
				f.want("during", f.between(start, back), 300, 900)
				f.want("after", f.between(back, time.Hour), 600, 900)
			})
		})
	}
}

// A key that was used up stays so, on every node that has seen it, and a bucket that
// was used up all along is used up in the new store as well.
func TestTrap24UsedUpKeysStayUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hour := tidegate.MustLimit(tidegate.Spec{Name: "hour", Events: 10, Period: time.Hour, Algorithm: tidegate.SlidingLog})
		f := newFleet(t, 3, hour)
		for _, g := range f.nodes {
			spend(t, g, hour, "k", 20)
		}
		f.each(func(w *faulty) { w.set(frozen) })
		for range 44 {
			time.Sleep(time.Second)
			for i, g := range f.nodes {
				if n := spend(t, g, hour, "k", 5); n != 0 {
					t.Fatalf("node %d admitted %d", i, n)
				}
			}
		}
		f.end()
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, perSecond)
		f.press(10, 20*time.Millisecond)
		time.Sleep(5 * second)
		f.each(func(w *faulty) { w.set(frozen) })
		time.Sleep(44 * second)
		f.server.restart()
		f.each(func(w *faulty) { w.set(none) })
		time.Sleep(5 * second)
		f.end()
		f.want("during", f.between(5*second, 49*second), 4400, 4500)
		f.want("after", f.between(49*second, 54*second), 500, 600)
	})
}
