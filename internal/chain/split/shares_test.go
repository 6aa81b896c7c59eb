package split

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// An advisory share never decides, and says whether it had room.
func TestAdvisoryShares(t *testing.T) {
	everySplit(t, func(t *testing.T, limit func(string, int64) *tidegate.Limit) {
		s := New(chain.Adapt(still()), Options{Now: noon, Members: func() (int, int) { return 5, 0 }})
		l := limit("a", 10)
		over := 0
		for range 10 {
			c := []tidegate.Check{{Key: "k", Limit: l, Cost: 1, Advisory: true}}
			d, err := s.Take(ctx, c, 1)
			if err != nil || !d.OK || d.Granted != 1 {
				t.Fatalf("%+v, %v", d, err)
			}
			if c[0].Over {
				over++
			}
		}
		if over != 8 {
			t.Errorf("%d of 10 were over, want all but the share of 2", over)
		}
	})
}

// A peek says what a request of one would get.
func TestPeeksOfShares(t *testing.T) {
	sweep(func(n int, events, _ int64, random *rand.Rand) {
		for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow} {
			l := limitOf(tidegate.Spec{Algorithm: a, Events: events, Period: time.Minute})
			c := newCrowd(t, n)
			for range 30 {
				c.now = c.now.Add(time.Duration(random.Int64N(int64(10 * time.Second))))
				i := c.all[random.IntN(n)]
				peek, err := i.Take(ctx, []tidegate.Check{{Key: "k", Limit: l}}, 1)
				if err != nil || peek.OK != (peek.Remaining > 0) || peek.OK == (peek.RetryAfter > 0) {
					t.Fatalf("%s, %d instances: %+v, %v", l, n, peek, err)
				}
				left := peek.Remaining
				d, _ := i.Take(ctx, []tidegate.Check{{Key: "k", Limit: l, Cost: 1}}, 1)
				if d.OK != peek.OK || d.RetryAfter != peek.RetryAfter || d.OK && d.Remaining != left-1 {
					t.Fatalf("%s, %d instances: a peek said %+v, and then it was %+v", l, n, peek, d)
				}
			}
		}
	})
}

// Who may wait is booked ahead, at the pace of the share, and one after the other also where
// the share is less than one request.
func TestWaitForShare(t *testing.T) {
	f := func(events, burst int64, n int, cost int64, want time.Duration) {
		t.Helper()
		l := limitOf(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: events, Period: time.Second, Burst: burst})
		c := newCrowd(t, n)
		for _, i := range c.all {
			var last time.Duration
			for k := range 10 {
				d, err := i.Take(ctx, []tidegate.Check{{Key: "k", Limit: l, Cost: cost, MaxWait: time.Hour}}, 1)
				if err != nil || !d.OK {
					t.Fatalf("%+v, %v", d, err)
				}
				pace := d.Wait - last
				least := want - time.Millisecond
				if k == 1 { // its turn begins at the same time, whenever in the one before the first came
					least = want / 2
				}
				if k > int(burst/cost/int64(n)) && (pace < least || pace > want+want/4) {
					t.Errorf("%s, %d instances: number %d waits %s, %s after the one before, want %s", l, n, k, d.Wait, pace, want)
				}
				last = d.Wait
			}
		}
	}
	f(100, 100, 5, 1, 50*time.Millisecond)
	f(3, 3, 5, 1, 5*time.Second/3)
	f(3, 3, 5, 3, 5*time.Second)
	f(1, 1, 20, 1, 20*time.Second)
}

// Charged unasked, a share is in debt at most by itself; nothing is asked below.
func TestChargeShares(t *testing.T) {
	everySplit(t, func(t *testing.T, limit func(string, int64) *tidegate.Limit) {
		c := newCrowd(t, 5)
		i, l := c.all[3], limit("a", 100)
		if err := i.Adjust(ctx, tidegate.Receipt{}, []tidegate.Check{{Key: "k", Limit: l, Cost: 5}}); err != nil {
			t.Fatal(err)
		}
		d, err := i.Take(ctx, []tidegate.Check{{Key: "k", Limit: l}}, 1)
		if err != nil || d.Remaining != 15 {
			t.Errorf("%+v, %v", d, err)
		}
		if err := i.Adjust(ctx, tidegate.Receipt{}, []tidegate.Check{{Key: "k", Limit: l, Cost: 1 << 60}}); err != nil {
			t.Fatal(err)
		}
		if d, err = i.Take(ctx, []tidegate.Check{{Key: "k", Limit: l}}, 1); err != nil || d.OK || d.Remaining != 0 || d.ResetAfter > 24*time.Hour {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// Many goroutines take and return while the number of instances changes: nothing is lost, and
// nothing is above the limit of one who is alone.
func TestSharesRace(t *testing.T) {
	everySplit(t, func(t *testing.T, limit func(string, int64) *tidegate.Limit) {
		synctest.Test(t, func(t *testing.T) {
			l := limit("a", 1000)
			size := make(chan int, 1)
			size <- 5
			s := New(chain.Adapt(memory.New()), Options{Members: func() (int, int) {
				n := <-size
				size <- n
				return n, n - 1
			}})
			total := make(chan int64, 8)
			for g := range 8 {
				go func() {
					random := rand.New(rand.NewPCG(uint64(g), 1))
					var kept int64
					for range 300 {
						d, err := s.Take(ctx, []tidegate.Check{{Key: "k", Limit: l, Cost: 1}}, 1)
						if err != nil {
							t.Error(err)
						}
						if !d.OK {
							continue
						}
						if kept++; random.IntN(4) == 0 {
							kept--
							if err := s.Adjust(ctx, d.Receipt, []tidegate.Check{{Key: "k", Limit: l, Cost: -1}}); err != nil {
								t.Error(err)
							}
						}
						if random.IntN(50) == 0 {
							<-size
							size <- 1 + random.IntN(7)
							time.Sleep(time.Millisecond)
						}
					}
					total <- kept
				}()
			}
			var sum int64
			for range 8 {
				sum += <-total
			}
			if sum > 1000 || sum < 100 {
				t.Errorf("%d admitted", sum)
			}
		})
	})
}

// Copies and floors are of the share.
func TestCopiesAndFloorsOfShares(t *testing.T) {
	everySplit(t, func(t *testing.T, limit func(string, int64) *tidegate.Limit) {
		f := func(c tidegate.Check, copies int, granted, remaining int64) {
			t.Helper()
			s := New(noStore{t: t}, Options{Now: noon, Members: func() (int, int) { return 5, 3 }})
			c.Key, c.Limit = "k", limit("a", 100)
			d, err := s.Take(ctx, []tidegate.Check{c}, copies)
			if err != nil || d.Granted != granted || d.OK != (granted > 0) || d.Remaining != remaining {
				t.Errorf("%+v, %d copies: %+v, %v; want %d granted and %d left", c, copies, d, err, granted, remaining)
			}
		}
		f(tidegate.Check{Cost: 1}, 7, 7, 13)
		f(tidegate.Check{Cost: 1}, 100, 20, 0)
		f(tidegate.Check{Cost: 3}, 100, 6, 2)
		f(tidegate.Check{Cost: 1, Floor: 50}, 100, 10, 0)
		f(tidegate.Check{Cost: 1, Floor: 50}, 3, 3, 7)
		f(tidegate.Check{Cost: 0, Floor: 50}, 1, 1, 10)
		s := New(noStore{t: t}, Options{Now: noon, Members: func() (int, int) { return 5, 3 }})
		if d, err := s.Take(ctx, []tidegate.Check{{Key: "k", Limit: limit("a", 100), Cost: 1, Floor: 100}}, 1); err != nil || !d.Never {
			t.Errorf("a floor of everything: %+v, %v", d, err)
		}
		if d, err := s.Take(ctx, []tidegate.Check{{Key: "k", Limit: limit("a", 100), Cost: 101}}, 1); err != nil || !d.Never {
			t.Errorf("more than the limit: %+v, %v", d, err)
		}
	})
}

// Instances that do not know their ranks have the limit on average, each of them.
func TestRanksThatAreNotKnown(t *testing.T) {
	for n := 1; n <= 20; n++ {
		for _, events := range []int64{1, 3, 7, 20, 99} {
			l := limitOf(tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: events, Period: time.Second})
			c := newCrowd(t, n)
			for _, i := range c.all {
				i.rank = -1
			}
			c.now = c.now.Add(time.Hour)
			for k, i := range c.all {
				var total int64
				at := c.now
				for range n {
					for c.take(i, l, 1) {
						total++
					}
					c.nextWindow(l)
				}
				if c.now = at; total != events {
					t.Errorf("%d of %d instances admitted %d in as many windows, want %d", k, n, total, events)
				}
			}
		}
	}
}
