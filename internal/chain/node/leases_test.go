package node

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// Leases that have run out while they were held are counted one by one, and told when it
// begins and when it is over, wherever they were taken.
func TestLostLeasesAreCountedAndTold(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tells := make(chan LostLease, 9)
			var told []LostLease
			hear := func() {
				synctest.Wait()
				for len(tells) > 0 {
					told = append(told, <-tells)
				}
			}
			way := &faulty{}
			n := newNode(way, Options{OnLostLease: func(l LostLease) { tells <- l }})
			slots := tidegate.MustLimit(tidegate.Spec{Name: "streams", Events: 9, Period: time.Second, Algorithm: tidegate.Concurrency})
			check := []tidegate.Check{{Key: "k", Limit: slots, Cost: 1}}
			if away {
				way.set(broken)
			}
			for round := range int64(2) {
				d, err := n.Take(t.Context(), check, 1)
				if err != nil || !d.OK || byFallback(&d) != away {
					t.Fatalf("%+v, %v", d, err)
				}
				if err := n.Renew(t.Context(), d.Receipt, check); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				for range 3 {
					if err := n.Renew(t.Context(), d.Receipt, check); err != tidegate.ErrLeaseLost {
						t.Errorf("Renew: %v", err)
					}
					time.Sleep(20 * time.Second)
				}
				hear()
				if c := n.Health().LeasesLost; c != 3*(round+1) || len(told) != int(2*round+1) {
					t.Errorf("%d counted, told %+v", c, told)
				}
				time.Sleep(time.Minute)
				hear()
				last := told[len(told)-1]
				if len(told) != int(2*round+2) || !last.Over || last.Rule != "streams" || last.Count != 3*(round+1) {
					t.Errorf("told %+v", told)
				}
			}
			_ = n.Close()
			time.Sleep(2 * time.Minute)
		})
	}
}
