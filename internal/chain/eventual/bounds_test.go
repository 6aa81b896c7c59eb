package eventual

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// bound is by how much a limit may be exceeded, as docs/consistency.md says: half of what is offered
// between two exchanges, and a request for each instance.
func bound(n int, perSecond float64, latency time.Duration) float64 {
	return float64(n-1)/float64(2*n)*perSecond*(DefaultInterval+2*latency).Seconds() + float64(n)
}

// Under three times the load, with any number of instances, at any distance, however wrong their
// clocks are: the limit is exceeded by no more than the bound, and used up.
func TestOverload(t *testing.T) {
	for i, a := range algorithms {
		for j, n := range []int{1, 2, 3, 8, 20} {
			for k, latency := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond} {
				for m, skew := range []time.Duration{0, 3 * time.Second} {
					if (k != (i+j)%3 || m != (i+j)%2) && !testdep.Long() {
						continue // each latency and skew is seen with some
					}
					if testdep.RaceEnabled && (i+j)%4 != 0 {
						continue // it takes its time: each number of instances is seen with some
					}
					t.Run(fmt.Sprintf("%s/%d/%s/%s", a, n, latency, skew), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							f := newFleet(t, n, latency, func(i int) time.Duration { return skew * time.Duration(i%3-1) })
							defer f.close()
							l := limitOf(a, 2000, 2*time.Second)
							f.press(l, 3000, 5*time.Second, false)
							worst, most := over(l, f.admitted), bound(n, 3000, latency)
							t.Logf("over by %.1f %%, bound %.1f %%", worst/20, most/20)
							if worst > most {
								t.Errorf("over by %.0f, want at most %.0f", worst, most)
							}
							least := 2000 * 2 // whole windows
							if a == tidegate.Quota {
								least = 2000
							}
							if len(f.admitted) < least {
								t.Errorf("%d admitted, want at least %d", len(f.admitted), least)
							}
						})
					})
				}
			}
		}
	}
}

// Requests that cost more than one event exceed the limit by no more than the bound, in which one request for each
// instance is so many events.
func TestOverloadByCosts(t *testing.T) {
	const perSecond, latency = 3000, time.Millisecond
	for i, a := range algorithms {
		for j, n := range []int{1, 2, 3, 8, 20} {
			for k, cost := range []int64{3, 60, 130, 700} {
				if testdep.RaceEnabled && (i+j+k)%4 != 0 {
					continue // it takes its time
				}
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t, n, latency, nil)
					defer f.close()
					l := limitOf(a, 2000, 2*time.Second)
					paced(perSecond/float64(cost), 5*time.Second, rand.New(rand.NewPCG(uint64(n), 5)), func(i int) {
						d, err := f.nodes[i%n].Take(t.Context(), []tidegate.Check{{Key: "one", Limit: l, Cost: cost}}, 1)
						if err != nil {
							t.Error(err)
						}
						for range cost {
							f.note(d.OK)
						}
					})
					worst, most := over(l, f.admitted), bound(n, perSecond, latency)+float64(int64(n)*(cost-1))
					if worst > most {
						t.Errorf("%s, %d instances, cost %d: over by %.0f, want at most %.0f", a, n, cost, worst, most)
					}
				})
			}
		}
	}
}

// At nine tenths of the limit nobody is refused, on all instances alike or on one alone.
func TestBelowTheLimit(t *testing.T) {
	for i, a := range algorithms {
		for j, n := range []int{1, 2, 3, 8, 20} {
			for k, events := range []int64{20, 200, 2000} {
				if k != (i+j)%3 && !testdep.Long() {
					continue // each number of events is seen with some
				}
				for _, one := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%d/%d/%v", a, n, events, one), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							f := newFleet(t, n, time.Millisecond, nil)
							defer f.close()
							l := limitOf(a, events, 2*time.Second)
							lasts := 5 * time.Second
							if a == tidegate.Quota {
								lasts = 2 * time.Second
							}
							f.press(l, 0.9*float64(events)/2, lasts, one)
							if f.refused > 0 {
								t.Errorf("%d refused, %d admitted", f.refused, len(f.admitted))
							}
						})
					})
				}
			}
		}
	}
}

// Keys that are asked for seldom, at many instances, are held to the limit: whoever does not know what
// others have counted asks.
func TestSeldom(t *testing.T) {
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 50, time.Millisecond, nil)
				defer f.close()
				l := limitOf(a, 10, 2*time.Second)
				f.press(l, 25, 20*time.Second, false) // each is asked every two seconds
				if worst := over(l, f.admitted); worst > 3 {
					t.Errorf("over by %.0f", worst)
				}
			})
		})
	}
}

// A whole burst on an instance passes if others ask for nothing.
func TestBurst(t *testing.T) {
	for _, a := range algorithms {
		for _, events := range []int64{1, 5, 100} {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 8, time.Millisecond, nil)
				defer f.close()
				l := limitOf(a, events, 2*time.Second)
				for range events {
					f.ask(3, "one", l)
				}
				if f.refused > 0 || f.ask(3, "one", l) {
					t.Errorf("%s: %d of %d refused, or one more passes", a, f.refused, events)
				}
				time.Sleep(DefaultInterval + 10*time.Millisecond)
				if f.ask(5, "one", l) {
					t.Errorf("%s: another instance does not know of it", a)
				}
			})
		}
	}
}

// When demand moves from one instance to all, or back, the limit is exceeded by no more than twice the
// bound.
func TestDemandMoves(t *testing.T) {
	for i, a := range algorithms {
		for j, n := range []int{2, 3, 8, 20} {
			if testdep.RaceEnabled && i != j {
				continue // it takes its time
			}
			t.Run(fmt.Sprintf("%s/%d", a, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t, n, time.Millisecond, nil)
					defer f.close()
					l := limitOf(a, 2000, 2*time.Second)
					for i := range 12 {
						f.press(l, 3000, 410*time.Millisecond, i%2 == 0)
					}
					if worst, most := over(l, f.admitted), 2*bound(n, 3000, time.Millisecond); worst > most {
						t.Errorf("over by %.0f, want at most %.0f", worst, most)
					}
				})
			})
		}
	}
}

// Versions of a limit on different instances share their counts: the larger one is exceeded by no more than
// the bound, and whoever has the smaller one admits nothing once it has heard that it is used up.
func TestTwoVersions(t *testing.T) {
	for i, a := range algorithms {
		for j, events := range [][2]int64{{2000, 20}, {500, 2000}} {
			if testdep.RaceEnabled && i%2 != j {
				continue // it takes its time
			}
			t.Run(fmt.Sprint(a, events), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const n = 4
					f := newFleet(t, n, time.Millisecond, nil)
					defer f.close()
					versions := []*tidegate.Limit{limitOf(a, events[0], 2*time.Second), limitOf(a, events[1], 2*time.Second)}
					var by []int // which has admitted
					paced(2000, 3*time.Second, rand.New(rand.NewPCG(1, 2)), func(i int) {
						version := i % n % 2
						if f.decide(i%n, "one", versions[version], 0) {
							f.mu.Lock()
							defer f.mu.Unlock()
							f.admitted, by = append(f.admitted, time.Now()), append(by, version)
						}
					})
					for version, l := range versions {
						most := 2 * bound(n, 2000, time.Millisecond) // others do not share what is left of the smaller one
						if l.Events == max(events[0], events[1]) {
							most /= 2
						}
						if worst := overWhere(l, f.admitted, func(i int) bool { return by[i] == version }); worst > most {
							t.Errorf("over %d by %.0f, want at most %.0f", l.Events, worst, most)
						}
					}
				})
			})
		}
	}
}

// Requests that can never be admitted are no demand, which would take the share of other instances, and no
// number of requests is one that a store cannot be told.
func TestDemandOfWhatCannotBe(t *testing.T) {
	f := func(cost int64, n int, most int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 2, time.Millisecond, nil)
			defer f.close()
			l := limitOf(tidegate.FixedWindow, 100, 12*time.Hour)
			for range 20 {
				if _, err := f.nodes[0].Take(t.Context(), []tidegate.Check{{Key: "one", Limit: l, Cost: cost}}, n); err != nil {
					t.Fatal(err)
				}
			}
			f.nodes[0].Flush()
			all := []chain.Tally{{Limit: l, Key: "one", Instance: newInstance(), Number: 1}}
			if err := f.hub.Exchange(t.Context(), all); err != nil {
				t.Fatal(err)
			}
			if got := all[0].Answer.Demand; got < 0 || got > most {
				t.Errorf("a cost of %d, %d times: the demand is %d, want at most %d", cost, n, got, most)
			}
		})
	}
	f(101, 1, 0)
	f(1<<50, 1, 0)
	f(math.MaxInt64, 3, 0)
	f(1, 5, 20*5*quick)
	f(100, 1, 20*100*quick)
	f(1, math.MaxInt, quick*maxAsked)
	f(100, math.MaxInt, quick*maxAsked)
}
