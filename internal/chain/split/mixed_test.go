package split

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// below is a store of others that can be told to refuse, to fail, or to grant less.
type below struct {
	chain.Backend
	refuse, fail bool
	most         int
	took         int
}

func (b *below) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	b.took++
	switch {
	case b.fail:
		return tidegate.Decision{}, errors.New("the store is on fire")
	case b.refuse:
		return tidegate.Decision{Limit: checks[0].Limit, RetryAfter: time.Hour}, nil
	}
	if b.most > 0 {
		n = min(n, b.most)
	}
	return b.Backend.Take(ctx, checks, n)
}

func (b *below) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	if b.fail || b.refuse {
		return b.Take(ctx, checks, 1)
	}
	return b.Backend.Reserve(ctx, checks, ttl)
}

// ctx is of tests that nobody ends.
var ctx = context.Background()

// noon is when nothing ends soon.
func noon() time.Time { return time.Date(2027, 3, 3, 12, 30, 0, 0, time.UTC) }

// still is a memory store at noon.
func still() *memory.Store { return memory.Open(memory.Config{Now: noon}) }

// everySplit calls f for every algorithm that can be split, with its limits of so many events.
func everySplit(t *testing.T, f func(t *testing.T, l func(name string, events int64) *tidegate.Limit)) {
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Period: time.Hour},
		{Algorithm: tidegate.FixedWindow, Period: time.Hour},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Day},
	} {
		t.Run(spec.Algorithm.String(), func(t *testing.T) {
			f(t, func(name string, events int64) *tidegate.Limit {
				spec.Name, spec.Events = name, events
				return limitOf(spec)
			})
		})
	}
}

// What the shares granted is given back to the last event if the store below refuses, fails or
// grants less, for any number of instances, cost, and copies.
func TestPutBackIsExact(t *testing.T) {
	everySplit(t, func(t *testing.T, limit func(string, int64) *tidegate.Limit) {
		for seed := range uint64(300 / thin) {
			random := rand.New(rand.NewPCG(seed, 3))
			now := time.Unix(1.8e9, 0).Add(time.Duration(random.Int64N(int64(time.Hour))))
			n := 1 + random.IntN(20)
			rank := random.IntN(n)
			b := &below{Backend: chain.Adapt(memory.Open(memory.Config{Now: func() time.Time { return now }}))}
			s := New(b, Options{Now: func() time.Time { return now }, Members: func() (int, int) { return n, rank }, LocalBytes: 1 << 20})
			l, wide := limit("a", 1+random.Int64N(1000)), limit("b", 100_000)
			other := tidegate.MustLimit(tidegate.Spec{Name: "c", Events: 1000, Period: time.Hour, Algorithm: tidegate.SlidingWindow})
			checks := func(cost int64) []tidegate.Check {
				return []tidegate.Check{
					{Key: "k", Limit: l, Cost: cost},
					{Key: "k", Limit: other, Cost: 1},
					{Key: "k", Limit: wide, Cost: cost, Advisory: true},
				}
			}
			state := func() string {
				text := ""
				for _, l := range []*tidegate.Limit{l, wide} {
					d, err := s.local.Take(ctx, []tidegate.Check{{Key: "k", Limit: l}}, 1)
					text += fmt.Sprint(d.Remaining, d.ResetAfter, err, " ")
				}
				return text
			}
			for range 20 {
				now = now.Add(time.Duration(random.Int64N(int64(time.Second))))
				cost, copies := 1+random.Int64N(max(1, l.Events/int64(n))+2), 1+random.IntN(4)
				was := state()
				b.refuse, b.fail, b.most = false, false, 0
				switch random.IntN(4) {
				case 0:
					b.refuse = true
				case 1:
					b.fail = true
				case 2:
					b.most = 1
				}
				all := checks(cost)
				d, err := s.Take(ctx, all, copies)
				if (b.refuse || b.fail || err != nil || !d.OK) && state() != was {
					t.Fatalf("seed %d, %s, cost %d, %d instances: %s before, %s after %+v, %v", seed, l, cost, n, was, state(), d, err)
				}
				if err != nil || !d.OK {
					continue
				}
				if b.most > 0 && d.Granted != 1 {
					t.Fatalf("granted %d of %d", d.Granted, b.most)
				}
				// Whoever takes everything back has what was before.
				if random.IntN(2) == 0 {
					for i := range all {
						if all[i].Cost *= -d.Granted; all[i].Over {
							all[i].Cost = 0
						}
					}
					turns := cost*int64(n) > l.Capacity() && l.Algorithm == tidegate.TokenBucket
					if err := s.Adjust(ctx, d.Receipt, all); err != nil || state() != was && !turns {
						t.Fatalf("seed %d, %s, cost %d, %d instances: %s before, %s after all was returned, %v", seed, l, cost, n, was, state(), err)
					}
				}
			}
		}
	})
}

// If the shares refuse, the store below is not asked, and only those of its limits that count
// what is refused hear of it.
func TestRefusedByShares(t *testing.T) {
	everySplit(t, func(t *testing.T, limit func(string, int64) *tidegate.Limit) {
		inner := still()
		b := &below{Backend: chain.Adapt(inner)}
		s := New(b, Options{Now: noon, Members: func() (int, int) { return 2, 0 }})
		l := limit("a", 4)
		counting := tidegate.MustLimit(tidegate.Spec{Name: "all", Events: 100, Period: 24 * time.Hour, Algorithm: tidegate.SlidingLog, CountRejected: true})
		plain := tidegate.MustLimit(tidegate.Spec{Name: "some", Events: 100, Period: 24 * time.Hour, Algorithm: tidegate.SlidingLog})
		for i := range 5 {
			d, err := s.Take(ctx, []tidegate.Check{{Key: "k", Limit: plain, Cost: 1}, {Key: "k", Limit: l, Cost: 1}, {Key: "k", Limit: counting, Cost: 1}}, 1)
			if err != nil || d.OK != (i < 2) || !d.OK && (d.Limit != l || d.RetryAfter <= 0 || d.Receipt.Origin != tidegate.OriginSplit) {
				t.Errorf("%d: %+v, %v", i, d, err)
			}
		}
		for l, want := range map[*tidegate.Limit]int64{counting: 95, plain: 98} {
			if d, _ := inner.Take(ctx, []tidegate.Check{{Key: "k", Limit: l}}, 1); d.Remaining != want {
				t.Errorf("%s: %d left, want %d", l, d.Remaining, want)
			}
		}
		if b.took != 2 {
			t.Errorf("the store below was asked %d times", b.took)
		}
	})
}

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

// Reservations of shares are settled here, once, to the true cost; the part of the store below
// with them.
func TestReserveShares(t *testing.T) {
	everySplit(t, func(t *testing.T, limit func(string, int64) *tidegate.Limit) {
		for _, with := range []bool{false, true} {
			inner := still()
			b := &below{Backend: chain.Adapt(inner)}
			members := 4
			s := New(b, Options{Now: noon, Members: func() (int, int) { return members, 1 }})
			l := limit("a", 400)
			other := tidegate.MustLimit(tidegate.Spec{Name: "b", Events: 1000, Period: 24 * time.Hour, Algorithm: tidegate.SlidingLog})
			checks := []tidegate.Check{{Key: "k", Limit: l, Cost: 30, Estimate: true}}
			if with {
				checks = append(checks, tidegate.Check{Key: "k", Limit: other, Cost: 30, Estimate: true})
			}
			left := func(want, wantBelow int64) {
				t.Helper()
				d, err := s.Take(ctx, []tidegate.Check{{Key: "k", Limit: l}}, 1)
				if err != nil || d.Remaining != want {
					t.Errorf("%d left of the share, want %d (%v)", d.Remaining, want, err)
				}
				if d, _ := inner.Take(ctx, []tidegate.Check{{Key: "k", Limit: other}}, 1); with && d.Remaining != wantBelow {
					t.Errorf("%d left below, want %d", d.Remaining, wantBelow)
				}
			}
			for _, actual := range []int64{0, 10, 30, 50} {
				d, err := s.Reserve(ctx, checks, time.Hour)
				if err != nil || !d.OK || d.Receipt.Handle.IsZero() {
					t.Fatalf("%+v, %v", d, err)
				}
				left(70, 970)
				members = 2 // it is settled as it was charged
				if err := s.Settle(ctx, d.Receipt, actual); err != nil {
					t.Error(err)
				}
				members = 4
				left(100-actual, 1000-actual)
				if err := s.Settle(ctx, d.Receipt, actual); !errors.Is(err, tidegate.ErrSettled) {
					t.Errorf("settled twice: %v", err)
				}
				if err := s.Reset(ctx, []tidegate.Check{{Key: "k", Limit: l}, {Key: "k", Limit: other}}); err != nil {
					t.Fatal(err)
				}
				left(100, 1000)
			}
			b.refuse = true
			if d, err := s.Reserve(ctx, checks, time.Hour); with && (err != nil || d.OK) {
				t.Errorf("%+v, %v", d, err)
			}
			if with {
				left(100, 1000)
			}
			// Another instance does not have it.
			b.refuse = false
			d, err := s.Reserve(ctx, checks[:1], time.Hour)
			if err != nil || !d.OK {
				t.Fatalf("%+v, %v", d, err)
			}
			elsewhere := New(chain.Adapt(still()), Options{Now: noon, Members: func() (int, int) { return 4, 2 }})
			if err := elsewhere.Settle(ctx, d.Receipt, 1); !errors.Is(err, tidegate.ErrElsewhere) {
				t.Errorf("settled elsewhere: %v", err)
			}
			if err := elsewhere.Adjust(ctx, d.Receipt, []tidegate.Check{{Key: "k", Limit: l, Cost: -1}}); !errors.Is(err, tidegate.ErrElsewhere) {
				t.Errorf("returned elsewhere: %v", err)
			}
		}
	})
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

// Counted in one store with other limits, a reservation of both is settled as that store does.
func TestReserveSharesBesideALine(t *testing.T) {
	now := noon()
	clock := func() time.Time { return now }
	plain := memory.Open(memory.Config{Now: clock})
	store := memory.Open(memory.Config{Now: clock})
	s := New(chain.Adapt(store), Options{Now: clock, Local: store, Whole: true})
	line := tidegate.MustLimit(tidegate.Spec{Name: "line", Algorithm: tidegate.LeakyBucket, Events: 10, Period: time.Second, Burst: 50})
	share := limitOf(tidegate.Spec{Name: "share", Algorithm: tidegate.FixedWindow, Events: 100, Period: time.Hour})
	checks := func() []tidegate.Check {
		return []tidegate.Check{
			{Key: "k", Limit: line, Cost: 10, MaxWait: time.Minute, Estimate: true},
			{Key: "k", Limit: share, Cost: 10, Estimate: true},
		}
	}
	for _, actual := range []int64{10, 4, 0, 15} {
		a, errA := plain.Reserve(ctx, checks(), time.Hour)
		b, errB := s.Reserve(ctx, checks(), time.Hour)
		if errA != nil || errB != nil || a.OK != b.OK || a.Wait != b.Wait {
			t.Fatalf("%+v, %v; want %+v, %v", b, errB, a, errA)
		}
		if err := errors.Join(plain.Settle(ctx, a.Receipt, actual), s.Settle(ctx, b.Receipt, actual)); err != nil {
			t.Fatal(err)
		}
		for _, l := range []*tidegate.Limit{line, share} {
			peek := []tidegate.Check{{Key: "k", Limit: l, MaxWait: time.Minute}}
			a, _ := plain.Take(ctx, peek, 1)
			b, _ := s.Take(ctx, peek, 1)
			if a.Remaining != b.Remaining || a.ResetAfter != b.ResetAfter {
				t.Errorf("%s, settled at %d: %+v, want %+v", l, actual, b, a)
			}
		}
		now = now.Add(100 * time.Millisecond)
	}
}
