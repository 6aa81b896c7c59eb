package algo

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// stagger lets the clock jump both ways. There is no oracle for that; what must
// hold is that a step back never refills, that verdicts stay true to what the
// law then does, and that nobody is blocked for more than a period longer.
func (d *duel) stagger(t *tape, period, em int64) {
	d.t.Helper()
	if d.limit.Algorithm == tidegate.TokenBucket || d.limit.Algorithm == tidegate.LeakyBucket {
		period = NewBucketLaw(d.limit).Tau
	}
	for range 48 {
		if t.done() {
			return
		}
		if t.byte()%3 == 0 {
			d.stepBack(mul(t.step(period, d.last), t.pick(1, 1, 1, 7, 1000)))
		} else {
			d.pass(t.step(period, d.last))
		}
		switch t.byte() % 8 {
		case 0:
			if len(d.receipts) > 0 {
				r := d.receipts[int(t.byte())%len(d.receipts)]
				d.note("give back %d taken at +%d", r.n, r.at-epoch)
				d.law.giveBack(d.now, r.at, r.n)
			}
		default:
			a := t.ask(d.limit.Capacity(), em)
			a.MaxWait = 0
			d.takeAlone(a, period)
		}
	}
}

func (d *duel) stepBack(by int64) {
	d.t.Helper()
	peek := Ask{Copies: 1}
	before, _ := d.law.clone().take(d.now, peek)
	d.now = max(0, d.now-min(by, d.now))
	after, _ := d.law.clone().take(d.now, peek)
	d.note("the clock is set back by %d: %+v becomes %+v", by, before, after)
	if after.Remaining > before.Remaining {
		d.fail("a step back refilled")
	}
}

// takeAlone checks a verdict against what the law itself does later.
func (d *duel) takeAlone(a Ask, period int64) {
	d.t.Helper()
	fits := d.law.fit(d.now, a)
	v, at := d.law.take(d.now, a)
	d.note("take %+v: %+v", a, v)
	d.last = v
	if v.Granted != fits || v.Remaining < 0 || v.Remaining > d.limit.Capacity() || v.Wait() != 0 {
		d.fail("verdict %+v, fit %d", v, fits)
	}
	if v.Granted > 0 && a.Cost > 0 {
		d.receipts = append(d.receipts, receipt{at, a.Cost})
	}
	if longest := d.longestBlock(period); v.Retry() > longest {
		d.fail("blocked for %d: longer than %d", v.Retry(), longest)
	}
	if at := d.now + v.Reset; v.Reset < 0 || !d.law.idle(at) || v.Reset > 0 && d.law.idle(at-1) {
		d.fail("reset %d is not when it is idle", v.Reset)
	}
	if v.Granted > 0 || v.Never() {
		return
	}
	later := func(after int64) Verdict { v, _ := d.law.clone().take(d.now+after, a); return v }
	if v.Retry() <= 0 || later(v.Retry()).Granted == 0 || later(v.Retry()-1).Granted > 0 || later(v.Retry()/2).Granted > 0 {
		d.fail("retry %d: then %+v, a tick before %+v", v.Retry(), later(v.Retry()), later(v.Retry()-1))
	}
}

// longestBlock is the longest that the law ever blocks, and a period more.
func (d *duel) longestBlock(period int64) int64 {
	switch d.limit.Algorithm {
	case tidegate.TokenBucket, tidegate.LeakyBucket:
		if d.law.(*bucketKey).dated {
			return 2 * period // full, and as of when that was written
		}
		return period // full, or full again
	case tidegate.Concurrency:
		return period
	case tidegate.SlidingWindow:
		return 3 * period
	case tidegate.SubWindows:
		law := NewPartsLaw(d.limit)
		return 2 * (law.Parts + 1) * law.Part * Micro
	case tidegate.Quota:
		return 2 * 366 * day
	}
	return 2 * period
}

// TestClockStep sets the clock back by more than a period, then polls: the key
// is not refilled, and is not blocked for more than a period longer, although
// every poll in between is refused.
func TestClockStep(t *testing.T) {
	f := func(spec tidegate.Spec, within int64) {
		t.Helper()
		l := tidegate.MustLimit(spec)
		for _, by := range []int64{2 * minute, hour, day, 400 * day} {
			k := newSubject(t, l)
			a := Ask{Cost: 1, Copies: l.Capacity(), MaxWait: 0}
			if l.Algorithm == tidegate.LeakyBucket {
				a = Ask{Cost: l.Capacity(), Copies: 1}
			}
			if v, _ := k.take(epoch, a); v.Granted != a.Copies {
				t.Fatalf("%s: %+v", l, v)
			}
			start := epoch - by
			var passed int64 = -1
			for now := start; now <= start+within; now += second / 2 {
				if v, _ := k.take(now, Ask{Cost: 1, Copies: 1}); v.Granted > 0 {
					passed = now - start
					break
				}
			}
			if passed <= 0 {
				t.Errorf("%s set back by %d s: passed after %d", l, by/second, passed)
			}
		}
	}
	f(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 4, Period: 60e9}, minute)
	f(tidegate.Spec{Algorithm: tidegate.LeakyBucket, Events: 4, Period: 60e9, Burst: 3}, minute)
	f(tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 4, Period: 60e9}, 2*minute)
	f(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 4, Period: 60e9}, 2*minute)
	f(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 4, Period: 60e9, CountRejected: false}, 2*minute)
	f(tidegate.Spec{Algorithm: tidegate.SlidingWindow, Events: 4, Period: 60e9}, 3*minute)
	f(tidegate.Spec{Algorithm: tidegate.SubWindows, Events: 4, Period: 60e9, Parts: 6}, 2*minute)
	f(tidegate.Spec{Algorithm: tidegate.SubWindows, Events: 4, Period: 60e9, Parts: 6, Ceiling: true}, 2*minute+20*second)
	f(tidegate.Spec{Algorithm: tidegate.Concurrency, Events: 4, Period: 60e9}, minute)
}

// TestStepKeepsWeight: an older count that weighs much does not come to weigh
// little because the clock was set back to late in a window.
func TestStepKeepsWeight(t *testing.T) {
	f := func(s tidegate.Spec, early, late int64) {
		t.Helper()
		l := tidegate.MustLimit(s)
		k := newSubject(t, l)
		start := epoch - epoch%hour // of a window, and of a part
		k.take(start, Ask{Cost: 9, Copies: 1})
		k.take(start+early, one)
		before, _ := k.take(start+early, Ask{Copies: 1})
		for _, by := range []int64{day, 2 * day} {
			after, _ := k.take(start+late-by, Ask{Copies: 1})
			if after.Remaining > before.Remaining {
				t.Errorf("%s: set back by %d days, %d remaining became %d", l, by/day, before.Remaining, after.Remaining)
			}
		}
	}
	f(tidegate.Spec{Algorithm: tidegate.SlidingWindow, Events: 10, Period: time.Minute}, minute+second, minute-second)
	f(tidegate.Spec{Algorithm: tidegate.SubWindows, Events: 10, Period: time.Minute, Parts: 6}, minute+second, minute+9*second)
	f(tidegate.Spec{Algorithm: tidegate.SubWindows, Events: 10, Period: time.Minute, Parts: 1}, minute+second, minute+59*second)
}

// TestZigzag moves the clock back and forth by less than a burst takes: a bucket that
// says when it was written is not refilled by that, however often. Longer steps move it
// with all it owes, and it is as full as before.
func TestZigzag(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.LeakyBucket} {
		l := tidegate.MustLimit(tidegate.Spec{Algorithm: a, Events: 4, Period: time.Minute, Burst: 4})
		law := NewBucketLaw(l)
		ask := Ask{Cost: 1, Copies: l.Capacity(), MaxWait: hour}
		if a == tidegate.TokenBucket {
			ask.MaxWait = 0
		}
		for _, by := range []int64{1, second, 14 * second, law.Tau} {
			s, v := law.Take(Bucket{}, epoch, ask)
			if v.Granted != l.Capacity() {
				t.Fatalf("%s: %+v", l, v)
			}
			for range 50 {
				for _, now := range []int64{epoch - by, epoch} {
					if s, v = law.Take(s, now, ask); v.Granted > 0 {
						t.Fatalf("%s back and forth by %d: %+v", l, by, v)
					}
				}
			}
			late := epoch - by - 2*law.Tau - 1
			if s, v = law.Take(s, late, ask); v.Granted > 0 || v.Reset != law.Tau || s.Written != late {
				t.Errorf("%s back by %d: %+v, %+v, want it to be moved there", l, epoch-late, s, v)
			}
		}
	}
}
