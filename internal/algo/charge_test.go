package algo

import (
	"math"
	"reflect"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// everyLaw is a limit of each kind.
func everyLaw() []*tidegate.Limit {
	var all []*tidegate.Limit
	for _, s := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Events: 7, Period: time.Minute, Burst: 5},
		{Algorithm: tidegate.LeakyBucket, Events: 7, Period: time.Minute, Burst: 4},
		{Algorithm: tidegate.FixedWindow, Events: 5, Period: time.Minute},
		{Algorithm: tidegate.Quota, Events: 5, Calendar: tidegate.Month, Anchor: 31, Zone: "America/New_York"},
		{Algorithm: tidegate.SlidingLog, Events: 5, Period: time.Minute},
		{Algorithm: tidegate.SlidingWindow, Events: 5, Period: time.Minute},
		{Algorithm: tidegate.SlidingWindow, Events: 9, Period: time.Minute, Ceiling: true},
		{Algorithm: tidegate.SubWindows, Events: 5, Period: time.Minute, Parts: 6},
		{Algorithm: tidegate.SubWindows, Events: 5, Period: time.Minute, Parts: 6, Ceiling: true},
		{Algorithm: tidegate.Concurrency, Events: 5, Period: time.Minute},
	} {
		all = append(all, tidegate.MustLimit(s))
	}
	return all
}

// busy is a key that some random traffic has gone through.
func busy(t *testing.T, l *tidegate.Limit, seed uint64) (k subject, now int64) {
	t.Helper()
	in := randomTape(seed, 120)
	k, now = newSubject(t, l), epoch
	pause := Ticks(l.Period) / 3
	if l.Algorithm == tidegate.Quota {
		pause = 10 * day
	}
	for !in.done() {
		now += in.upTo(pause)
		k.take(now, Ask{Cost: in.upTo(3), Copies: 1 + in.upTo(1)})
	}
	return k, now
}

// TestRefusedNeverCharges: the state after a refusal or a peek is the one before.
func TestRefusedNeverCharges(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, l := range everyLaw() {
		refused := 0
		for seed := range uint64(1000) {
			k, now := busy(t, l, seed)
			k.take(now, Ask{Copies: 1}) // settles what has left the window
			before := k.clone()
			for _, cost := range []int64{1, 2, 5, 0, 6, math.MaxInt64} {
				if v, _ := k.take(now, Ask{Cost: cost, Copies: 1}); v.Granted > 0 && cost > 0 {
					k = before.clone()
					continue
				}
				refused++
				if !reflect.DeepEqual(k, before) {
					t.Fatalf("%s seed %d: refusing %d changed\n%+v to\n%+v", l, seed, cost, before, k)
				}
			}
		}
		if refused < 1000 {
			t.Errorf("%s: only %d refusals", l, refused)
		}
	}
}

// TestReturnRestores: what is charged and returned at once was never there.
func TestReturnRestores(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, l := range everyLaw() {
		granted := 0
		for seed := range uint64(1000) {
			k, now := busy(t, l, seed)
			peek := func() [3]Verdict {
				var all [3]Verdict
				for i, after := range []int64{0, 7 * second, 61 * second} {
					all[i], _ = k.clone().take(now+after, Ask{Copies: 1, MaxWait: hour})
				}
				return all
			}
			before := peek()
			a := Ask{Cost: 1 + int64(seed%3), Copies: 1, MaxWait: hour}
			v, at := k.take(now, a)
			if v.Granted == 0 {
				continue
			}
			granted++
			k.giveBack(now, at, a.Cost)
			if after := peek(); after != before {
				t.Fatalf("%s seed %d: charging and returning %d made\n%+v of\n%+v", l, seed, a.Cost, after, before)
			}
		}
		if granted < 300 {
			t.Errorf("%s: only %d charges", l, granted)
		}
	}
}

// TestForceIsBounded: however much is forced, the debt is at most one capacity.
func TestForceIsBounded(t *testing.T) {
	level := func(k subject, now int64) int64 {
		switch k := k.(type) {
		case *bucketKey:
			return (k.s.Drained - now) / k.law.Em
		case *counterKey:
			s, _ := k.law.advance(k.s, k.span(now), now)
			return s.Count
		case *slidingKey:
			v := k.law.advance(k.s, now)
			return k.law.used(v)
		case *logKey:
			return k.r.Used()
		case *partsKey:
			part, off := k.law.advance(k.r, now)
			return k.law.used(k.r, part, off)
		}
		return -1
	}
	for _, l := range everyLaw() {
		if l.Algorithm == tidegate.Concurrency {
			continue // a slot is held or not
		}
		for seed := range uint64(500) {
			k, now := busy(t, l, seed)
			for i, n := range []int64{1, 1, 2, 3, math.MaxInt64, 1, math.MaxInt64} {
				now += int64(i%2) * second
				before := level(k, now)
				if k.force(now, n); level(k, now) > 2*l.Capacity() {
					t.Fatalf("%s seed %d: owes %d after %d were forced", l, seed, level(k, now), n)
				}
				if want := min(before+n, 2*l.Capacity()); n < 9 && i%2 == 0 && level(k, now) < want {
					t.Fatalf("%s seed %d: owes %d after %d were forced on %d", l, seed, level(k, now), n, before)
				}
			}
			if v, _ := k.take(now, Ask{Cost: 1, Copies: 1}); v.Granted > 0 || v.Remaining != 0 {
				t.Fatalf("%s seed %d: in debt, yet %+v", l, seed, v)
			}
		}
	}
}

// TestCountRejected: with it, a client that keeps on at twice the limit stays
// blocked; without, refusals cost nothing and every window is used to the full.
func TestCountRejected(t *testing.T) {
	f := func(reject bool, want int64) {
		t.Helper()
		k := newSubject(t, tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 10, Period: time.Second, CountRejected: reject}))
		var n int64
		for i := range int64(200) {
			v, _ := k.take(epoch+i*second/20, Ask{Cost: 1, Copies: 1})
			n += v.Granted
		}
		if n != want {
			t.Errorf("count_rejected %v: %d of 200 passed in 10 s at 20/s, want %d", reject, n, want)
		}
	}
	f(false, 100)
	f(true, 10)
}

// TestOverrideForgetsNothing: a refusal under a low override keeps as many
// stamps as there were, for the limit that comes back.
func TestOverrideForgetsNothing(t *testing.T) {
	limit := func(events int64) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: events, Period: time.Minute, CountRejected: true})
	}
	k := newSubject(t, limit(10))
	k.take(epoch, Ask{Cost: 8, Copies: 1})
	k.change(limit(2))
	k.take(epoch+second, Ask{Cost: 1, Copies: 1})
	k.change(limit(10))
	if v, _ := k.take(epoch+second, Ask{Copies: 1}); v.Remaining != 2 {
		t.Errorf("%+v: want 2 remaining", v)
	}
}

// TestReject stamps what another limit refused.
func TestReject(t *testing.T) {
	law := NewLogLaw(tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 3, Period: time.Minute, CountRejected: true}))
	r := NewRecord(RunsHeader + law.MaxEntries())
	f := func(after, cost, copies, used int64) {
		t.Helper()
		if !law.Reject(r, epoch+after, Ask{Cost: cost, Copies: copies}) || r.Used() != used {
			t.Errorf("%d used, want %d", r.Used(), used)
		}
	}
	f(0, 1, 1, 1)
	f(second, 4, 1, 1) // never fits: not stamped
	f(second, 0, 1, 1)
	f(second, 1, 1, 2)
	f(2*second, 1, 9, 3)
	if v, _ := law.Take(r, epoch+2*second, Ask{Copies: 1}); v.Retry() != minute {
		t.Errorf("%+v: all three stamps should be the latest", v)
	}
}

// TestReturnsLeaveNoTrace: taking and returning over and over needs no larger
// record than the law says.
func TestReturnsLeaveNoTrace(t *testing.T) {
	law := NewLogLaw(tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 3, Period: time.Minute}))
	r := NewRecord(RunsHeader + law.MaxEntries())
	law.Take(r, epoch, Ask{Cost: 1, Copies: 1})
	for i := range int64(1000) {
		now := epoch + (i+1)*µ
		if _, ok := law.Take(r, now, Ask{Cost: 1, Copies: 1}); !ok {
			t.Fatalf("no room after %d takes", i)
		}
		law.Return(r, now, now-µ, 1) // the one before
		if i == 0 {
			law.Force(r, now, 1)
		}
	}
}

// TestReturnsLandWhereCharged: while the charge still counts, and not after.
func TestReturnsLandWhereCharged(t *testing.T) {
	f := func(s tidegate.Spec, lands, gone int64) {
		t.Helper()
		for after, want := range map[int64]int64{lands: 1, gone: 0} {
			l := tidegate.MustLimit(s)
			k := newSubject(t, l)
			start := epoch - epoch%day + second
			_, at := k.take(start, one)
			used := start + after // by another, so that there is something to return
			k.take(used, Ask{Cost: l.Events, Copies: 1})
			k.take(used, Ask{Cost: l.Events - 1, Copies: 1})
			before, _ := k.take(used, Ask{Copies: 1})
			k.giveBack(used, at, 1)
			if v, _ := k.take(used, Ask{Copies: 1}); v.Remaining-before.Remaining != want {
				t.Errorf("%s: returned %d ticks after its charge, %d remaining became %d", l, after, before.Remaining, v.Remaining)
			}
		}
	}
	f(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 4, Period: time.Minute}, minute, minute+1)
	f(tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 4, Period: time.Minute}, 59*second-1, 59*second)
	f(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 4, Period: time.Minute}, minute-1, minute)
	f(tidegate.Spec{Algorithm: tidegate.SlidingWindow, Events: 4, Period: time.Minute}, 59*second, 119*second)
	f(tidegate.Spec{Algorithm: tidegate.SubWindows, Events: 4, Period: time.Minute, Parts: 6}, 59*second, 69*second)
	f(tidegate.Spec{Algorithm: tidegate.Quota, Events: 4, Calendar: tidegate.Day}, day-second-1, day-second)
	f(tidegate.Spec{Algorithm: tidegate.Concurrency, Events: 4, Period: time.Minute}, minute-1, minute)
}
