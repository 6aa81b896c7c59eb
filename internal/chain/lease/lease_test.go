package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/storetest"
)

// What comes often is decided from portions, in far fewer calls than requests, and what is
// admitted is within the limit of every algorithm that suits.
func TestHotKey(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow} {
		for _, load := range []int{500, 1000, 3000, 10_000} { // a second, on a limit of 1000
			t.Run(fmt.Sprint(a, load), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBank()
					s := open(t, b)
					l := limit("api", a, 1000, time.Second)
					admitted, from := 0, map[tidegate.Origin]int{}
					const seconds = 5
					start := time.Now()
					for range seconds * load {
						time.Sleep(time.Second / time.Duration(load))
						d := take(t, s, check(l, 1))
						from[d.Receipt.Origin]++
						if d.OK {
							admitted++
						} else if d.RetryAfter <= 0 || d.Limit != l {
							t.Fatalf("a refusal says %+v", d)
						}
					}
					// This bank holds nothing back for its leases, so that a life's worth is on top.
					most := int(1000 * (1 + time.Since(start).Seconds() + maxLife.Seconds()))
					if a == tidegate.FixedWindow {
						most = 1000 * (seconds + 2) // which it begins and ends in the middle of
					}
					least := min(load, 1000) * seconds * 9 / 10
					if admitted > most || admitted < least {
						t.Errorf("%d of %d are admitted; want %d to %d", admitted, seconds*load, least, most)
					}
					loans, strict := b.calls()
					if calls := loans + strict; calls > seconds*60 {
						t.Errorf("%d loans and %d calls for %d requests", loans, strict, seconds*load)
					}
					if from[tidegate.OriginLeased]*10 < seconds*load*9 {
						t.Errorf("decided by %v", from)
					}
				})
			})
		}
	}
}

// Keys that are asked for seldom are strict, and so is what cannot be leased.
func TestStrict(t *testing.T) {
	f := func(name string, l *tidegate.Limit, keys int, c tidegate.Check) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank()
				s := open(t, b)
				s.instances = func() int { return 3 }
				for i := range 2000 {
					c.Key, c.Limit = fmt.Sprint("key", i%keys), l
					if d := take(t, s, c); d.Receipt.Origin != tidegate.OriginStore {
						t.Fatalf("decided by %s", d.Receipt.Origin)
					}
				}
				if loans, strict := b.calls(); strict != 2000 || loans != 0 {
					t.Errorf("%d calls and %d loans", strict, loans)
				}
			})
		})
	}
	one := tidegate.Check{Cost: 1}
	f("many keys", limit("api", tidegate.TokenBucket, 1000, time.Second), 500, one)
	f("few events", limit("api", tidegate.TokenBucket, 59, time.Second), 1, one) // 5.9 in a life, for three
	f("small burst", tidegate.MustLimit(tidegate.Spec{
		Name: "api", Events: 1000, Period: time.Second, Burst: 39, Algorithm: tidegate.TokenBucket,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Leased}},
	}), 1, one)
	for _, a := range []tidegate.Algorithm{tidegate.LeakyBucket, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows} {
		f(a.String(), limit("api", a, 1000, time.Second), 1, one)
	}
	l := limit("api", tidegate.TokenBucket, 1000, time.Second)
	f("not leased", tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 1000, Period: time.Second, Algorithm: tidegate.TokenBucket}), 1, one)
	f("a floor", l, 1, tidegate.Check{Cost: 1, Floor: 5})
	f("an estimate", l, 1, tidegate.Check{Cost: 1, Estimate: true})
	f("a peek", l, 1, tidegate.Check{})
}

// Beside a check that is refused, what was taken from the portion goes back there.
func TestBesideStrictChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		s := open(t, b)
		l := limit("api", tidegate.TokenBucket, 1000, time.Second)
		few := tidegate.Check{Key: "ann", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{Name: "few", Events: 1, Period: time.Hour})}
		heatUp(t, s, check(l, 1))
		spent := func() int64 {
			synctest.Wait()
			_, left := s.Outstanding()
			return b.lent - left
		}
		before := spent()
		if d := take(t, s, check(l, 1), few); !d.OK || d.Receipt.Lease == 0 {
			t.Fatalf("the first is %+v", d)
		}
		if d := take(t, s, check(l, 1), few); d.OK || d.Limit != few.Limit {
			t.Fatalf("the second is %+v", d)
		}
		if used := spent() - before; used != 1 {
			t.Errorf("%d were used; want one", used)
		}
	})
}

// Limits of one key are leased jointly: each event is one of all.
func TestJointly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		s := open(t, b)
		wide, narrow := limit("api", tidegate.TokenBucket, 1000, time.Second), limit("api", tidegate.FixedWindow, 6000, time.Minute)
		admitted := 0
		start := time.Now()
		for time.Since(start) < 50*time.Second && time.Now().Truncate(time.Minute).Equal(start.Truncate(time.Minute)) {
			if d := take(t, s, check(wide, 1), check(narrow, 1)); d.OK {
				admitted++
			}
			time.Sleep(500 * time.Microsecond)
		}
		if admitted > 6000 || admitted < 5700 {
			t.Errorf("%d are admitted in one window of 6000", admitted)
		}
		if _, strict := b.calls(); strict > 500 {
			t.Errorf("%d calls", strict)
		}
	})
}

// Events of a window are of no use in the next, and what nobody uses goes back in time.
func TestWindowsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		s := open(t, b)
		l := limit("api", tidegate.FixedWindow, 1000, time.Second)
		counts := map[int64]int{}
		for range 40_000 {
			if take(t, s, check(l, 1)).OK {
				counts[time.Now().Unix()]++
			}
			time.Sleep(251 * time.Microsecond)
		}
		for at, n := range counts {
			if n > 1000 {
				t.Errorf("%d in the window of %d", n, at)
			}
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1500 * time.Millisecond)))
		heatUp(t, s, check(l, 1))
		used := 0
		for range 20 {
			if take(t, s, check(l, 1)).OK {
				used++
			}
		}
		time.Sleep(200 * time.Millisecond) // nobody comes
		if n, _ := s.Outstanding(); n > 0 {
			t.Errorf("%d portions live on", n)
		}
		d, err := b.Backend.Take(t.Context(), []tidegate.Check{{Key: "ann", Limit: l}}, 1)
		if err != nil || d.Remaining < 1000-150 {
			t.Errorf("%d remain although hardly any were used: %v", d.Remaining, err)
		}
	})
}

// While the store is away, requests go to the layer below at once, and portions come back
// by themselves.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		s := open(t, b)
		l := limit("api", tidegate.TokenBucket, 1000, time.Second)
		heatUp(t, s, check(l, 1))
		b.mu.Lock()
		b.away = errors.New("gone")
		b.mu.Unlock()
		time.Sleep(maxLife)
		loans, _ := b.calls()
		for range 1000 {
			if d := take(t, s, check(l, 1)); d.Receipt.Origin != tidegate.OriginLocal {
				t.Fatalf("decided by %s: %+v", d.Receipt.Origin, d)
			}
			time.Sleep(time.Millisecond)
		}
		if after, _ := b.calls(); after-loans > 15 {
			t.Errorf("asked %d times in a second for portions that do not come", after-loans)
		}
		b.mu.Lock()
		b.away = nil
		b.mu.Unlock()
		heatUp(t, s, check(l, 1))
	})
}

// A request that comes alone after a rush is not refused by what was known in the rush.
func TestAfterTheRush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		s := open(t, b)
		l := limit("api", tidegate.TokenBucket, 1000, time.Second)
		for range 10_000 {
			take(t, s, check(l, 1))
			time.Sleep(100 * time.Microsecond)
		}
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			if d := take(t, s, check(l, 1)); !d.OK {
				t.Fatalf("refused: %+v", d)
			}
		}
	})
}

// What is given back goes to the portion while that lives. Afterwards a window takes it, and
// a bucket does not.
func TestAdjust(t *testing.T) {
	f := func(a tidegate.Algorithm, late time.Duration, left, returned int64) {
		t.Run(fmt.Sprint(a, late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank()
				s := open(t, b)
				l := limit("api", a, 1000, time.Second)
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1100 * time.Millisecond)))
				heatUp(t, s, check(l, 1))
				d := take(t, s, check(l, 2))
				if d.Receipt.Origin != tidegate.OriginLeased {
					t.Fatalf("decided by %s", d.Receipt.Origin)
				}
				time.Sleep(late)
				_, before := s.Outstanding()
				b.mu.Lock()
				b.returns = 0
				b.mu.Unlock()
				if err := s.Adjust(t.Context(), d.Receipt, []tidegate.Check{check(l, -2)}); err != nil {
					t.Fatal(err)
				}
				if _, after := s.Outstanding(); after-before != left || b.returns != returned {
					t.Errorf("%d go to the portion and %d to the store; want %d and %d", after-before, b.returns, left, returned)
				}
			})
		})
	}
	f(tidegate.TokenBucket, 0, 2, 0)
	f(tidegate.FixedWindow, 0, 2, 0)
	f(tidegate.TokenBucket, 150*time.Millisecond, 0, 0)
	f(tidegate.FixedWindow, 150*time.Millisecond, 0, 2)
}

// A charge that nobody was asked for goes to the store, and a reset forgets portions.
func TestChargeAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		s := open(t, b)
		l := limit("api", tidegate.TokenBucket, 1000, time.Second)
		heatUp(t, s, check(l, 1))
		d := take(t, s, check(l, 1))
		if err := s.Adjust(t.Context(), d.Receipt, []tidegate.Check{check(l, 900)}); err != nil {
			t.Fatal(err)
		}
		if got, _ := b.Backend.Take(t.Context(), []tidegate.Check{check(l, 0)}, 1); got.Remaining > 120 {
			t.Errorf("%d remain after a charge of 900", got.Remaining)
		}
		if err := s.Reset(t.Context(), []tidegate.Check{check(l, 0)}); err != nil {
			t.Fatal(err)
		}
		if n, _ := s.Outstanding(); n > 0 {
			t.Errorf("%d portions of a counter that was reset", n)
		}
	})
}

// Any number of goroutines, costs and keys: nothing is granted twice.
func TestRace(t *testing.T) {
	b := newBank()
	b.takes = 0
	s := open(t, b)
	l := limit("api", tidegate.TokenBucket, 1_000, 100*time.Second) // 1 in a life is too few for leases
	rich := tidegate.MustLimit(tidegate.Spec{
		Name: "api", Events: 100, Period: time.Second, Burst: 20_000, Algorithm: tidegate.TokenBucket,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Leased}},
	})
	var all sync.WaitGroup
	var mu sync.Mutex
	sum := map[*tidegate.Limit]int64{}
	began := time.Now()
	for g := range 16 {
		all.Go(func() {
			for i := range 4000 {
				c := check(l, int64(1+g%3))
				if i%4 > 0 {
					c.Limit = rich
				}
				d, err := s.Take(context.Background(), []tidegate.Check{c}, 1)
				if err != nil {
					t.Error(err)
				}
				if d.OK && i%16 == 3 {
					c.Cost = -c.Cost
					_ = s.Adjust(context.Background(), d.Receipt, []tidegate.Check{c})
				} else if d.OK {
					mu.Lock()
					sum[c.Limit] += c.Cost
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began).Seconds()
	for l, n := range sum {
		// What is returned to a bucket after its portion is over is lost, never gained.
		if most := l.Capacity() + int64(float64(l.Events)/l.Period.Seconds()*took) + 1; n > most {
			t.Errorf("%s: %d are admitted in %.1f s; want at most %d", l, n, took, most)
		}
	}
}

// What is not leased is as it was.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, now func() time.Time) tidegate.Store {
		b := &bank{Backend: chain.Adapt(memory.Open(memory.Config{Now: now}))}
		return New(b.Backend, b, Options{})
	}, storetest.Brief())
}

func TestLife(t *testing.T) {
	f := func(a tidegate.Algorithm, events int64, period time.Duration, burst int64, instances int, want time.Duration) {
		t.Helper()
		l := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: events, Period: period, Algorithm: a, Burst: burst})
		if got := Life(l, instances); got != want {
			t.Errorf("%s for %d: %s, want %s", l, instances, got, want)
		}
	}
	ms := time.Millisecond
	f(tidegate.TokenBucket, 1000, time.Second, 1000, 1, 100*ms)
	f(tidegate.TokenBucket, 1000, time.Second, 200, 1, 100*ms)
	f(tidegate.TokenBucket, 1000, time.Second, 100, 1, 50*ms)
	f(tidegate.TokenBucket, 1000, time.Second, 40, 1, 20*ms)
	f(tidegate.TokenBucket, 1000, time.Second, 39, 1, 0)
	// Whole events are held back: what refills in a life must not be two and a half of them.
	f(tidegate.TokenBucket, 80, time.Second, 5, 1, 25*ms)
	f(tidegate.TokenBucket, 100, time.Second, 11, 1, 50*ms)
	f(tidegate.TokenBucket, 1000, time.Second, 1000, 50, 100*ms)
	f(tidegate.TokenBucket, 1000, time.Second, 1000, 51, 0)
	f(tidegate.TokenBucket, 1, time.Second, 1000, 1, 0)
	f(tidegate.FixedWindow, 1000, time.Second, 0, 3, 100*ms)
	f(tidegate.FixedWindow, 1000, 100*ms, 0, 3, 50*ms)
	f(tidegate.FixedWindow, 1000, 30*ms, 0, 3, 0)
	f(tidegate.SlidingLog, 1000, time.Second, 0, 1, 0)
}
