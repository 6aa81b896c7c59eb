package eventual

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// What is lost on the way is counted once, calls and replies alike; what is given back is counted
// no more.
func TestLostReplies(t *testing.T) {
	for _, a := range algorithms {
		for _, loss := range []float64{0, 0.05, 0.5} {
			t.Run(fmt.Sprintf("%s/%v", a, loss), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t, 3, 2*time.Millisecond, nil)
					l := limitOf(a, 1_000_000, 12*time.Hour) // nothing is over
					for _, w := range f.wires {
						w.loss = loss
					}
					f.press(l, 2000, 3*time.Second, false)
					check := []tidegate.Check{{Key: "one", Limit: l, Cost: 10}}
					d, err := f.nodes[0].Take(t.Context(), check, 1)
					if err != nil || !d.OK {
						t.Fatal(d, err)
					}
					check[0].Cost = -7
					if err := f.nodes[0].Adjust(t.Context(), d.Receipt, check); err != nil {
						t.Fatal(err)
					}
					time.Sleep(60 * DefaultInterval) // tried again until there is an answer
					if got, want := f.total("one", l), int64(len(f.admitted))+3; got != want {
						t.Errorf("%d counted, %d admitted", got, want)
					}
					f.close()
				})
			})
		}
	}
}

// While the store is away, all together admit about the limit, and what they admitted is counted
// afterwards, once.
func TestAway(t *testing.T) {
	for i, a := range algorithms {
		for j, n := range []int{2, 3, 8} {
			if testdep.RaceEnabled && i%3 != j {
				continue // it takes its time
			}
			t.Run(fmt.Sprintf("%s/%d", a, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t, n, time.Millisecond, nil)
					defer f.close()
					l := limitOf(a, 2000, 2*time.Second)
					f.press(l, 3000, time.Second, false)
					for _, w := range f.wires {
						w.setAway(true)
					}
					f.press(l, 3000, 5*time.Second, false)
					for _, w := range f.wires {
						w.setAway(false)
					}
					f.press(l, 3000, 3*time.Second, false)
					worst, most := over(l, f.admitted), 0.1*2000+bound(n, 3000, time.Millisecond)
					t.Logf("over by %.1f %%", worst/20)
					if worst > most {
						t.Errorf("over by %.0f, want at most %.0f", worst, most)
					}
					for _, s := range f.nodes {
						s.Flush()
						if is := s.Status(); is.Unsent != 0 || is.Away {
							t.Errorf("%+v", is)
						}
					}
				})
			})
		}
	}
}

// If only some instances cannot reach the store, they have their shares beside what all others admit.
func TestSomeAway(t *testing.T) {
	for i, a := range algorithms {
		for j, k := range []int{1, 4, 7} {
			if testdep.RaceEnabled && i%3 != j {
				continue // it takes its time
			}
			t.Run(fmt.Sprintf("%s/%d", a, k), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const n = 8
					f := newFleet(t, n, time.Millisecond, nil)
					defer f.close()
					l := limitOf(a, 2000, 2*time.Second)
					f.press(l, 3000, time.Second, false)
					for _, w := range f.wires[:k] {
						w.setAway(true)
					}
					f.press(l, 3000, 6*time.Second, false)
					worst, most := over(l, f.admitted), 2000*float64(k)/n+0.1*2000+bound(n, 3000, time.Millisecond)
					if worst > most {
						t.Errorf("over by %.0f, want at most %.0f", worst, most)
					}
				})
			})
		}
	}
}

// What an instance that died has told stays counted until its window ends, and so does what one that
// was closed had not.
func TestGone(t *testing.T) {
	for _, a := range algorithms {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 3, time.Millisecond, nil)
			l := limitOf(a, 10, time.Hour)
			for range 4 {
				f.ask(0, "one", l)
			}
			time.Sleep(5 * DefaultInterval) // it has told, and others no longer reckon with its demand
			f.wires[0].setAway(true)        // it died
			for range 3 {
				f.ask(1, "one", l)
			}
			f.nodes[1].Close()
			time.Sleep(5 * DefaultInterval)
			passed := 0
			for range 10 {
				if f.ask(2, "one", l) {
					passed++
				}
			}
			if passed != 3 {
				t.Errorf("%s: %d pass, want 3", a, passed)
			}
			f.close()
		})
	}
}

// A store that lost everything hears of it again from those who counted it.
func TestStoreLosesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, time.Millisecond, nil)
		defer f.close()
		l := limitOf(tidegate.SubWindows, 1000, time.Hour)
		f.press(l, 500, time.Second, false)
		empty := newFleet(t, 0, 0, nil).hub
		for _, w := range f.wires {
			w.setHub(empty)
		}
		f.hub = empty
		f.press(l, 100, time.Second, false)
		time.Sleep(2 * DefaultInterval)
		if got := f.total("one", l); got != int64(len(f.admitted)) {
			t.Errorf("%d counted, %d admitted", got, len(f.admitted))
		}
	})
}

// A reset at one instance is one at all of them, and nobody's counts from before come back.
func TestReset(t *testing.T) {
	for _, a := range algorithms {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 3, time.Millisecond, nil)
			defer f.close()
			l := limitOf(a, 10, time.Hour)
			fill := func() (passed int) {
				for i := range 30 {
					if f.ask(i%3, "one", l) {
						passed++
					}
					time.Sleep(2 * DefaultInterval)
				}
				return passed
			}
			for i := range 3 {
				if passed := fill(); passed != 10 {
					t.Errorf("%s: %d pass after %d resets, want 10", a, passed, i)
				}
				if err := f.nodes[i].Reset(context.Background(), []tidegate.Check{{Key: "one", Limit: l}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * DefaultInterval)
			}
		})
	}
}

// A successor goes on where its predecessor was, though the store is away; and what the predecessor
// counts afterwards is counted as well.
func TestHandOver(t *testing.T) {
	for i, key := range []string{"one", "one", "not UTF-8: \xe9\xff", "not UTF-8: \xe9\xff"} {
		resumed := i%2 == 1
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 2, time.Millisecond, nil)
			defer f.close()
			l := limitOf(tidegate.SubWindows, 1000, time.Hour)
			for range 100 {
				f.ask(0, key, l)
			}
			time.Sleep(2 * DefaultInterval)
			f.wires[0].setAway(true)
			time.Sleep(2 * DefaultInterval)
			for range 50 {
				f.ask(0, key, l)
			}
			file := filepath.Join(t.TempDir(), "counts")
			if err := f.nodes[0].HandOver(file); err != nil {
				t.Fatal(err)
			}
			for range 7 {
				f.ask(0, key, l)
			}
			if resumed {
				f.nodes[0].Resume()
			} else {
				w := &wire{hub: f.hub, rand: rand.New(rand.NewPCG(1, 2))}
				next := New(chain.Adapt(memory.New()), Options{Tallies: w, Instances: func() int { return 2 }})
				if err := next.TakeOver(file); err != nil {
					t.Fatal(err)
				}
				defer next.Close()
				f.nodes = append(f.nodes, next)
				f.ask(2, key, l)
			}
			f.wires[0].setAway(false)
			time.Sleep(3 * DefaultInterval)
			if got := f.total(key, l); got != int64(len(f.admitted)) || f.refused > 0 {
				t.Errorf("%q, resumed %v: %d counted, %d admitted", key, resumed, got, len(f.admitted))
			}
		})
	}
}

// frozen are tallies of a store that stands still.
type frozen struct{ chain.Tallies }

func (frozen) Exchange(ctx context.Context, _ []chain.Tally) error {
	<-ctx.Done()
	return ctx.Err()
}

func (frozen) Time(ctx context.Context) (now time.Time, err error) {
	<-ctx.Done()
	return now, ctx.Err()
}

// While the store is known to stand still, a handover does not wait for it: nobody accepts clients meanwhile. What was
// counted is the successor's.
func TestHandOverWhileTheStoreStandsStill(t *testing.T) {
	for at := time.Duration(0); at < 2*time.Second; at += 70 * time.Millisecond { // in a call, and between two
		synctest.Test(t, func(t *testing.T) {
			s := New(chain.Adapt(memory.New()), Options{Tallies: frozen{}})
			defer s.Close()
			l := limitOf(tidegate.SubWindows, 1000, time.Hour)
			f := &testFleet{TB: t, nodes: []*Store{s}}
			f.ask(0, "one", l)
			time.Sleep(time.Second + at)
			f.ask(0, "one", l)
			file, began := filepath.Join(t.TempDir(), "counts"), time.Now()
			if err := s.HandOver(file); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 0 {
				t.Errorf("after %s: it took %s", at, took)
			}
			next := New(chain.Adapt(memory.New()), Options{Tallies: frozen{}})
			defer next.Close()
			if err := next.TakeOver(file); err != nil {
				t.Fatal(err)
			}
			if is := next.Status(); is.Unsent != 2 {
				t.Errorf("after %s: the successor has %d to send, want 2", at, is.Unsent)
			}
		})
	}
}

// Flush and Close give up a store that stands still after two calls at most, however many exchanges are due meanwhile.
func TestFlushWhileTheStoreStandsStill(t *testing.T) {
	for at := time.Duration(0); at < 2*time.Second; at += 70 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := New(chain.Adapt(memory.New()), Options{Tallies: frozen{}})
			f := &testFleet{TB: t, nodes: []*Store{s}}
			f.ask(0, "one", limitOf(tidegate.SubWindows, 1000, time.Hour))
			time.Sleep(time.Second + at)
			for _, do := range []func(){s.Flush, s.Flush, s.Close} {
				began := time.Now()
				do()
				if took := time.Since(began); took > 2*exchangeTime {
					t.Errorf("after %s: it took %s", at, took)
				}
			}
		})
	}
}
