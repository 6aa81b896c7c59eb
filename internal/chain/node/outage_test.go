package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

var (
	perSecond = tidegate.MustLimit(tidegate.Spec{Name: "second", Events: 100, Period: time.Second, Algorithm: tidegate.TokenBucket})

	faults = map[string]fault{"broken": broken, "frozen": frozen, "deaf": deaf, "slow": slowed, "mad": mad}
)

const second = time.Second

// The whole fleet is cut off for ten seconds while a key is asked for all the time.
func TestTrap11OutageIsNeitherErrorNorStallNorFlood(t *testing.T) {
	outages(t, func(t *testing.T, newFleet fleetMaker, fault fault) {
		f := newFleet(t, 3, perSecond)
		f.press(10, 20*time.Millisecond)
		time.Sleep(5 * second)
		f.each(func(w *faulty) { w.set(fault) })
		time.Sleep(10 * second)
		for i, g := range f.nodes {
			if h := g.Health(); h.State != Degraded || h.Why == nil || time.Since(h.Since) < 9*second {
				t.Errorf("node %d in the outage: %+v", i, h)
			}
		}
		f.each(func(w *faulty) { w.set(none) })
		time.Sleep(5 * second)
		f.end()
		f.want("before", f.between(0, 5*second), 600, 600)
		f.want("during", f.between(5*second, 15*second), 1000, 1100)
		f.want("after", f.between(15*second, 20*second), 500, 600)
		for i, g := range f.nodes {
			if h := g.Health(); h.Posted == 0 || h.Lost != 0 {
				t.Errorf("node %d did not settle up: %+v", i, h)
			}
		}
	})
}

// outages runs a test with every fault, on nodes of either kind.
func outages(t *testing.T, test func(*testing.T, fleetMaker, fault)) {
	for wiring, newFleet := range wirings {
		for name, fault := range faults {
			if testdep.RaceEnabled && (wiring == "alone") != (name == "broken" || name == "deaf") {
				continue // it takes its time: each fault is seen with one wiring
			}
			t.Run(wiring+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, newFleet, fault) })
			})
		}
	}
}

// A key that nobody had asked for has its burst once in the fleet, not on each node.
func TestTrap11FreshKeyIsDividedAmongNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, perSecond)
		f.each(func(w *faulty) { w.set(broken) })
		f.press(10, 20*time.Millisecond)
		time.Sleep(10 * second)
		f.want("during", f.between(0, 10*second), 1100, 1100)
		f.each(func(w *faulty) { w.set(none) })
		time.Sleep(5 * second)
		f.end()
		f.want("after", f.between(10*second, 15*second), 500, 600)
	})
}

// A thousand an hour, half used when the store goes: the other half is there once,
// not once more, whatever the algorithm.
func TestTrap11HalfUsedLimitDoesNotRefill(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, algorithm := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows,
	} {
		t.Run(algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := tidegate.MustLimit(tidegate.Spec{Name: "hour", Events: 1000, Period: time.Hour, Algorithm: algorithm})
				f := newWiredFleet(t, 3, l)
				time.Sleep(10 * time.Minute)
				for i := range 500 {
					f.ask(f.nodes[i%3])
				}
				time.Sleep(50 * second)
				start := time.Since(f.start)
				f.each(func(w *faulty) { w.set(frozen) })
				f.press(2, 50*time.Millisecond)
				time.Sleep(time.Minute)
				f.each(func(w *faulty) { w.set(none) })
				time.Sleep(time.Minute)
				f.end()
				f.want("half", f.between(0, start), 500, 0)
				f.want("during", f.between(start, start+time.Minute), 500, 1000)
				f.want("in all", f.between(0, time.Hour), 1000, 1000)
			})
		})
	}
}

// One node of three is cut off: it has its share, the others have the whole.
func TestTrap11OneNodeCutOffAddsItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newWiredFleet(t, 3, perSecond)
		f.press(10, 20*time.Millisecond)
		time.Sleep(5 * second)
		f.backends[1].set(frozen)
		time.Sleep(10 * second)
		f.backends[1].set(none)
		time.Sleep(5 * second)
		f.end()
		f.want("during", f.between(5*second, 15*second), 1333, 1100)
		f.want("after", f.between(15*second, 20*second), 500, 600)
		for _, i := range []int{0, 2} {
			if h := f.nodes[i].Health(); h.Errors+h.Timeouts+h.Admitted+h.Refused != 0 {
				t.Errorf("node %d had no trouble: %+v", i, h)
			}
		}
	})
}

// A store that comes and goes is neither a burst each time it goes nor one each time it
// comes, whether it stays for long enough to be believed or not.
func TestTrap11FlappingStoreIsNoBurst(t *testing.T) {
	const most = 10 * second
	outages(t, func(t *testing.T, newFleet fleetMaker, fault fault) {
		for _, of := range []struct{ down, up time.Duration }{
			{250 * time.Millisecond, 250 * time.Millisecond},
			{200 * time.Millisecond, second},
			{second, 2 * second},
			{2 * second, second},
		} {
			if of.up != of.down && fault != broken && fault != frozen {
				continue // they take their time
			}
			if testdep.RaceEnabled && of.up != of.down {
				continue
			}
			f := newFleet(t, 3, perSecond)
			f.press(10, 20*time.Millisecond)
			time.Sleep(2 * second)
			flaps := most / (of.down + of.up)
			for range flaps {
				f.each(func(w *faulty) { w.set(fault) })
				time.Sleep(of.down)
				f.each(func(w *faulty) { w.set(none) })
				time.Sleep(of.up)
			}
			time.Sleep(5 * second)
			f.end()
			what := fmt.Sprintf(" %s down, %s up", of.down, of.up)
			end := 2*second + flaps*(of.down+of.up)
			due := int((end - 2*second) / (10 * time.Millisecond))
			f.want("during"+what, f.between(2*second, end), due, due+100)
			f.want("after"+what, f.between(end, end+5*second), 500, 600)
		}
	})
}

// While it recovers, more and more keys go to the store, and each key stays there.
func TestKeysComeBackOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &faulty{fault: broken}
		g := newNode(backend, Options{})
		spend(t, g, perSecond, "k", DefaultFailures)
		backend.set(none)
		for g.Health().State != Recovering {
			time.Sleep(time.Millisecond)
		}
		back := map[string]bool{}
		for step, want := range []int{125, 250, 500, 1000} {
			n := 0
			for i := range 1000 {
				key := fmt.Sprint(i)
				for range 2 {
					d, _ := g.Take(t.Context(), []tidegate.Check{{Key: key, Limit: perSecond, Cost: 1}}, 1)
					if there := !byFallback(&d); there != back[key] && back[key] {
						t.Fatalf("%s went to the store and away again", key)
					} else {
						back[key] = there
					}
				}
				if back[key] {
					n++
				}
			}
			if n < want*7/10 || n > want*13/10 {
				t.Errorf("step %d: %d of 1000 keys go to the store, want about %d", step, n, want)
			}
			time.Sleep(rampStep)
		}
		_ = g.Close()
	})
}

// A counter that was decided locally in an outage is held after it, also if the hold of an outage just before ends meanwhile.
func TestHoldOutlivesTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &faulty{fault: broken}
		n := newNode(backend, Options{})
		l := limit("l", 100, tidegate.FailLocal)
		is := func(state State) {
			for n.Health().State != state {
				time.Sleep(time.Millisecond)
			}
		}
		spend(t, n, l, "first", DefaultFailures+1)
		is(Degraded)
		backend.set(none)
		is(Recovering)
		began := time.Now()
		backend.set(broken)
		is(Degraded)
		if took := time.Since(began); took >= heldFor {
			t.Fatalf("the circuit has opened only after %s", took)
		}
		spend(t, n, l, "second", 1)
		time.Sleep(2 * heldFor)
		backend.set(none)
		is(Recovering)
		for _, key := range []string{"first", "second"} {
			if !n.server(0).holds(&tidegate.Check{Key: key, Limit: l, Cost: 1}, n.now()) {
				t.Errorf("%s is not held", key)
			}
		}
		time.Sleep(2 * heldFor)
		if h := n.Health(); h.State != OK || n.impaired.Load() || n.server(0).held.some.Load() {
			t.Errorf("in the end: %+v, impaired %t", h, n.impaired.Load())
		}
		_ = n.Close()
	})
}

// While a store is down it is asked a few times a second at most, by one call at a
// time; when it is back, by more and more.
func TestRecoveryIsNoStampede(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, perSecond)
		f.press(10, 20*time.Millisecond)
		f.backends[0].set(broken)
		time.Sleep(10 * second)
		calls := f.backends[0].asked()
		if probes := f.nodes[0].Health().Probes; probes < 40 || probes > 80 || int64(calls) > probes+DefaultFailures+2 { // at first there is something to pay
			t.Errorf("%d probes and %d calls in 10 seconds of outage", probes, calls)
		}
		f.backends[0].set(none)
		began := time.Now()
		for f.nodes[0].Health().State == Degraded {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(began); took > maxPause+firstProof+proofEvery {
			t.Errorf("it took %s to believe that it is back", took)
		}
		time.Sleep(3*rampStep + 10*time.Millisecond)
		if h := f.nodes[0].Health(); h.State != OK {
			t.Errorf("after the ramp: %+v", h)
		}
		f.end()
	})
}
