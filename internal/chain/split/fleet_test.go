package split

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// crowd is instances that know of each other, by one clock that is set.
type crowd struct {
	t   testing.TB
	now time.Time
	all []*instance
}

type instance struct {
	*Store
	gone    bool
	n, rank int
}

// noStore is below instances that must not ask anybody.
type noStore struct {
	chain.Backend
	t testing.TB
}

func (s noStore) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	s.t.Error("the store below was asked")
	return tidegate.Decision{}, nil
}

func (s noStore) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error {
	s.t.Error("the store below was told")
	return nil
}

func newCrowd(t testing.TB, n int) *crowd {
	c := &crowd{t: t, now: time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)}
	c.join(n)
	return c
}

// join adds instances; all know of it at once.
func (c *crowd) join(n int) {
	was := len(c.live())
	for range n {
		i := &instance{n: 1, rank: -1}
		if was == 0 { // all began together
			i.n, i.rank = n, len(c.all)
		}
		i.Store = New(noStore{t: c.t}, Options{
			Now:        func() time.Time { return c.now },
			Members:    func() (int, int) { return i.n, i.rank },
			LocalBytes: 1 << 20,
		})
		c.all = append(c.all, i)
	}
	c.rank()
}

func (c *crowd) leave(n int) {
	for _, i := range c.live()[:n] {
		i.gone = true
	}
	c.rank()
}

// replace replaces the instance at an index by a successor, which is made before it knows the others.
func (c *crowd) replace(at int) {
	was, file := c.all[at], filepath.Join(c.t.TempDir(), "shares")
	if err := was.HandOver(file); err != nil {
		c.t.Fatal(err)
	}
	heir := &instance{n: 1, rank: -1}
	heir.Store = New(noStore{t: c.t}, Options{
		Now:        func() time.Time { return c.now },
		Members:    func() (int, int) { return heir.n, heir.rank },
		LocalBytes: 1 << 20,
	})
	heir.n = was.n // as its predecessor knew
	if err := heir.TakeOver(file); err != nil {
		c.t.Fatal(err)
	}
	if left, _ := filepath.Glob(file + "*"); len(left) > 0 {
		c.t.Errorf("%q are left", left)
	}
	was.gone, c.all[at] = true, heir
	c.rank()
}

func (c *crowd) rank() {
	live := c.live()
	for rank, i := range live {
		i.n, i.rank = len(live), rank
		i.members(i.now()) // as somebody asks all the time
	}
}

func (c *crowd) live() (all []*instance) {
	for _, i := range c.all {
		if !i.gone {
			all = append(all, i)
		}
	}
	return all
}

// take asks an instance about a request that has to leave nothing for others.
func (c *crowd) take(i *instance, l *tidegate.Limit, cost int64) bool {
	c.t.Helper()
	return c.decide(i, l, cost, 0).OK
}

// decide asks an instance about a request that has to leave floor for others, and wants the answer to
// make sense.
func (c *crowd) decide(i *instance, l *tidegate.Limit, cost, floor int64) tidegate.Decision {
	c.t.Helper()
	d, err := i.Take(context.Background(), []tidegate.Check{{Key: "k", Limit: l, Cost: cost, Floor: floor}}, 1)
	if err != nil || d.Limit != l || d.Remaining < 0 || d.RetryAfter < 0 || d.ResetAfter < 0 || d.OK == (d.RetryAfter > 0) || d.Never ||
		d.Receipt.Origin != tidegate.OriginSplit || d.Receipt.Instance == 0 {
		c.t.Fatalf("%s, cost %d above %d, %d instances: %+v, %v", l, cost, floor, i.n, d, err)
	}
	return d
}

func limitOf(spec tidegate.Spec) *tidegate.Limit {
	spec.Terms = &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Split}}
	return tidegate.MustLimit(spec)
}

// sweep calls f with numbers of instances, limits and costs over their whole ranges, around
// the share above all. They are the same ones every time.
func sweep(f func(n int, events, cost int64, random *rand.Rand)) {
	random, most := rand.New(rand.NewPCG(7, 7)), 20
	if thin > 1 {
		most = 11
	}
	for n := 1; n <= most; n += min(thin, 5) {
		for _, events := range []int64{1, 1 + random.Int64N(2*int64(n)), int64(n), 1 + random.Int64N(100), 1 + random.Int64N(1000)} {
			f(n, events, 1, random)
			f(n, events, min(events, events/int64(n)+random.Int64N(2)+1), random)
			f(n, events, 1+random.Int64N(events), random)
		}
	}
}

// Whoever asks where and when, in no window does a fleet admit more than the limit, and where
// all instances are asked all the time, it admits as much, or as many requests as fit.
func TestWindowsAddUpToTheLimit(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.FixedWindow, Period: time.Second},
		{Algorithm: tidegate.FixedWindow, Period: 7 * 24 * time.Hour},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Day, Zone: "America/New_York"},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Week},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Month, Anchor: 31},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Year},
	} {
		sweep(func(n int, events, cost int64, random *rand.Rand) {
			if spec.Period != time.Second && random.IntN(4) > 0 {
				return
			}
			spec.Events = events
			l := limitOf(spec)
			c := newCrowd(t, n)
			passed := make([]int, n)
			for range n {
				var total int64
				for turns := 0; turns < n; {
					i := random.IntN(n)
					if c.take(c.all[i], l, cost) {
						total += cost
						passed[i]++
						turns = 0
					} else {
						turns++
					}
				}
				for i := range c.all { // whom chance left out
					for c.take(c.all[i], l, cost) {
						total += cost
						passed[i]++
					}
				}
				want := events - events%cost
				if cost > 1 && cost <= events/int64(n) { // shares that no request fits into stay
					want = max(0, events-int64(n)*(cost-1))
				}
				if total > events || total < want {
					t.Fatalf("%s, cost %d, %d instances: %d in a window, want %d to %d", l, cost, n, total, want, events)
				}
				c.nextWindow(l)
			}
			for i := range passed {
				if passed[i] == 0 {
					t.Fatalf("%s, cost %d, %d instances: none had passed at number %d", l, cost, n, i)
				}
			}
		})
	}
}

// nextWindow sets the clock to the end of the window.
func (c *crowd) nextWindow(l *tidegate.Limit) {
	c.now = time.UnixMicro(spanOf(l, c.now).End).UTC()
}

// A RetryAfter is when the request passes, and not before, also if it has to leave something for others.
func TestRetryAfterHolds(t *testing.T) {
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.FixedWindow, Period: time.Minute},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Month},
		{Algorithm: tidegate.TokenBucket, Period: time.Minute},
	} {
		sweep(func(n int, events, cost int64, random *rand.Rand) {
			spec.Events = events
			l := limitOf(spec)
			for _, floor := range []int64{0, random.Int64N(events - cost + 1)} {
				c := newCrowd(t, n)
				c.retry(c.all[random.IntN(n)], l, cost, floor, random)
			}
		})
	}
}

// retry asks an instance again and again, and after each refusal just before its RetryAfter and then.
func (c *crowd) retry(i *instance, l *tidegate.Limit, cost, floor int64, random *rand.Rand) {
	c.t.Helper()
	for range 20 {
		c.now = c.now.Add(time.Duration(random.Int64N(int64(20 * time.Second))))
		d := c.decide(i, l, cost, floor)
		if d.OK {
			continue
		}
		c.now = c.now.Add(d.RetryAfter - time.Microsecond)
		if c.decide(i, l, cost, floor).OK {
			c.t.Fatalf("%s, cost %d above %d, %d instances: passed before RetryAfter %s", l, cost, floor, i.n, d.RetryAfter)
		}
		c.now = c.now.Add(time.Microsecond)
		if !c.decide(i, l, cost, floor).OK {
			c.t.Fatalf("%s, cost %d above %d, %d instances: did not pass after RetryAfter %s", l, cost, floor, i.n, d.RetryAfter)
		}
	}
}

// bucketLaw holds what a fleet admits to a burst and a rate.
type bucketLaw struct {
	burst, rate float64 // per second
	level       float64
	last        time.Time
}

// admit returns by how much the burst is exceeded.
func (b *bucketLaw) admit(now time.Time, cost int64) float64 {
	if !b.last.IsZero() {
		b.level = max(0, b.level-b.rate*now.Sub(b.last).Seconds())
	}
	b.last = now
	b.level += float64(cost)
	return b.level - b.burst
}

// Whoever asks where and when, in no time does a fleet admit more than burst + rate·time; if
// the burst is less than two requests, not more than two. Where all are asked all the time, it
// admits the rate.
func TestBucketsAddUpToTheLimit(t *testing.T) {
	testdep.SkipUnderRace(t)
	sweep(func(n int, events, cost int64, random *rand.Rand) {
		for _, burst := range []int64{cost, 2 * cost, events} {
			if burst < cost {
				continue
			}
			l := limitOf(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: events, Period: time.Second, Burst: burst})
			c := newCrowd(t, n)
			law := bucketLaw{burst: float64(max(burst, 2*cost)), rate: float64(events)}
			if cost*int64(n) <= burst {
				law.burst = float64(burst)
			}
			// All the time, then at times, at some of them.
			step := time.Duration(float64(cost) / float64(events) * float64(time.Second) / 8)
			start, total := c.now, int64(0)
			rounds := 16 * n
			for round := range 2 * rounds {
				busy := round < rounds
				c.now = c.now.Add(step)
				if !busy {
					c.now = c.now.Add(time.Duration(random.Int64N(int64(step) * 4 * int64(n))))
				}
				first := random.IntN(n)
				for k := range c.all {
					i := c.all[(first+k)%n]
					if !busy && random.IntN(2) == 0 {
						continue
					}
					for c.take(i, l, cost) {
						if busy {
							total += cost
						}
						if over := law.admit(c.now, cost); over > 1e-3 {
							t.Fatalf("%s, cost %d, %d instances: %.3f above the bound", l, cost, n, over)
						}
					}
				}
				if round == rounds-1 {
					want := float64(events) * c.now.Sub(start).Seconds()
					if float64(total) < 0.85*want-float64(cost) {
						t.Fatalf("%s, cost %d, %d instances: %d admitted in %s, want %.0f", l, cost, n, total, c.now.Sub(start), want)
					}
				}
			}
		}
	})
}

// With requests of different costs, some of them above the share, the bound holds for each
// such cost, and once more for all the others together.
func TestCostsThatDiffer(t *testing.T) {
	testdep.SkipUnderRace(t)
	sweep(func(n int, events, _ int64, random *rand.Rand) {
		costs := []int64{1}
		for range 1 + random.IntN(3) {
			costs = append(costs, 1+random.Int64N(events))
		}
		above := map[int64]bool{}
		for _, c := range costs {
			if c > events/int64(n) {
				above[c] = true
			}
		}
		times := int64(len(above) + 1)
		window := limitOf(tidegate.Spec{Name: "w", Algorithm: tidegate.FixedWindow, Events: events, Period: time.Second})
		bucket := limitOf(tidegate.Spec{Name: "b", Algorithm: tidegate.TokenBucket, Events: events, Period: time.Second})
		c := newCrowd(t, n)
		law := bucketLaw{burst: 2 * float64(times*events), rate: float64(times * events)}
		var total int64
		for range 100 {
			was := c.now
			c.now = c.now.Add(time.Duration(random.Int64N(int64(time.Second / 8))))
			if spanOf(window, was) != spanOf(window, c.now) {
				total = 0
			}
			for range 4 * n {
				i, cost := c.all[random.IntN(n)], costs[random.IntN(len(costs))]
				if c.take(i, window, cost) {
					total += cost
				}
				if total > times*events {
					t.Fatalf("%s, costs %v, %d instances: %d in a window", window, costs, n, total)
				}
				if c.take(i, bucket, cost) && law.admit(c.now, cost) > 1e-3 {
					t.Fatalf("%s, costs %v, %d instances: above %d times the limit", bucket, costs, n, times)
				}
			}
		}
	})
}

// Three a second on five instances are three a second, not none, and not five.
func TestThreeASecondOnFive(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow} {
		l := limitOf(tidegate.Spec{Algorithm: a, Events: 3, Period: time.Second})
		c := newCrowd(t, 5)
		var seconds []int
		for range 60 {
			total := 0
			for range 100 {
				for _, i := range c.all {
					if c.take(i, l, 1) {
						total++
					}
				}
				c.now = c.now.Add(10 * time.Millisecond)
			}
			seconds = append(seconds, total)
		}
		sum := 0
		for i, n := range seconds {
			if sum += n; n > 3+3 || i == 0 && n > 3+3 {
				t.Errorf("%s: %d in second %d", l, n, i)
			}
		}
		t.Logf("%s: %d in a minute", l, sum)
		if sum < 171 || sum > 183 {
			t.Errorf("%s: %d in a minute, want 180: %v", l, sum, seconds)
		}
	}
}

func spanOf(l *tidegate.Limit, now time.Time) algo.Span { return algo.SpanAt(l, algo.Instant(now)) }
