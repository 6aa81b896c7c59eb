package eventual

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/eventual/hub"
	"tidegate.dev/tidegate/internal/chain/region"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

func regionalLimit(a tidegate.Algorithm, events int64, period time.Duration, on tidegate.OnPartition) *tidegate.Limit {
	l := limitOf(a, events, period)
	spec := l.Spec
	spec.Terms = &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual, OnPartition: on}}
	return tidegate.MustLimit(spec)
}

// far is the way from one region to the store of another.
type far struct {
	hub  *hub.Hub
	trip time.Duration
	cut  func() bool
}

func (f far) call(ctx context.Context, do func()) error {
	if !f.cut() {
		time.Sleep(f.trip / 2)
		do()
		time.Sleep(f.trip / 2)
	}
	if f.cut() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (f far) Feed(ctx context.Context, q chain.FeedQuery) (is chain.Feed, err error) {
	err = f.call(ctx, func() { is, _ = f.hub.Feed(ctx, q) })
	return is, err
}

func (f far) Merge(ctx context.Context, g chain.Greeting, c []chain.Replica) (is chain.Welcome, err error) {
	err = f.call(ctx, func() { is, _ = f.hub.Merge(ctx, g, c) })
	return is, err
}

func (f far) Heard(ctx context.Context) (at map[string]time.Time, now time.Time, err error) {
	err = f.call(ctx, func() { at, now, _ = f.hub.Heard(ctx) })
	return at, now, err
}

// regionFleet is regions with some instances each.
type regionFleet struct {
	*testFleet
	cut     atomic.Bool
	deaf    atomic.Pointer[func(from, to int) bool] // ways that are cut, if not all are
	closers []func()
}

func newRegions(t testing.TB, regions, each int, trip time.Duration) *regionFleet {
	f := &regionFleet{testFleet: &testFleet{TB: t}}
	var hubs []*hub.Hub
	for range regions {
		hubs = append(hubs, hub.New(time.Now))
	}
	name := func(i int) string { return fmt.Sprint("r", i) }
	near := func() bool { return false }
	for i := range regions {
		o := region.Options{Name: name(i), Store: far{hubs[i], 0, near}}
		var names []string
		for j := range regions {
			if j != i {
				cut := func() bool {
					deaf := f.deaf.Load()
					return f.cut.Load() || deaf != nil && (*deaf)(i, j)
				}
				o.Others = append(o.Others, region.Other{Name: name(j), Store: far{hubs[j], trip, cut}})
				names = append(names, name(j))
			}
		}
		syncer, watch := region.Sync(o), region.NewWatch(o.Store, names)
		f.closers = append(f.closers, syncer.Close, watch.Close)
		at := &Region{Number: chain.RegionNumber(name(i)), Of: regions, Rank: i, CutOff: watch.CutOff}
		for range each {
			s := New(chain.Adapt(memory.New()), Options{Tallies: hubs[i], Region: at, Instances: func() int { return each }})
			f.nodes = append(f.nodes, s)
		}
	}
	return f
}

func (f *regionFleet) close() {
	f.testFleet.close()
	for _, end := range f.closers {
		end()
	}
}

// regionBound is by how much a limit may be exceeded, as docs/consistency.md says, where all regions are
// asked alike: what the others admit until it is known here, and what instances of a region do not know of
// each other.
func regionBound(regions, each int, perSecond float64, trip time.Duration) float64 {
	lag := 3*DefaultInterval + region.Interval + 2*trip
	return float64(regions-1)/float64(regions)*perSecond*lag.Seconds() + bound(each, perSecond/float64(regions), 0)
}

// Under three times the load, at any distance: the limit is exceeded by no more than the bound, and used up.
func TestRegionsOverload(t *testing.T) {
	testdep.SkipUnderRace(t)
	for i, a := range algorithms {
		for regions, trip := range map[int]time.Duration{2: 10 * time.Millisecond, 3: 150 * time.Millisecond, 5: 50 * time.Millisecond} {
			if testdep.RaceEnabled && regions != []int{2, 3, 5, 3}[i] {
				continue // it takes its time
			}
			t.Run(fmt.Sprintf("%s/%d/%s", a, regions, trip), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newRegions(t, regions, 3, trip)
					defer f.close()
					l := regionalLimit(a, 4000, 4*time.Second, tidegate.PartitionContinue)
					f.press(l, 3000, 8500*time.Millisecond, false)
					worst, most := over(l, f.admitted), regionBound(regions, 3, 3000, trip)
					t.Logf("over by %.1f %%, bound %.1f %%", worst/40, most/40)
					if worst > most {
						t.Errorf("over by %.0f, want at most %.0f", worst, most)
					}
					least := 8000 // whole windows
					if a == tidegate.Quota {
						least = 4000
					}
					if len(f.admitted) < least {
						t.Errorf("%d admitted, want at least %d", len(f.admitted), least)
					}
				})
			})
		}
	}
}

// Limits that do not say what happens in a partition are of each region by itself.
func TestRegionsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRegions(t, 2, 2, 10*time.Millisecond)
		defer f.close()
		f.press(limitOf(tidegate.Quota, 1000, 0), 2000, 4*time.Second, false)
		if n := len(f.admitted); n < 2000 || n > 2200 {
			t.Errorf("%d admitted, want 1000 in each of two regions", n)
		}
	})
}

// Below the limit nobody is refused, wherever requests come from.
func TestRegionsBelowTheLimit(t *testing.T) {
	for _, a := range algorithms {
		for _, one := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := newRegions(t, 3, 2, 50*time.Millisecond)
				defer f.close()
				lasts := 5 * time.Second
				if a == tidegate.Quota {
					lasts = 2 * time.Second
				}
				f.press(regionalLimit(a, 2000, 2*time.Second, tidegate.PartitionShare), 900, lasts, one)
				if f.refused > 0 {
					t.Errorf("%s, %v: %d refused, %d admitted", a, one, f.refused, len(f.admitted))
				}
			})
		}
	}
}

// While regions are cut off from each other, each goes on with the whole limit, or with its share. When they
// hear of each other again, what was admitted meanwhile counts in its own window, once.
func TestRegionsPartition(t *testing.T) {
	const events, period, perSecond = 800, 2 * time.Second, 1200.0
	for i, a := range []tidegate.Algorithm{tidegate.SubWindows, tidegate.FixedWindow, tidegate.SlidingWindow} {
		for j, on := range []tidegate.OnPartition{tidegate.PartitionContinue, tidegate.PartitionShare} {
			if testdep.RaceEnabled && i%2 != j {
				continue // it takes its time
			}
			t.Run(fmt.Sprintf("%s/%s", a, on), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const regions = 2
					f := newRegions(t, regions, 3, 20*time.Millisecond)
					defer f.close()
					l := regionalLimit(a, events, period, on)
					start := time.Now()
					var all sync.WaitGroup
					all.Go(func() { f.press(l, perSecond, 40*time.Second, false) })
					time.Sleep(5 * time.Second)
					f.cut.Store(true)
					time.Sleep(20 * time.Second)
					f.cut.Store(false)
					all.Wait()
					calm := regionBound(regions, 3, perSecond, 20*time.Millisecond)
					within := func(what string, from, to time.Duration, most float64) {
						t.Helper()
						var some []time.Time
						for _, at := range f.admitted {
							if since := at.Sub(start); since >= from && since < to {
								some = append(some, at)
							}
						}
						worst := over(l, some)
						t.Logf("%s: over by %.0f, want at most %.0f", what, worst, most)
						if worst > most {
							t.Errorf("%s: over by %.0f, want at most %.0f", what, worst, most)
						}
						if used := float64(len(some)); used < 0.95*events*((to-from)/period).Seconds()*1e9 {
							t.Errorf("%s: %.0f admitted in %s", what, used, to-from)
						}
					}
					within("before", 0, 5*time.Second, calm)
					noticed := 5*time.Second + region.PartitionAfter + time.Second
					split := math.Min(events*(regions-1), perSecond*period.Seconds()-events) + calm
					within("until it is noticed", 5*time.Second, noticed, split)
					during := split
					if on == tidegate.PartitionShare {
						during = 2 * bound(3, perSecond/regions, 0)
					}
					within("while it lasts", noticed+period, 25*time.Second, during)
					healed := 25*time.Second + 4*time.Second // the call that is under way ends, and the next one begins
					within("after it", healed, 40*time.Second, calm)
				})
			})
		}
	}
}

// Where some regions hear all others, they admit what these leave. Those that do not are held to their
// shares, and the limit is exceeded by no more than these, also where they are asked last.
func TestRegionsPartlyCutOff(t *testing.T) {
	testdep.SkipUnderRace(t)
	const events, period, perSecond, regions, each = 900, 2 * time.Second, 1800.0, 3, 2
	f := func(what string, hear []int, deaf func(from, to int) bool) {
		var missing []int
		for i := range regions {
			if !slices.Contains(hear, i) {
				missing = append(missing, i)
			}
		}
		for _, a := range []tidegate.Algorithm{tidegate.SubWindows, tidegate.FixedWindow, tidegate.SlidingWindow} {
			if testdep.RaceEnabled && a != tidegate.SlidingWindow {
				continue // it takes its time
			}
			t.Run(fmt.Sprintf("%s/%s", what, a), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newRegions(t, regions, each, 20*time.Millisecond)
					defer f.close()
					l := regionalLimit(a, events, period, tidegate.PartitionShare)
					f.deaf.Store(&deaf)
					press := func(lasts time.Duration) {
						paced(perSecond, lasts, rand.New(rand.NewPCG(1, 2)), func(i int) {
							some := hear
							if time.Since(time.Now().Truncate(period)) > period/2 {
								some = missing
							}
							f.ask(some[i/each%len(some)]*each+i%each, "one", l)
						})
					}
					press(region.PartitionAfter + time.Second + period) // until it is noticed
					f.admitted = nil
					press(10 * time.Second)
					worst, most := over(l, f.admitted), float64(events*len(missing)/regions)+regionBound(regions, each, perSecond, 20*time.Millisecond)
					t.Logf("over by %.0f, bound %.0f", worst, most)
					if worst > most {
						t.Errorf("over by %.0f, want at most %.0f", worst, most)
					}
					if least := 4 * events; len(f.admitted) < least { // of five windows
						t.Errorf("%d admitted, want at least %d", len(f.admitted), least)
					}
				})
			})
		}
	}
	f("one is not heard", []int{0}, func(from, _ int) bool { return from == 0 })
	f("one does not hear", []int{1, 2}, func(_, to int) bool { return to == 0 })
	f("two do not hear each other", []int{0}, func(from, to int) bool { return from+to == 3 })
}

// In regions that are cut off, requests that have to leave some of the limit to others leave all of it together, and
// these then get it.
func TestClassesOfRegionsCutOff(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	for n := range 400 {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Duration(random.Int64N(int64(48 * time.Hour)))) // the remainder goes to other regions
			regions := 2 + n%4
			events := 1 + random.Int64N([]int64{5, 20, 1000}[random.IntN(3)])
			floor := random.Int64N(events + 1)
			l := regionalLimit(algorithms[n%len(algorithms)], events, 24*time.Hour, tidegate.PartitionShare)
			var all []*Store
			for rank := range regions {
				s := New(chain.Adapt(memory.New()), Options{Region: &Region{Number: int64(rank + 1), Of: regions, Rank: rank, CutOff: func() bool { return true }}})
				defer s.Close()
				all = append(all, s)
			}
			admitted := func(floor int64) (sum int64) {
				for _, s := range all {
					for ; ; sum++ {
						d, err := s.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: l, Cost: 1, Floor: floor}}, 1)
						if err != nil {
							t.Fatal(err)
						}
						if !d.OK {
							break
						}
					}
				}
				return sum
			}
			low := admitted(floor)
			if rest := admitted(0); low > events-floor || low < events-floor-int64(regions) || low+rest != events {
				t.Errorf("%s in %d regions: %d admitted of those that leave %d, and then %d", l, regions, low, floor, rest)
			}
		})
	}
}
