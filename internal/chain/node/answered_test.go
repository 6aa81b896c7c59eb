package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// A call that is answered by the reply to another one stays in its queue until a worker comes to it. Until then the
// deadlines of its waiters pass, and nobody is woken a second time.
func TestAnsweredCallThatIsStillQueued(t *testing.T) {
	const deadline, late = 80 * time.Millisecond, 60 * time.Millisecond // late is after the call had to leave, as the first took 10 ms
	f := func(name string, waiters int, apart time.Duration, refused bool) {
		t.Run(fmt.Sprintf("%s, %d waiters", name, waiters), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := &atOnce{Store: memory.New(), most: 4, hold: make(chan struct{})}
				n := newNode(inner, forFew(Options{Deadline: deadline, Failures: 1000}))
				defer n.Close()
				l := limit("closed", int64(1+waiters), tidegate.FailClosed)
				check := one(l)
				if refused {
					check.Cost = l.Capacity() // the first uses it up
				}
				c := &crowd{store: n}
				come := func(waiters int) (all []*told) {
					for range waiters {
						all = append(all, c.come(1, check))
					}
					return all
				}
				come(1)
				come(waiters)
				time.Sleep(deadline / 8)
				inner.hold <- struct{}{} // so that the call of these is sent
				synctest.Wait()
				time.Sleep(apart)
				parked(n)
				queued := come(waiters)
				time.Sleep(late)
				s := n.server(0)
				synctest.Wait()
				if len(s.batches.ready) != 1 {
					t.Fatalf("%d calls are queued, want one", len(s.batches.ready))
				}
				inner.hold <- struct{}{}
				synctest.Wait()
				for i, who := range queued {
					if who.err != nil || who.d.OK == refused || who.after != late {
						t.Errorf("waiter %d was told %+v, %v after %s", i, who.d, who.err, who.after)
					}
				}
				time.Sleep(5 * time.Second) // their deadlines pass
				s.batches.work()
				c.Wait()
				if got := inner.calls(); len(got) != 2 || s.inFlight.Load() != 0 || s.overdue.Load() != 0 {
					t.Errorf("%d calls, want 2; %d are in flight, %d of them overdue", len(got), s.inFlight.Load(), s.overdue.Load())
				}
			})
		})
	}
	for _, waiters := range []int{1, 2, crowded + 1, crowded + 20} {
		f("refused", waiters, 0, true)
		f("granted what came too late for others", waiters, deadline/2, false)
	}
}
