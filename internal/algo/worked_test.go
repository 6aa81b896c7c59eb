package algo

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// clockTime is an instant of the test day, written "1:00:30".
func clockTime(t *testing.T, s string) int64 {
	t.Helper()
	at, err := time.Parse("15:04:05.999", s)
	if err != nil {
		t.Fatal(err)
	}
	return Instant(time.Date(2026, 3, 3, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC))
}

var one = Ask{Cost: 1, Copies: 1}

// passes asks once and says whether it passed.
func passes(k subject, now int64, a Ask) bool {
	v, _ := k.take(now, a)
	return v.Granted > 0
}

// drain asks until it is refused.
func drain(k subject, now int64) (n int64) {
	for passes(k, now, one) {
		n++
	}
	return n
}

func key(t *testing.T, s tidegate.Spec) subject {
	t.Helper()
	return newSubject(t, tidegate.MustLimit(s))
}

// Capacity 4, 4/min: 4 pass at once, the 5th waits 15 s; with one token left
// and two that ask, exactly one passes.
func TestWorkedTokenBucket(t *testing.T) {
	k := key(t, tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 4, Period: time.Minute})
	if n := drain(k, epoch); n != 4 {
		t.Errorf("%d passed at once, want 4", n)
	}
	if v, _ := k.take(epoch, one); v.Retry() != 15*second || v.Remaining != 0 || v.Reset != minute {
		t.Errorf("the 5th gets %+v, want a retry in 15 s and a reset in 60 s", v)
	}
	if passes(k, epoch+15*second-1, one) || !passes(k, epoch+15*second, one) || passes(k, epoch+15*second, one) {
		t.Error("want exactly one to pass at 15 s, and none a tick earlier")
	}
	if v, _ := k.take(epoch+15*second, Ask{Cost: 1, Copies: 1, MaxWait: 20 * second}); v.Wait() != 15*second {
		t.Errorf("%+v: want a wait of 15 s", v)
	}
}

// Places 5, 1/s: 7 at once leave at 0, 1, 2, 3, 4, 5 s, and one is refused.
func TestWorkedLeakyBucket(t *testing.T) {
	k := key(t, tidegate.Spec{Algorithm: tidegate.LeakyBucket, Events: 1, Period: time.Second, Burst: 5})
	patient := Ask{Cost: 1, Copies: 1, MaxWait: minute}
	for i := range int64(6) {
		if v, _ := k.take(epoch, patient); v.Granted != 1 || v.Wait() != i*second || v.Remaining != 5-i {
			t.Errorf("number %d gets %+v, want to leave after %d s", i, v, i)
		}
	}
	if v, _ := k.take(epoch, patient); v.Granted != 0 || v.Retry() != second {
		t.Errorf("the seventh gets %+v, want to be refused for 1 s", v)
	}
	k = key(t, tidegate.Spec{Algorithm: tidegate.LeakyBucket, Events: 1, Period: time.Second, Burst: 5})
	if v, _ := k.take(epoch, Ask{Cost: 1, Copies: 7, MaxWait: minute}); v.Granted != 6 || v.Wait() != 0 {
		t.Errorf("seven copies get %+v, want 6", v)
	}
	// A slow line is as long as its places: waiting for hours is what it is for.
	k = key(t, tidegate.Spec{Algorithm: tidegate.LeakyBucket, Events: 1, Period: time.Hour, Burst: 5})
	if v, _ := k.take(epoch, Ask{Cost: 1, Copies: 7, MaxWait: Never}); v.Granted != 6 {
		t.Errorf("at one an hour seven copies get %+v, want 6", v)
	}
}

// 3/s; and 5/min lets 10 through in 2:00:30–2:01:30.
func TestWorkedFixedWindow(t *testing.T) {
	k := key(t, tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 3, Period: time.Second})
	for i, want := range []int64{3, 0, 3, 3} {
		if n := drain(k, epoch+[]int64{0, second - 1, second, 5 * second / 2}[i]); n != want {
			t.Errorf("step %d: %d passed, want %d", i, n, want)
		}
	}
	k = key(t, tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 5, Period: time.Minute})
	if n := drain(k, clockTime(t, "2:00:30")); n != 5 {
		t.Errorf("%d passed at 2:00:30, want 5", n)
	}
	if v, _ := k.take(clockTime(t, "2:00:45"), one); v.Retry() != 15*second {
		t.Errorf("at 2:00:45: %+v, want a retry in 15 s", v)
	}
	if n := drain(k, clockTime(t, "2:01:00")); n != 5 {
		t.Errorf("%d passed at 2:01:00, want 5", n)
	}
}

// 2/min: 1:00:01 ok, 1:00:30 ok, 1:00:50 no, 1:01:40 ok. The book's variant,
// which keeps refused stamps, refuses the last.
func TestWorkedSlidingLog(t *testing.T) {
	f := func(reject bool, want ...bool) {
		t.Helper()
		k := key(t, tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 2, Period: time.Minute, CountRejected: reject})
		for i, at := range []string{"1:00:01", "1:00:30", "1:00:50", "1:01:40"} {
			if got := passes(k, clockTime(t, at), one); got != want[i] {
				t.Errorf("count_rejected %v: at %s passed is %v", reject, at, got)
			}
		}
	}
	f(false, true, true, false, true)
	f(true, true, true, false, true)
	// With the refused 1:00:50 kept, 1:00:30 and 1:00:50 fill 1:01:20.
	k := key(t, tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 2, Period: time.Minute, CountRejected: true})
	for _, at := range []string{"1:00:01", "1:00:30", "1:00:50"} {
		k.take(clockTime(t, at), one)
	}
	if v, _ := k.take(clockTime(t, "1:01:20"), Ask{Copies: 1}); v.Granted != 0 || v.Retry() != 10*second {
		t.Errorf("the refused stamp should count until 1:01:30: %+v", v)
	}
}

// 7/min, prev 5, cur 3 at 30 % → 6.5 → 6: passes, the next does not;
// 5/min, prev 4, cur 3 at 50 % → refused; 80·45/60+20 = 80.
func TestWorkedSlidingWindow(t *testing.T) {
	f := func(events, prev, cur int64, at string, used int64) subject {
		t.Helper()
		k := key(t, tidegate.Spec{Algorithm: tidegate.SlidingWindow, Events: events, Period: time.Minute})
		if !passes(k, clockTime(t, "3:00:10"), Ask{Cost: prev, Copies: 1}) {
			t.Errorf("prev %d did not pass", prev)
		}
		k.(*slidingKey).s.Prev, k.(*slidingKey).s.Cur = prev, cur
		k.(*slidingKey).s.Window++
		if v, _ := k.take(clockTime(t, at), Ask{Copies: 1}); v.Remaining != max(0, events-used) {
			t.Errorf("%d/min, prev %d, cur %d at %s: %+v, want %d used", events, prev, cur, at, v, used)
		}
		return k
	}
	k := f(7, 5, 3, "3:01:18", 6)
	if now := clockTime(t, "3:01:18"); !passes(k, now, one) || passes(k, now, one) {
		t.Error("at 6.5 of 7 one passes and the next does not")
	}
	k = f(5, 4, 3, "3:01:30", 5)
	if v, _ := k.take(clockTime(t, "3:01:30"), one); v.Granted != 0 || v.Retry() != µ {
		t.Errorf("%+v: want refused for a unit of time, until 4·overlap is below 2", v)
	}
	f(100, 80, 20, "3:01:15", 80)
}

// 60 s in 6: the error is at most one part. With ceiling it is never over.
func TestWorkedSubWindows(t *testing.T) {
	f := func(ceiling bool, at string, want int64) {
		t.Helper()
		k := key(t, tidegate.Spec{Algorithm: tidegate.SubWindows, Events: 6, Period: time.Minute, Parts: 6, Ceiling: ceiling})
		if n := drain(k, clockTime(t, "4:00:09")); n != 6 {
			t.Errorf("%d passed, want 6", n)
		}
		if n := drain(k, clockTime(t, at)); n != want {
			t.Errorf("ceiling %v: at %s %d passed, want %d", ceiling, at, n, want)
		}
	}
	f(false, "4:00:59.999", 0)
	f(false, "4:01:00", 0)
	f(false, "4:01:05", 3) // half of the part 4:00:00–4:00:10 has left
	f(false, "4:01:10", 6)
	f(true, "4:01:05", 0)
	f(true, "4:01:09.999", 0)
	f(true, "4:01:10", 6)
}

// A crashed holder frees its slot by expiry; a 10-minute stream keeps its slot;
// cancel frees at once.
func TestWorkedConcurrency(t *testing.T) {
	law := NewLeaseLaw(tidegate.Slots(2, 30*time.Second))
	r := NewRecord(maxWords(law))
	crashed, stream := epoch, epoch+1
	take := func(now, at int64) bool {
		v, ok := law.Take(r, now, at, one)
		return ok && v.Granted == 1
	}
	if !take(epoch, crashed) || !take(epoch, stream) || take(epoch, epoch+2) {
		t.Fatal("want two slots, and no third")
	}
	now := epoch
	for now < epoch+10*minute {
		now += 10 * second
		if !law.Renew(r, now, stream) {
			t.Fatalf("the stream lost its slot after %d s", (now-epoch)/second)
		}
		if now == epoch+20*second {
			if v, _ := law.Take(r, now, now, one); v.Granted != 0 || v.Retry() != 10*second {
				t.Errorf("%+v: want the crashed holder's slot in 10 s", v)
			}
		}
	}
	if law.Renew(r, now, crashed) {
		t.Error("a lease that ran out was renewed")
	}
	if !take(now, now) || take(now, now+1) {
		t.Error("want the crashed holder's slot, and the stream's not")
	}
	law.Release(r, now, stream, 1)
	if !take(now, now+2) {
		t.Error("cancel did not free the slot at once")
	}
}

// Exhausted at 10/s and lowered to 10/min admits none extra; raised, it does not
// block for 59 s.
func TestWorkedChangedLimit(t *testing.T) {
	fast := tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 10, Period: time.Second}
	slow := tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 10, Period: time.Minute}

	k := key(t, fast)
	drain(k, epoch)
	k.change(tidegate.MustLimit(slow))
	if v, _ := k.take(epoch, one); v.Granted != 0 || v.Retry() != 6*second {
		t.Errorf("lowered: %+v, want refused for 6 s", v)
	}
	var extra int64
	for now := epoch; now < epoch+minute; now += second / 10 {
		extra += drain(k, now)
	}
	if extra != 9 {
		t.Errorf("lowered: %d passed in the minute after, want one each 6 s", extra)
	}

	k = key(t, slow)
	drain(k, epoch)
	k.change(tidegate.MustLimit(fast))
	if v, _ := k.take(epoch, one); v.Granted != 0 || v.Retry() != second/10 {
		t.Errorf("raised: %+v, want refused for 0.1 s", v)
	}
	if !passes(k, epoch+second/10, one) {
		t.Error("raised: still blocked after 0.1 s")
	}

	// There and back in one instant refills nobody.
	k = key(t, fast)
	drain(k, epoch)
	k.change(tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 5, Period: time.Second}))
	passes(k, epoch, one)
	k.change(tidegate.MustLimit(fast))
	if n := drain(k, epoch); n != 0 {
		t.Errorf("lowered and raised again: %d extra", n)
	}
}

// For counted laws a change keeps counts: raised by 5, 5 more pass.
func TestWorkedChangedCount(t *testing.T) {
	for _, s := range []tidegate.Spec{
		{Algorithm: tidegate.FixedWindow, Period: time.Minute},
		{Algorithm: tidegate.SlidingLog, Period: time.Minute},
		{Algorithm: tidegate.SlidingWindow, Period: time.Minute},
		{Algorithm: tidegate.SubWindows, Period: time.Minute},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Day},
		{Algorithm: tidegate.Concurrency, Period: time.Minute},
	} {
		f := func(k subject, events, want int64) {
			t.Helper()
			s.Events = events
			k.change(tidegate.MustLimit(s))
			if n := drain(k, epoch); n != want {
				t.Errorf("%s to %d: %d passed, want %d", s.Algorithm, events, n, want)
			}
		}
		s.Events = 10
		k := key(t, s)
		drain(k, epoch)
		f(k, 5, 0)
		f(k, 10, 0)
		f(k, 15, 5)
	}
}

// A cost above the capacity is refused at once and changes nothing.
func TestWorkedNever(t *testing.T) {
	for _, l := range everyLaw() {
		k := newSubject(t, l)
		v, _ := k.take(epoch, Ask{Cost: 1_000_000, Copies: 1, MaxWait: hour})
		if want := l.Capacity(); !v.Never() || v.Retry() != 0 || v.Granted != 0 || !k.idle(epoch) {
			t.Errorf("%s (capacity %d): %+v", l, want, v)
		}
		if v, _ := k.take(epoch, Ask{Cost: l.Capacity(), Copies: 1}); v.Granted != 1 {
			t.Errorf("%s: after a refused million, its capacity gets %+v", l, v)
		}
	}
}
