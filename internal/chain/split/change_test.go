package split

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// spread offers a limit's rate, times over, evenly to all live instances for a while, and
// returns what was admitted.
func (c *crowd) spread(l *tidegate.Limit, times float64, d time.Duration) (admitted int64) {
	step := time.Duration(float64(time.Second) / (float64(l.Events) * times))
	for end := c.now.Add(d); c.now.Before(end); c.now = c.now.Add(step) {
		live := c.live()
		if c.take(live[int(c.now.UnixNano()/int64(step))%len(live)], l, 1) {
			admitted++
		}
	}
	return admitted
}

// 1,000/s while 5 instances become 2 and then 7: the total is within 5 % of the limit in
// every second, as soon as they know of each other.
func TestFiveTwoSeven(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow} {
		for _, times := range []float64{1.5, 3} {
			for seed := range uint64(6 / thin) {
				random := rand.New(rand.NewPCG(seed, 5))
				l := limitOf(tidegate.Spec{Algorithm: a, Events: 1000, Period: time.Second, Burst: map[bool]int64{true: 100}[a == tidegate.TokenBucket]})
				c := newCrowd(t, 5)
				c.spread(l, times, 2*time.Second) // the burst
				for _, change := range []func(){func() {}, func() { c.leave(3) }, func() { c.join(5) }} {
					if a == tidegate.TokenBucket {
						c.spread(l, times, time.Duration(random.Int64N(int64(time.Second))))
					}
					change()
					for second := range 5 {
						if got := c.spread(l, times, time.Second); got < 950 || got > 1050 {
							t.Errorf("%s, offered %.1f times: %d admitted in second %d with %d instances", l, times, got, second, len(c.live()))
						}
					}
				}
			}
		}
	}
}

// Nobody is refilled by others who leave or join: of an exhausted key there is nothing more at
// those who stay than the whole limit leaves, until it has refilled or the window has ended.
func TestChangeRefillsNobody(t *testing.T) {
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Period: time.Hour},
		{Algorithm: tidegate.FixedWindow, Period: time.Hour},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Day},
	} {
		for seed := range uint64(200 / thin) {
			random := rand.New(rand.NewPCG(seed, 9))
			spec.Events = 1 + random.Int64N(1000)
			l := limitOf(spec)
			c := newCrowd(t, 1+random.IntN(20))
			var total int64
			for _, i := range c.live() {
				for c.take(i, l, 1) {
					total++
				}
			}
			stay := c.live()
			for range 10 {
				c.now = c.now.Add(time.Microsecond)
				if random.IntN(2) == 0 && len(stay) > 1 {
					c.leave(1)
					stay = stay[1:]
				} else {
					c.join(1 + random.IntN(3))
				}
				for _, i := range stay {
					for c.take(i, l, 1) {
						total++
					}
				}
				if total > l.Events {
					t.Fatalf("seed %d, %s: %d admitted with %d instances", seed, l, total, len(c.live()))
				}
			}
		}
	}
}

// While instances come and go within a window, whoever is asked takes what it can get. What is
// admitted beyond the limit, or less than a request for each instance, is at most what those
// who have come have of what was left of the window, and, where those who have gone have used
// more than those who stay, the difference.
func TestWindowsOverChanges(t *testing.T) {
	testdep.SkipUnderRace(t)
	most := 0.0
	for seed := range uint64(2000 / thin) {
		random := rand.New(rand.NewPCG(seed, 11))
		l := limitOf(tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 1 + random.Int64N(1000), Period: time.Minute})
		c := newCrowd(t, 1+random.IntN(20))
		highest := len(c.live())
		admitted, allowed := int64(0), float64(l.Events)
		start := c.now
		for c.now.Sub(start) < time.Minute {
			// All that there is, from everybody: the most that can be over.
			for _, i := range c.live() {
				for c.take(i, l, 1) {
					admitted++
				}
			}
			c.now = c.now.Add(time.Duration(random.Int64N(int64(time.Minute))))
			left := 1 - c.now.Sub(start).Seconds()/60
			if left <= 0 {
				break
			}
			if n := len(c.live()); random.IntN(2) == 0 && n > 1 {
				c.leave(1 + random.IntN(n-1))
			} else {
				k := 1 + random.IntN(5)
				c.join(k)
				allowed += left * float64(l.Events) * float64(k) / float64(n+k)
			}
			highest = max(highest, len(c.live()))
		}
		if over := float64(admitted) - allowed - float64(highest); over > 0 {
			t.Fatalf("seed %d, %s: %d admitted, want at most %.1f + %d", seed, l, admitted, allowed, highest)
		}
		most = max(most, float64(admitted)/float64(l.Events+int64(highest)))
	}
	t.Logf("at most %.2f times the limit", most)
}

// With demand that is even over instances and time, a window with changes admits what the
// limit says, to within a request for each instance.
func TestEvenDemandOverChanges(t *testing.T) {
	for seed := range uint64(300 / thin) {
		random := rand.New(rand.NewPCG(seed, 13))
		l := limitOf(tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 100 + random.Int64N(900), Period: time.Minute})
		c := newCrowd(t, 1+random.IntN(20))
		highest, admitted, start, next := len(c.live()), int64(0), c.now, 0
		step := time.Duration(float64(time.Minute) / float64(l.Events) / 1.02)
		changes := 0
		for ; c.now.Sub(start) < time.Minute; c.now = c.now.Add(step) {
			if random.Int64N(l.Events) < 3 {
				changes++
				if n := len(c.live()); random.IntN(2) == 0 && n > 1 {
					c.leave(1 + random.IntN(n-1))
				} else {
					c.join(1 + random.IntN(5))
				}
				highest = max(highest, len(c.live()))
			}
			live := c.live()
			next++
			if c.take(live[next%len(live)], l, 1) {
				admitted++
			}
		}
		slack := int64(highest)*int64(1+changes) + l.Events/50 // by which there is more demand
		if admitted > l.Events+slack || admitted < l.Events*98/100-slack {
			t.Errorf("seed %d, %s, %d changes: %d admitted", seed, l, changes, admitted)
		}
	}
}

// What is returned after a change is what was charged before it, and no more.
func TestReturnAfterAChange(t *testing.T) {
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Period: time.Hour},
		{Algorithm: tidegate.FixedWindow, Period: time.Hour},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Day},
	} {
		spec.Events = 1000
		l := limitOf(spec)
		c := newCrowd(t, 5)
		i := c.all[2]
		peek := func() int64 {
			d, err := i.Take(context.Background(), []tidegate.Check{{Key: "k", Limit: l}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			return d.Remaining
		}
		taken, err := i.Take(context.Background(), []tidegate.Check{{Key: "k", Limit: l, Cost: 150}}, 1)
		if err != nil || !taken.OK || peek() != 50 {
			t.Fatalf("%s: %+v, %v, %d left", l, taken, err, peek())
		}
		c.now = c.now.Add(time.Millisecond)
		c.leave(3)
		i = c.all[3]
		// Another instance knows nothing of it.
		if err := i.Adjust(context.Background(), taken.Receipt, []tidegate.Check{{Key: "k", Limit: l, Cost: -150}}); err == nil {
			t.Errorf("%s: returned elsewhere", l)
		}
		i = c.all[2]
		i.n, i.rank = 2, 0 // it is still there after all
		if got := peek(); got != 125 && !(spec.Algorithm == tidegate.TokenBucket && got == 124) {
			t.Errorf("%s: %d left of 500, after 150 of 200", l, got)
		}
		if err := i.Adjust(context.Background(), taken.Receipt, []tidegate.Check{{Key: "k", Limit: l, Cost: -150}}); err != nil {
			t.Error(err)
		}
		if got := peek(); got != 500 {
			t.Errorf("%s: %d left after all was returned", l, got)
		}
	}
}

// Whoever takes over from the only instance has not joined it, although both are counted until that has ended: no key
// starts used up, and no window with what is left of its time.
func TestHandOverIsNoJoin(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.Quota} {
		for _, n := range []int{1, 2, 5} {
			spec := tidegate.Spec{Name: "api", Algorithm: a, Events: 100, Period: time.Minute}
			if a == tidegate.Quota {
				spec.Period, spec.Calendar = 0, tidegate.Day
			}
			l := limitOf(spec)
			c := newCrowd(t, n)
			c.now = c.now.Add(30 * time.Second)
			was := c.all[0]
			file := filepath.Join(t.TempDir(), "shares")
			if err := was.HandOver(file); err != nil {
				t.Fatal(err)
			}
			heir := &instance{n: n, rank: -1} // it only knows how many there are
			heir.Store = New(noStore{t: t}, Options{
				Now:        func() time.Time { return c.now },
				Members:    func() (int, int) { return heir.n, heir.rank },
				LocalBytes: 1 << 20,
			})
			if err := heir.TakeOver(file); err != nil {
				t.Fatal(err)
			}
			c.all = append(c.all, heir)
			c.rank()
			c.now = c.now.Add(time.Second)
			was.gone = true
			c.rank()
			c.now = c.now.Add(time.Second)
			admitted := 0
			for range 100 {
				if c.take(heir, l, 1) {
					admitted++
				}
			}
			if admitted != 100/n {
				t.Errorf("%s, %d instances: %d admitted, want %d", l, n, admitted, 100/n)
			}
		}
	}
}

// A successor is made before it knows how many instances there are. When all are replaced, one by one, they admit in
// a window that is smaller than the fleet what the others have left of it.
func TestHandOverOfAWindowSmallerThanTheFleet(t *testing.T) {
	for _, spec := range []tidegate.Spec{
		{Name: "api", Algorithm: tidegate.Quota, Events: 3, Calendar: tidegate.Day},
		{Name: "api", Algorithm: tidegate.FixedWindow, Events: 8, Period: time.Hour},
		{Name: "api", Algorithm: tidegate.FixedWindow, Events: 100, Period: time.Hour},
	} {
		for _, usedBefore := range []bool{true, false} {
			l, c, admitted := limitOf(spec), newCrowd(t, 5), 0
			c.now = c.now.Add(10 * time.Minute)
			askAll := func() {
				for _, i := range c.live() {
					for c.take(i, l, 1) {
						admitted++
					}
				}
			}
			if usedBefore {
				askAll()
			}
			for at := range 5 {
				c.replace(at)
				c.now = c.now.Add(time.Second)
			}
			askAll()
			if int64(admitted) != l.Events {
				t.Errorf("%s, used before %t: %d admitted in all", l, usedBefore, admitted)
			}
		}
	}
}

// Who has joined does not know what was used before. After a reset that does not matter.
func TestResetAfterJoining(t *testing.T) {
	c := newCrowd(t, 1)
	c.now = c.now.Add(10 * time.Minute)
	c.join(1)
	c.now = c.now.Add(time.Second)
	l, joined := limitOf(tidegate.Spec{Name: "api", Algorithm: tidegate.TokenBucket, Events: 60, Period: time.Minute}), c.all[1]
	if d := c.decide(joined, l, 1, 0); d.OK {
		t.Errorf("%+v: used up by those who were there before, it should refuse", d)
	}
	if err := joined.Reset(t.Context(), []tidegate.Check{{Key: "k", Limit: l}}); err != nil {
		t.Fatal(err)
	}
	if d := c.decide(joined, l, 1, 0); !d.OK || d.Remaining != 29 {
		t.Errorf("%+v after a reset, want one of its 30 to be used", d)
	}
}

// The successor of an instance that has just joined knows as little of what others used before, but what was reset
// on its predecessor stays reset.
func TestHandOverAfterJoining(t *testing.T) {
	l := limitOf(tidegate.Spec{Name: "api", Algorithm: tidegate.TokenBucket, Events: 60, Period: time.Minute})
	for _, handOvers := range []int{0, 1, 2} {
		for _, reset := range []bool{false, true} {
			c := newCrowd(t, 1)
			c.now = c.now.Add(10 * time.Minute)
			for c.take(c.all[0], l, 1) {
			}
			c.join(1)
			c.now = c.now.Add(time.Second)
			if reset {
				if err := c.all[1].Reset(t.Context(), []tidegate.Check{{Key: "k", Limit: l}}); err != nil {
					t.Fatal(err)
				}
			}
			for range handOvers {
				c.replace(1)
			}
			admitted := 0
			for c.take(c.all[1], l, 1) {
				admitted++
			}
			if want := map[bool]int{false: 0, true: 30}[reset]; admitted != want {
				t.Errorf("%d hand-overs, reset %t: %d admitted, want %d", handOvers, reset, admitted, want)
			}
		}
	}
}
