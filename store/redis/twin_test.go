package redis

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// TestTwins sends the same random histories to a script in Redis and to its twin in
// Go, by way of the memory store where that keeps as much, and wants the same answers to
// the tick: for limits of all sizes, changed on the way, under clocks that are set forth
// and back.
func TestTwins(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Parallel()
	server := testdep.Redis(t)
	seeds := testdep.Longer(uint64(60), 3000)
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.Quota,
		tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Concurrency,
	} {
		t.Run(a.String(), func(t *testing.T) {
			tw := &twins{T: t, algorithm: a}
			tw.redis = openTest(t, Config{Addrs: []string{server.Socket}, pretend: tw.clock})
			for seed := range seeds {
				tw.play(seed)
			}
			if tw.refused*20 < tw.asked || tw.refused*20 > tw.asked*19 {
				t.Errorf("%d of %d were refused: the test has lost its point", tw.refused, tw.asked)
			}
		})
	}
}

type twins struct {
	*testing.T
	algorithm tidegate.Algorithm
	rand      *rand.Rand
	redis     *Store
	twin      twin
	now       time.Time
	start     time.Time
	tiers     []*tidegate.Limit
	key       string
	receipts  [][2]tidegate.Receipt // of both, for the same charges
	answers   []string
	fresh     bool // the last step has charged something
	raw       bool // the limits keep the time, and differ in their periods

	asked, refused int
}

// twin is what a script is compared with.
type twin interface {
	tidegate.Store
	tidegate.Renewer
	tidegate.Resetter
}

func (tw *twins) clock() time.Time { return tw.now }

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// spec is a limit of any size, which may turn out to be impossible.
func (tw *twins) spec(period time.Duration, parts, anchor int) tidegate.Spec {
	r := tw.rand
	s := tidegate.Spec{Name: tw.key, Algorithm: tw.algorithm, Period: period}
	s.Events = pick(r, 1, 2, 3, 7, 10, 100, 1000, 9_973, 60_000, 1<<20, tidegate.MaxCount, 1+r.Int64N(50))
	switch tw.algorithm {
	case tidegate.TokenBucket, tidegate.LeakyBucket:
		if s.RawTime = tw.raw; tw.raw {
			s.Period = pick(r, period, 17*time.Millisecond, time.Second, time.Hour)
		}
		s.Burst = pick(r, 0, 1, 2, 5, s.Events/2, s.Events*3, 1<<28-2, r.Int64N(100))
	case tidegate.SubWindows: // tiers of one counter, in any resolution
		switch r.IntN(4) {
		case 0:
			s.Algorithm = tidegate.SlidingLog
		case 1:
			s.Parts = pick(r, 1, 6, 60, 1000)
		default:
			s.Parts, s.Ceiling = parts, r.IntN(3) == 0
		}
	case tidegate.SlidingLog:
		s.CountRejected = r.IntN(4) == 0
	case tidegate.Quota:
		s.Period, s.Calendar, s.Anchor = 0, pick(r, tidegate.Month, tidegate.Year), anchor
		s.Zone = "America/New_York"
	}
	return s
}

func (tw *twins) limits() {
	r := tw.rand
	tw.tiers = nil
	period := pick(r, time.Millisecond, 17*time.Millisecond, time.Second, time.Minute, 433*time.Second, time.Hour,
		24*time.Hour, 7*24*time.Hour, 90*24*time.Hour, 365*24*time.Hour).Truncate(time.Microsecond)
	tw.raw = tw.algorithm == tidegate.TokenBucket && r.IntN(3) == 0
	parts, anchor := pick(r, 1, 2, 6, 60, 97, 1000), 1+r.IntN(31)
	want := 1 + r.IntN(3)
	for range 100 {
		l, err := tidegate.NewLimit(tw.spec(period, parts, anchor))
		if err != nil || len(tw.tiers) > 0 && l.Identity() != tw.tiers[0].Identity() {
			continue
		}
		if tw.tiers = append(tw.tiers, l); len(tw.tiers) == want {
			return
		}
	}
}

func (tw *twins) play(seed uint64) {
	tw.rand = rand.New(rand.NewPCG(seed, uint64(tw.algorithm)))
	tw.key, tw.receipts, tw.answers, tw.fresh = fmt.Sprint("seed ", seed), nil, nil, false
	if tw.limits(); len(tw.tiers) == 0 {
		return
	}
	tw.now = time.Date(2026, time.January, 5, 1, 0, 0, 0, time.UTC).Add(time.Duration(tw.rand.Int64N(1e15)).Truncate(time.Microsecond))
	tw.start = tw.now
	tw.twin = memory.Open(memory.Config{Now: tw.clock})
	if kindOf[tw.algorithm] == buckets {
		tw.twin = &lawTwin{now: tw.clock}
	}
	for range 60 {
		switch tw.rand.IntN(8) {
		case 0, 1:
			tw.move()
		case 2:
			tw.adjust()
		default:
			tw.take()
		}
		if tw.Failed() {
			for _, s := range tw.answers {
				tw.Log(s)
			}
			tw.FailNow()
		}
	}
}

// move sets the clock forth by anything up to a few periods, now and then back.
func (tw *twins) move() {
	l := tw.tiers[0]
	period := l.Period
	if l.Algorithm == tidegate.Quota {
		period = 30 * 24 * time.Hour
	}
	most := pick(tw.rand, period/time.Duration(l.Events)*2, period/7, period, 3*period)
	by := time.Duration(tw.rand.Int64N(int64(most) + 2000)).Truncate(time.Microsecond)
	// A memory store knows a year before its start.
	if tw.rand.IntN(6) == 0 && tw.now.Add(-by).After(tw.start.AddDate(0, -11, 0)) && tw.remembered() {
		by = -by
	}
	tw.fresh = false
	if tw.now.Add(by).After(tw.start.AddDate(15, 0, 0)) {
		return // nor does it know more than 17 years after
	}
	tw.now = tw.now.Add(by)
	tw.note("%s later: %s", by, tw.now.Format("2006-01-02 15:04:05.000000"))
}

// remembered reports whether both are sure to remember the same: what is over, one of
// them may have forgotten already, which shows when the clock is set back.
func (tw *twins) remembered() bool {
	switch tw.algorithm {
	case tidegate.SlidingLog, tidegate.SubWindows, tidegate.Concurrency:
		if !tw.fresh {
			return false
		}
	}
	return tw.ask(tidegate.Check{Key: tw.key, Limit: tw.tiers[0]}, 1).ResetAfter > 0
}

func (tw *twins) note(format string, args ...any) {
	tw.answers = append(tw.answers, fmt.Sprintf(format, args...))
}

func (tw *twins) check() tidegate.Check {
	r := tw.rand
	l := pick(r, tw.tiers...)
	c := tidegate.Check{Key: tw.key, Limit: l}
	whole := l.Capacity()
	c.Cost = pick(r, 0, 1, 1, 1+r.Int64N(3), whole, whole/2, whole/3+1, whole+1, math.MaxInt64)
	if (tw.algorithm == tidegate.SlidingLog || tw.algorithm == tidegate.Concurrency) && r.IntN(10) > 0 {
		c.Cost = min(c.Cost, 20) // each event is an element of a list
	}
	c.MaxWait = pick(r, 0, 0, 0, 1500, time.Millisecond, time.Minute, l.Period, math.MaxInt64)
	c.Floor = pick(r, 0, 0, 0, 0, 1, r.Int64N(4), whole/2, whole-1, whole, math.MaxInt64)
	return c
}

func (tw *twins) take() {
	c, n := tw.check(), pick(tw.rand, 1, 1, 1, 2, 3, 10, math.MaxInt)
	if c.Cost == 0 {
		n = 1
	}
	if tw.algorithm == tidegate.Concurrency { // the memory store makes room for all before it looks
		if n = min(n, 10); c.Cost > 1 {
			n = 1
		}
	}
	got := tw.ask(c, n)
	tw.asked++
	if !got.OK {
		tw.refused++
	}
	tw.fresh = got.OK && c.Cost > 0
}

// ask asks both, and compares.
func (tw *twins) ask(c tidegate.Check, n int) tidegate.Decision {
	got, err := tw.redis.Take(context.Background(), []tidegate.Check{c}, n)
	if err != nil {
		tw.Fatalf("redis: %v", err)
	}
	want, err := tw.twin.Take(context.Background(), []tidegate.Check{c}, n)
	if err != nil {
		tw.Fatalf("its twin: %v", err)
	}
	tw.note("Take(cost %d wait %s of %s, %d) = %+v", c.Cost, c.MaxWait, c.Limit, n, got)
	if got.OK && c.Cost > 0 {
		tw.receipts = append(tw.receipts, [2]tidegate.Receipt{got.Receipt, want.Receipt})
	}
	if c.Limit.Algorithm != tidegate.Concurrency && got.Receipt.At != want.Receipt.At {
		tw.Errorf("at %d, want %d", got.Receipt.At, want.Receipt.At)
	}
	up := func(d time.Duration) time.Duration { return (d + 999).Truncate(time.Microsecond) }
	want.Receipt, want.RetryAfter, want.ResetAfter, want.Wait = got.Receipt, up(want.RetryAfter), up(want.ResetAfter), up(want.Wait)
	if got != want {
		tw.Errorf("Take(cost %d wait %s of %s, %d)\n\tgot  %+v\n\twant %+v", c.Cost, c.MaxWait, c.Limit, n, got, want)
	}
	return got
}

// adjust gives back something of an earlier charge, or charges unasked.
func (tw *twins) adjust() {
	if len(tw.receipts) == 0 {
		return
	}
	r := pick(tw.rand, tw.receipts...)
	c := tw.check()
	if tw.rand.IntN(3) > 0 {
		c.Cost = -c.Cost
	}
	if c.Limit.Algorithm == tidegate.Concurrency && tw.rand.IntN(3) == 0 {
		got, want := tw.redis.Renew(context.Background(), r[0], []tidegate.Check{c}), tw.twin.Renew(context.Background(), r[1], []tidegate.Check{c})
		tw.note("Renew(%v) = %v", r, got)
		if got != want {
			tw.Errorf("Renew = %v, want %v", got, want)
		}
		return
	}
	if tw.rand.IntN(4) == 0 { // a turn that was booked ahead, or a slot that never was
		ahead := tw.rand.Int64N(100_000_000)
		r[0].At, r[1].At = r[0].At+ahead, r[1].At+ahead
		r[0].Handle = tidegate.NewHandle()
	}
	tw.note("Adjust(%v, %d of %s)", r, c.Cost, c.Limit)
	if err := tw.redis.Adjust(context.Background(), r[0], []tidegate.Check{c}); err != nil {
		tw.Fatalf("redis: %v", err)
	}
	if err := tw.twin.Adjust(context.Background(), r[1], []tidegate.Check{c}); err != nil {
		tw.Fatalf("its twin: %v", err)
	}
	if peek := (tidegate.Check{Key: tw.key, Limit: c.Limit}); tw.ask(peek, 1).ResetAfter == 0 {
		_ = tw.twin.Reset(context.Background(), []tidegate.Check{peek}) // which Redis has done
	}
}
