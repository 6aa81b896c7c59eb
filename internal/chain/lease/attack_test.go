package lease

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// A portion of several limits ends with the window that ends first, whichever of them is told.
func TestJointPortionsEndWithEachWindow(t *testing.T) {
	for name, long := range map[string]*tidegate.Limit{
		"beside a minute": limit("api", tidegate.FixedWindow, 40_000, time.Minute),
		"beside a bucket": limit("api", tidegate.TokenBucket, 40_000, time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank()
				s := open(t, b)
				if d, err := b.Backend.Take(t.Context(), []tidegate.Check{check(long, 30_000)}, 1); err != nil || !d.OK {
					t.Fatal(d, err)
				}
				short := limit("api", tidegate.FixedWindow, 1000, time.Second)
				counts := map[int64]int{}
				for start := time.Now(); time.Since(start) < 9*time.Second; {
					if take(t, s, check(short, 1), check(long, 1)).OK {
						counts[time.Now().Unix()]++
					}
					if time.Now().Unix()%2 == 0 { // a quiet second, and a rush
						time.Sleep(1300 * time.Microsecond)
					} else {
						time.Sleep(100 * time.Microsecond)
					}
				}
				for at, n := range counts {
					if n > 1000 {
						t.Errorf("%d in the window of %d", n, at)
					}
				}
			})
		})
	}
}

// Whatever a request costs, the limit can be used: nothing is taken ahead that does not fit.
func TestEveryCostCanUseTheLimit(t *testing.T) {
	for _, cost := range []int64{1, 2, 5, 6, 7, 12, 20, 40, 99, 100, 101, 200, 500} {
		t.Run(fmt.Sprint(cost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank()
				s := open(t, b)
				l := limit("api", tidegate.TokenBucket, 1000, time.Second)
				used := int64(0)
				for start := time.Now(); time.Since(start) < 20*time.Second; {
					if take(t, s, check(l, cost)).OK {
						used += cost
					}
					time.Sleep(time.Second * time.Duration(cost) / 3000)
				}
				if used < 19_000 {
					t.Errorf("%d of 20,000 are used", used)
				}
			})
		})
	}
}

// A cost that never fits takes nothing from others, and is told so.
func TestCostsThatNeverFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		s := open(t, b)
		l := limit("api", tidegate.TokenBucket, 1000, time.Second)
		heatUp(t, s, check(l, 1))
		admitted := 0
		for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
			if d := take(t, s, check(l, 1_000_000)); d.OK || !d.Never {
				t.Fatalf("%+v", d)
			}
			if take(t, s, check(l, 1)).OK {
				admitted++
			}
		}
		if b.lent > int64(admitted)*3/2+100 {
			t.Errorf("%d were taken ahead for %d requests", b.lent, admitted)
		}
	})
}

// A key is leased again when there are as few instances as before.
func TestLifeComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newBank())
		instances := 1
		s.instances = func() int { return instances }
		l := limit("api", tidegate.TokenBucket, 1000, time.Second)
		leased := func(seconds int) (n int) {
			for start := time.Now(); time.Since(start) < time.Duration(seconds)*time.Second; time.Sleep(2 * time.Millisecond) {
				if take(t, s, check(l, 1)).Receipt.Origin == tidegate.OriginLeased {
					n++
				}
			}
			return n
		}
		before := leased(2)
		instances = 60
		between := leased(2)
		instances = 1
		leased(2)
		if after := leased(2); before < 900 || between > 100 || after < 900 {
			t.Errorf("%d, %d with 60 instances, and then %d are leased", before, between, after)
		}
	})
}

// What a refused request took from a portion goes back to its window, even if the portion is
// over by then.
func TestRefusedRequestsCostNothing(t *testing.T) {
	for _, takes := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 120 * time.Millisecond} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank()
				s := open(t, b)
				l := limit("api", tidegate.FixedWindow, 100_000, time.Minute)
				few := tidegate.Check{Key: "ann", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{Name: "few", Events: 1, Period: time.Hour})}
				time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(70 * time.Second)))
				take(t, s, few)
				b.takes = takes
				for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
					go func() {
						if d, err := s.Take(t.Context(), []tidegate.Check{check(l, 1), few}, 1); err != nil || d.OK {
							t.Error(d, err)
						}
					}()
				}
				time.Sleep(2 * time.Second)
				if d, err := b.Backend.Take(t.Context(), []tidegate.Check{check(l, 0)}, 1); err != nil || d.Remaining != 100_000 {
					t.Errorf("all were refused, and %d remain of 100,000: %v", d.Remaining, err)
				}
			})
		})
	}
}

// A portion that comes when its life is over is given back, and not asked for again at once.
func TestPortionsThatComeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		b.takes = 105 * time.Millisecond
		s := open(t, b)
		l := limit("api", tidegate.FixedWindow, 100_000, time.Minute)
		asked := int64(0)
		for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(2 * time.Millisecond) {
			asked++
			go func() {
				if _, err := s.Take(t.Context(), []tidegate.Check{check(l, 1)}, 1); err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(2 * time.Second)
		loans, _ := b.calls()
		if d, err := b.Backend.Take(t.Context(), []tidegate.Check{check(l, 0)}, 1); err != nil || 100_000-d.Remaining != asked || loans > 20 {
			t.Errorf("%d are charged for %d requests, %d loans: %v", 100_000-d.Remaining, asked, loans, err)
		}
	})
}

// What was held before a reset does not come back after it.
func TestResetForgetsWhatIsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		s := open(t, b)
		l := limit("api", tidegate.FixedWindow, 1000, time.Second)
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1100 * time.Millisecond)))
		for range 200 {
			take(t, s, check(l, 1))
			time.Sleep(time.Millisecond)
		}
		if err := s.Reset(t.Context(), []tidegate.Check{check(l, 0)}); err != nil {
			t.Fatal(err)
		}
		admitted := int64(0)
		for range 2 {
			for range 900 {
				d, _ := b.Backend.Take(t.Context(), []tidegate.Check{check(l, 1)}, 1)
				admitted += d.Granted
			}
			time.Sleep(200 * time.Millisecond)
		}
		if admitted > 1000 {
			t.Errorf("%d are admitted in a window of 1000", admitted)
		}
	})
}

// A supply whose counters were reset asks for no more: the portion would be void, and its events lost.
func TestResetEndsAskingAgain(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow} {
		synctest.Test(t, func(t *testing.T) {
			b := newBank()
			s := open(t, b)
			l := limit("api", a, 1000, time.Second)
			waits := func() bool { // for a call that asks again, which requests have come for
				for i := range s.shards {
					for _, sup := range s.shards[i].supplies {
						if sup.scarce && !sup.inFlight && sup.asked > sup.came {
							return true
						}
					}
				}
				return false
			}
			for i := 0; !waits(); i++ {
				if i == 50_000 {
					t.Fatal("too little was never granted")
				}
				take(t, s, check(l, 1))
				time.Sleep(100 * time.Microsecond)
				synctest.Wait()
			}
			if err := s.Reset(t.Context(), []tidegate.Check{check(l, 0)}); err != nil {
				t.Fatal(err)
			}
			before, _ := b.calls()
			time.Sleep(2 * maxPause)
			if after, _ := b.calls(); after != before {
				t.Errorf("%s: %d portions are taken after the reset, and lost", a, after-before)
			}
		})
	}
}

// Nobody can put back more than was taken.
func TestPutBackIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newBank())
		l := limit("api", tidegate.TokenBucket, 1000, time.Second)
		heatUp(t, s, check(l, 1))
		d := take(t, s, check(l, 1))
		_ = s.Adjust(t.Context(), d.Receipt, []tidegate.Check{check(l, -1_000_000)})
		if _, left := s.Outstanding(); left > 200 {
			t.Errorf("%d are held", left)
		}
	})
}
