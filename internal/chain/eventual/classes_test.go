package eventual

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// class is requests that have to leave so much for others, and what became of them.
type class struct {
	limit     *tidegate.Limit
	floor     int64
	perSecond float64
	nodes     []int // that are asked, in turn
	outcomes
}

// pressClasses sends the requests of classes for a time.
func (f *testFleet) pressClasses(lasts time.Duration, classes ...*class) {
	var all sync.WaitGroup
	for i, c := range classes {
		all.Go(func() {
			paced(c.perSecond, lasts, rand.New(rand.NewPCG(uint64(i), 3)), func(n int) {
				c.note(f.decide(c.nodes[n%len(c.nodes)], "one", c.limit, c.floor))
			})
		})
	}
	all.Wait()
}

// overBy is by how much classes together were above so many events of a limit at worst.
func overBy(events int64, classes ...*class) float64 {
	var all []time.Time
	for _, c := range classes {
		all = append(all, c.admitted...)
	}
	slices.SortFunc(all, time.Time.Compare)
	spec := classes[0].limit.Spec
	spec.Events = events
	return over(tidegate.MustLimit(spec), all)
}

func nodesUpTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// However much the others ask for, on any number of instances: what is set aside is there for the first
// class, less by what the limit may be exceeded by, and the others use the rest up and no more.
func TestClasses(t *testing.T) {
	const events, pressed = 2000, 3000.0
	for i, a := range algorithms {
		for j, n := range []int{1, 2, 3, 8, 20} {
			for k, percent := range []int64{20, 50, 90} {
				if k != (i+j)%3 && !testdep.Long() {
					continue // each share is seen with some
				}
				if testdep.RaceEnabled && (i+j)%4 != 0 {
					continue // it takes its time: each number of instances is seen with some
				}
				t.Run(fmt.Sprintf("%s/%d/%d", a, n, percent), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := newFleet(t, n, time.Millisecond, nil)
						defer f.close()
						l := limitOf(a, events, 2*time.Second)
						aside := int64(events) * percent / 100
						most := bound(n, pressed+events, time.Millisecond)
						// What it asks for in two windows, which may all be in one that slides.
						first := &class{limit: l, perSecond: (float64(aside) - most) / 4, nodes: nodesUpTo(n)}
						last := &class{limit: l, floor: aside, perSecond: pressed, nodes: nodesUpTo(n)}
						lasts := 5 * time.Second
						if a == tidegate.Quota {
							first.perSecond, lasts = (float64(aside)-most)/2, 2*time.Second
						}
						f.pressClasses(lasts, first, last)
						if first.refused > 0 || len(first.admitted) == 0 {
							t.Errorf("of the first class, %d are refused and %d admitted", first.refused, len(first.admitted))
						}
						if worst := overBy(events-aside, last); worst > most {
							t.Errorf("the last class has %.0f more than is left to it, want at most %.0f", worst, most)
						}
						if worst := overBy(events, first, last); worst > most {
							t.Errorf("over by %.0f, want at most %.0f", worst, most)
						}
						if used, least := len(first.admitted)+len(last.admitted), int(events-aside); used < least {
							t.Errorf("%d are admitted, want at least %d", used, least)
						}
					})
				})
			}
		}
	}
}

// Two versions of a rule at once, one of which sets more aside, or nothing, or has other numbers: each
// version holds its own requests to what it says, and together they are within the larger limit.
func TestClassesOfTwoVersions(t *testing.T) {
	const pressed = 3000.0
	for i, a := range algorithms {
		for j, other := range []struct{ events, aside int64 }{{2000, 0}, {2000, 1600}, {1000, 0}, {1000, 500}, {3000, 300}} {
			if testdep.RaceEnabled && (i+j)%4 != 0 {
				continue // it takes its time: each is seen with some
			}
			t.Run(fmt.Sprintf("%s/%d of %d", a, other.aside, other.events), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const n = 4
					f := newFleet(t, n, time.Millisecond, nil)
					defer f.close()
					var all, some []*class
					version := func(events, aside int64, nodes ...int) {
						l := limitOf(a, events, 2*time.Second)
						first := &class{limit: l, perSecond: pressed / 10, nodes: nodes}
						last := &class{limit: l, floor: aside, perSecond: pressed / 2, nodes: nodes}
						all, some = append(all, first, last), append(some, last)
					}
					version(2000, 400, 0, 1)
					version(other.events, other.aside, 2, 3)
					f.pressClasses(5*time.Second, all...)
					most := bound(n, 1.2*pressed, time.Millisecond)
					if worst := overBy(max(2000, other.events), all...); worst > most {
						t.Errorf("over by %.0f, want at most %.0f", worst, most)
					}
					for i, c := range some {
						if worst := overBy(c.limit.Events-c.floor, c); worst > most {
							t.Errorf("the last class of version %d has %.0f more than is left to it, want at most %.0f", i, worst, most)
						}
						if worst := overBy(c.limit.Events, all[2*i], c); worst > most {
							t.Errorf("version %d is over by %.0f, want at most %.0f", i, worst, most)
						}
					}
					admitted := 0
					for _, c := range all {
						admitted += len(c.admitted)
					}
					if least := int(max(2000-400, other.events-other.aside)); admitted < least {
						t.Errorf("%d are admitted, want at least %d", admitted, least)
					}
				})
			})
		}
	}
}

// While regions are cut off from each other, and held to their shares, what is set aside is a share of
// these: the last class goes on, and the first finds its part.
func TestClassesInAPartition(t *testing.T) {
	testdep.SkipUnderRace(t)
	for i, a := range []tidegate.Algorithm{tidegate.SubWindows, tidegate.FixedWindow, tidegate.SlidingWindow} {
		for j, percent := range []int64{20, 60, 90} {
			if testdep.RaceEnabled && i != j {
				continue // it takes its time
			}
			t.Run(fmt.Sprintf("%s/%d", a, percent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const events, each = 800, 2
					f := newRegions(t, 2, each, 20*time.Millisecond)
					defer f.close()
					l := regionalLimit(a, events, 2*time.Second, tidegate.PartitionShare)
					aside := int64(events) * percent / 100
					f.cut.Store(true)
					last := &class{limit: l, floor: aside, perSecond: 1200, nodes: nodesUpTo(2 * each)}
					f.pressClasses(20*time.Second, last) // until it is noticed, and some windows more
					last.admitted = nil
					first := &class{limit: l, perSecond: 5, nodes: nodesUpTo(2 * each)}
					f.pressClasses(10*time.Second, first, last)
					if first.refused > 0 {
						t.Errorf("of the first class, %d are refused and %d admitted", first.refused, len(first.admitted))
					}
					left := 5 * float64(events-aside) // of five windows
					if got := float64(len(first.admitted) + len(last.admitted)); got < 0.9*left {
						t.Errorf("%.0f are admitted, want about %.0f", got, left)
					}
					if worst, most := overBy(events-aside, last), 2*bound(each, 600, 0); worst > most {
						t.Errorf("the last class has %.0f more than is left to it, want at most %.0f", worst, most)
					}
				})
			})
		}
	}
}
