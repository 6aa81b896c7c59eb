package algo

import (
	"math"
	"math/big"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// TestExtremes asks the largest laws the most absurd things, at both ends of
// time: nothing panics or wraps, and nothing passes that cannot fit.
func TestExtremes(t *testing.T) {
	year := tidegate.MaxPeriod
	var limits []*tidegate.Limit
	for _, s := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Events: tidegate.MaxCount, Period: year, Burst: tidegate.MaxCount - 1},
		{Algorithm: tidegate.TokenBucket, Events: 1_000_000, Period: time.Second, Burst: tidegate.MaxCount},
		{Algorithm: tidegate.TokenBucket, Events: 27, Period: year, Burst: 1},
		{Algorithm: tidegate.LeakyBucket, Events: 1000, Period: time.Millisecond, Burst: tidegate.MaxCount - 1},
		{Algorithm: tidegate.LeakyBucket, Events: 27, Period: year, Burst: 26},
		{Algorithm: tidegate.FixedWindow, Events: tidegate.MaxCount, Period: year},
		{Algorithm: tidegate.FixedWindow, Events: 1, Period: time.Millisecond},
		{Algorithm: tidegate.Quota, Events: tidegate.MaxCount, Calendar: tidegate.Year, Anchor: 31},
		{Algorithm: tidegate.SlidingLog, Events: tidegate.MaxLogEvents, Period: year},
		{Algorithm: tidegate.SlidingLog, Events: 3, Period: year, CountRejected: true},
		{Algorithm: tidegate.SlidingWindow, Events: tidegate.MaxCount, Period: year},
		{Algorithm: tidegate.SubWindows, Events: tidegate.MaxCount, Period: year, Parts: 1},
		{Algorithm: tidegate.SubWindows, Events: tidegate.MaxCount, Period: 10 * time.Millisecond, Parts: 1000},
		{Algorithm: tidegate.Concurrency, Events: 3, Period: year},
	} {
		limits = append(limits, tidegate.MustLimit(s))
	}
	for _, l := range limits {
		for seed := range uint64(300) {
			extremeTraffic(t, l, seed)
		}
	}
}

func extremeTraffic(t *testing.T, l *tidegate.Limit, seed uint64) {
	t.Helper()
	in := randomTape(seed, 200)
	k := newSubject(t, l)
	c := l.Capacity()
	for !in.done() {
		now := in.pick(0, 1, epoch, epoch+1, epoch+second, LastInstant/2, LastInstant-1, LastInstant)
		a := Ask{
			Cost:    in.pick(0, 1, c, c+1, c/2, math.MaxInt64, math.MaxInt64-1, -1, math.MinInt64),
			Copies:  in.pick(1, 1, 2, math.MaxInt64),
			MaxWait: in.pick(0, 0, 1, hour, math.MaxInt64, -1, math.MinInt64),
		}
		if in.upTo(4) == 0 {
			k.force(now, in.pick(0, 1, c, math.MaxInt64))
		}
		if in.upTo(4) == 0 {
			at := in.pick(0, epoch, LastInstant, math.MaxInt64, math.MinInt64, now)
			k.giveBack(now, at, in.pick(0, 1, c, math.MaxInt64))
		}
		v, _ := k.take(now, a)
		switch {
		case v.Granted < 0 || v.Remaining < 0 || v.Remaining > c,
			v.Retry() < 0 || v.Reset < 0 || v.Wait() < 0,
			v.Granted > a.Copies,
			v.Never() != (a.Cost > c),
			v.Never() && v.Granted > 0,
			a.Cost > 0 && a.MaxWait <= 0 && v.Granted > c/a.Cost,
			v.Granted == 0 && !v.Never() && v.Retry() == 0:
			t.Fatalf("%s seed %d: at %d %+v gets %+v", l, seed, now, a, v)
		}
		if v.Granted == 0 && !v.Never() {
			if again, _ := k.clone().take(now+v.Retry(), a); again.Granted == 0 {
				t.Fatalf("%s seed %d: at %d %+v gets %+v, and then %+v", l, seed, now, a, v, again)
			}
		}
	}
}

// TestTicks: conversions hold at the ends of what they take.
func TestTicks(t *testing.T) {
	f := func(d time.Duration, want int64) {
		t.Helper()
		if got := Ticks(d); got != want {
			t.Errorf("Ticks(%d) = %d, want %d", d, got, want)
		}
	}
	f(0, 0)
	f(1, 1)
	f(999, 1022)
	f(time.Microsecond, 1024)
	f(time.Second+1, 1024*1_000_000+1)
	f(math.MaxInt64, Never)
	f(-1, 0)
	f(math.MinInt64, 0)

	g := func(ticks int64, want time.Duration) {
		t.Helper()
		if got := Duration(ticks); got != want {
			t.Errorf("Duration(%d) = %d, want %d", ticks, got, want)
		}
	}
	g(0, 0)
	g(-5, 0)
	g(1, 1) // rounded up: by then the tick has passed
	g(1023, 1000)
	g(1024, 1000)
	g(1025, 1001)
	g(Never, math.MaxInt64/1024*1000+999+1)

	h := func(at time.Time, want int64) {
		t.Helper()
		if got := Instant(at); got != want {
			t.Errorf("Instant(%s) = %d, want %d", at, got, want)
		}
	}
	h(time.Unix(0, 0), 0)
	h(time.Unix(1, 1500), 1024*1_000_001+512)
	h(time.Time{}, 0)
	h(time.Unix(-1, 0), 0)
	h(time.Date(2250, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2250, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()*1024)
	h(time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC), LastInstant)
	h(time.Unix(math.MaxInt64/2, 0), LastInstant)
}

// TestDurationOutlastsTicks: whoever sleeps for Duration(n) wakes no earlier than n ticks.
func TestDurationOutlastsTicks(t *testing.T) {
	in := randomTape(1, 100_000)
	for !in.done() {
		n := in.upTo(1 << 55)
		if d := Duration(n); Ticks(d) < n-1 || Ticks(d+1) < n {
			t.Fatalf("%d ticks become %d ns, which are %d ticks", n, d, Ticks(d))
		}
	}
}

// TestLoweredFromHuge: counts made under the highest limit are weighed in a
// window that a low limit divides finely, without wrapping.
func TestLoweredFromHuge(t *testing.T) {
	for _, alg := range []tidegate.Algorithm{tidegate.SlidingWindow, tidegate.SubWindows} {
		spec := tidegate.Spec{Algorithm: alg, Events: tidegate.MaxCount, Period: tidegate.MaxPeriod}
		if alg == tidegate.SubWindows {
			spec.Parts = 1
		}
		period := Ticks(spec.Period)
		start := 50 * period
		d := newDuel(t, tidegate.MustLimit(spec), start)
		d.take(Ask{Cost: tidegate.MaxCount, Copies: 1})
		spec.Events = 1
		d.change(tidegate.MustLimit(spec))
		for i := range int64(16) {
			d.pass(start + period + i*period/16 - d.now)
			d.take(Ask{Cost: 1, Copies: 1})
		}
	}
}

// TestMulDivCeil compares with big integers, saturation included.
func TestMulDivCeil(t *testing.T) {
	in := randomTape(5, 200_000)
	saturated := 0
	for !in.done() {
		a, b, c := in.upTo(math.MaxInt64)>>in.upTo(60), in.upTo(math.MaxInt64)>>in.upTo(60), 1+in.upTo(math.MaxInt64-1)>>in.upTo(60)
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want.Add(want, big.NewInt(c-1)).Div(want, big.NewInt(c))
		if !want.IsInt64() {
			want.SetInt64(Never)
			saturated++
		}
		if got := mulDivCeil(a, b, c); got != want.Int64() {
			t.Fatalf("%d·%d/%d is %d, want %s", a, b, c, got, want)
		}
	}
	if saturated < 100 {
		t.Errorf("only %d saturated", saturated)
	}
}

// TestLoweredFromFast: the burst of the fastest bucket is beyond all time under
// the slowest. It drains at its own pace; then the slow one lets a single event
// pass, and the next in 14 days.
func TestLoweredFromFast(t *testing.T) {
	k := key(t, tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 1_000_000, Period: time.Second, Burst: tidegate.MaxCount})
	k.take(epoch, Ask{Cost: tidegate.MaxCount, Copies: 1})
	k.change(tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 1, Period: 14 * 24 * time.Hour}))
	drained := int64(tidegate.MaxCount) * Micro
	if v, _ := k.take(epoch, one); v.Granted != 0 || v.Retry() != drained {
		t.Errorf("%+v: want refused for %d ticks", v, drained)
	}
	if v, _ := k.take(epoch+drained, one); v.Granted != 1 {
		t.Errorf("%+v: want one to pass", v)
	}
	if v, _ := k.take(epoch+drained, one); v.Granted != 0 || v.Retry() != 14*day {
		t.Errorf("%+v: want refused for 14 days", v)
	}
}
