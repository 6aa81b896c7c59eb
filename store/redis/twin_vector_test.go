package redis

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// TestTwinVectors sends the same random histories of requests with several limits to Redis and to the
// memory store, and wants the same answers: under tiers, floors and limits that only advise, with
// copies and returns. A refusal says exactly when the same request passes.
func TestTwinVectors(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	tw := &vectors{T: t}
	tw.redis = openTest(t, Config{Addrs: []string{server.Socket}, pretend: tw.clock})
	for seed := range testdep.Longer(uint64(150), 5000) {
		tw.play(seed)
	}
	t.Logf("%d asked, %d refused, %d came back", tw.asked, tw.refused, tw.came)
	if tw.refused*20 < tw.asked || tw.refused*20 > tw.asked*19 || tw.came*20 < tw.asked {
		t.Errorf("%d of %d were refused, %d came back when they were told to: the test has lost its point", tw.refused, tw.asked, tw.came)
	}
}

type vectors struct {
	*testing.T
	rand     *rand.Rand
	redis    *Store
	memory   *memory.Store
	now      time.Time
	key      string
	families [][]*tidegate.Limit // each a list of limits that share a counter
	receipts []bothReceipts
	history  []string

	asked, refused, came int
}

// bothReceipts are those of one charge.
type bothReceipts struct {
	redis, memory tidegate.Receipt
	checks        []tidegate.Check
	wait          time.Duration
}

func (tw *vectors) clock() time.Time { return tw.now }

func (tw *vectors) play(seed uint64) {
	tw.rand = rand.New(rand.NewPCG(seed, 9))
	tw.key, tw.receipts, tw.history, tw.families = fmt.Sprint("seed ", seed), nil, nil, nil
	tw.now = time.Date(2026, time.January, 5, 1, 0, 0, 0, time.UTC).Add(time.Duration(tw.rand.Int64N(1e15)).Truncate(time.Microsecond))
	tw.memory = memory.Open(memory.Config{Now: tw.clock})
	for i := range 1 + tw.rand.IntN(4) {
		tw.families = append(tw.families, tw.family(i))
	}
	for range 60 {
		switch tw.rand.IntN(8) {
		case 0:
			tw.later(pick(tw.rand, time.Microsecond, time.Millisecond, time.Second, time.Minute, 3*time.Hour, 40*24*time.Hour))
		case 1, 2:
			l := pick(tw.rand, pick(tw.rand, tw.families...)...)
			tw.later(pick(tw.rand, period(l)/time.Duration(l.Events)*2, period(l)/7, period(l)))
		case 3:
			tw.adjust()
		default:
			tw.ask()
		}
		if tw.Failed() {
			for _, line := range tw.history {
				tw.Log(line)
			}
			tw.FailNow()
		}
	}
}

func period(l *tidegate.Limit) time.Duration {
	if l.Algorithm == tidegate.Quota {
		return 24 * time.Hour
	}
	return l.Period
}

func (tw *vectors) later(most time.Duration) {
	tw.pass(time.Duration(tw.rand.Int64N(int64(most) + 2000)).Truncate(time.Microsecond))
}

func (tw *vectors) pass(by time.Duration) {
	tw.now = tw.now.Add(by)
	tw.note("%s later: %s", by, tw.now.Format("2006-01-02 15:04:05.000000"))
}

func (tw *vectors) note(format string, args ...any) {
	tw.history = append(tw.history, fmt.Sprintf(format, args...))
}

// family is up to three limits of one counter.
func (tw *vectors) family(i int) (all []*tidegate.Limit) {
	r := tw.rand
	first := tidegate.Spec{
		Name: pick(r, "api", tw.key), Scope: pick(r, "user", "ip", "everyone"),
		Algorithm: pick(r, tidegate.TokenBucket, tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.Quota,
			tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog),
		Period: pick(r, 17*time.Millisecond, time.Second, time.Minute, time.Hour, 24*time.Hour) + time.Duration(i)*time.Millisecond,
		Parts:  pick(r, 1, 6, 60), Ceiling: r.IntN(2) == 0, CountRejected: r.IntN(3) == 0, Zone: "America/New_York",
	}
	for want := 1 + r.IntN(3); len(all) < want; {
		s := first
		s.Events = pick(r, 1, 2, 3, 7, 10, 100, 1000, 1<<20, 1+r.Int64N(50))
		if s.Algorithm != tidegate.SubWindows {
			s.Parts = 0
		}
		if s.Algorithm != tidegate.SubWindows && s.Algorithm != tidegate.SlidingWindow {
			s.Ceiling = false
		}
		s.CountRejected = s.CountRejected && s.Algorithm == tidegate.SlidingLog
		switch s.Algorithm {
		case tidegate.TokenBucket, tidegate.LeakyBucket:
			s.Burst = pick(r, 0, 1, 2, 5, s.Events/2, s.Events*3, r.Int64N(100))
		case tidegate.Quota:
			s.Period, s.Calendar = 0, tidegate.Day
		}
		if s.Algorithm != tidegate.Quota {
			s.Zone = ""
		}
		if l, err := tidegate.NewLimit(s); err == nil {
			all = append(all, l)
		}
	}
	return all
}

func (tw *vectors) checks() (all []tidegate.Check) {
	r := tw.rand
	for range pick(r, 1, 2, 2, 3, 3, 4, 5) {
		l := pick(r, pick(r, tw.families...)...)
		whole := l.Capacity()
		c := tidegate.Check{Key: tw.key, Limit: l, Advisory: r.IntN(8) == 0}
		c.Cost = pick(r, 0, 1, 1, 1, 1, 1+r.Int64N(3), 1+r.Int64N(3), whole, whole/2, whole/3+1, whole/5+1, whole/5+1, whole+r.Int64N(2))
		c.MaxWait = pick(r, 0, 0, 0, 0, 1500, time.Millisecond, time.Minute, period(l), math.MaxInt64)
		c.Floor = pick(r, 0, 0, 0, 0, 0, 0, 0, 0, 1, r.Int64N(4), whole/2, whole-1, math.MaxInt64)
		if l.Algorithm == tidegate.SlidingLog {
			c.Cost = min(c.Cost, 20) // each event is an element of a list
		}
		all = append(all, c)
	}
	return all
}

func (tw *vectors) ask() {
	checks, n := tw.checks(), pick(tw.rand, 1, 1, 1, 1, 2, 3, 10)
	if slices.ContainsFunc(checks, func(c tidegate.Check) bool { return c.Cost == 0 }) {
		n = 1
	}
	d := tw.take(checks, n)
	tw.asked++
	switch {
	case d.OK:
		return
	case d.Never || tw.rand.IntN(2) == 0:
		tw.refused++
		return
	}
	tw.refused++
	tw.came++
	counts := slices.ContainsFunc(checks, func(c tidegate.Check) bool { return c.Limit.CountRejected })
	if early := d.RetryAfter - time.Microsecond; early > 0 && !counts && tw.rand.IntN(2) == 0 {
		// That it was asked may itself put off the turn: it is refused at the pace of this limit from then on.
		if tw.pass(early); tw.take(checks, n).OK {
			tw.Errorf("admitted a microsecond early")
		}
		return
	}
	if tw.pass(d.RetryAfter); !tw.take(checks, n).OK {
		tw.Errorf("refused at the time told")
	}
}

// take asks both, and compares.
func (tw *vectors) take(checks []tidegate.Check, n int) tidegate.Decision {
	others := slices.Clone(checks)
	got, err := tw.redis.Take(context.Background(), checks, n)
	if err != nil {
		tw.Fatalf("redis: %v", err)
	}
	want, err := tw.memory.Take(context.Background(), others, n)
	if err != nil {
		tw.Fatalf("memory: %v", err)
	}
	tw.note("Take(%s, %d) = %+v", describe(checks), n, got)
	if got.OK {
		tw.receipts = append(tw.receipts, bothReceipts{got.Receipt, want.Receipt, slices.Clone(checks), got.Wait})
	}
	up := func(d time.Duration) time.Duration { return (d + 999).Truncate(time.Microsecond) }
	want.Receipt, want.RetryAfter, want.ResetAfter, want.Wait = got.Receipt, up(want.RetryAfter), up(want.ResetAfter), up(want.Wait)
	if got.Limit != want.Limit && got.Limit != nil && want.Limit != nil && !got.Outranks(&want) && !want.Outranks(&got) {
		// Of two limits that are equally close to refusing, a store may report either.
		want.Limit, want.Remaining, want.ResetAfter = got.Limit, got.Remaining, got.ResetAfter
	}
	if got != want || !slices.Equal(checks, others) {
		tw.Errorf("Take(%s, %d)\n\tgot  %+v\n\twant %+v, %s", describe(checks), n, got, want, describe(others))
	}
	return got
}

func describe(checks []tidegate.Check) (text string) {
	for _, c := range checks {
		text += fmt.Sprintf("{%s %s %s burst %d parts %d ceiling %t rejected %t: cost %d wait %s floor %d advisory %t over %t} ",
			c.Limit, c.Limit.Name, c.Limit.Scope, c.Limit.Burst, c.Limit.Parts, c.Limit.Ceiling, c.Limit.CountRejected, c.Cost, c.MaxWait, c.Floor, c.Advisory, c.Over)
	}
	return text
}

// adjust gives back something of an earlier charge, or charges unasked.
func (tw *vectors) adjust() {
	if len(tw.receipts) == 0 {
		return
	}
	r := pick(tw.rand, tw.receipts...)
	var checks []tidegate.Check
	for _, c := range r.checks {
		for _, family := range tw.families {
			if slices.Contains(family, c.Limit) {
				c.Limit = pick(tw.rand, family...) // the rules have changed meanwhile
			}
		}
		c.Cost = pick(tw.rand, -c.Cost, -1, -c.Cost/2, 0, 1, c.Cost)
		if slices.ContainsFunc(checks, func(o tidegate.Check) bool { return o.Limit.Identity() == c.Limit.Identity() }) {
			continue
		}
		checks = append(checks, c)
	}
	if tw.rand.IntN(3) == 0 {
		r.redis.At += r.wait.Microseconds() * 1024
		r.memory.At += r.wait.Microseconds() * 1024
	}
	tw.note("Adjust(%d, %s)", r.redis.At, describe(checks))
	if err := tw.redis.Adjust(context.Background(), r.redis, checks); err != nil {
		tw.Fatalf("redis: %v", err)
	}
	if err := tw.memory.Adjust(context.Background(), r.memory, checks); err != nil {
		tw.Fatalf("memory: %v", err)
	}
}
