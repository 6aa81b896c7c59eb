package algo

import (
	"math"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// rate asks every step ticks for as much as there is and returns what passed
// per second, the first burst left out.
func rate(l *tidegate.Limit, step int64, seconds int64) float64 {
	law := NewBucketLaw(l)
	var s Bucket
	var n int64
	s, _ = law.Take(s, epoch, Ask{Cost: 1, Copies: math.MaxInt64})
	now := epoch
	for now < epoch+seconds*second {
		now += step
		var v Verdict
		s, v = law.Take(s, now, Ask{Cost: 1, Copies: math.MaxInt64})
		n += v.Granted
	}
	return float64(n) * float64(second) / float64(now-epoch)
}

// TestRates: a bucket gives what it promises within 0.1 %, however it is polled:
// fractions of an event are neither lost nor given away.
func TestRates(t *testing.T) {
	testdep.SkipUnderRace(t)
	f := func(events int64, period time.Duration, step, seconds int64) {
		t.Helper()
		burst := max(1, events/10)
		l := tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: events, Period: period, Burst: burst})
		want := float64(events) / period.Seconds()
		got := rate(l, step, seconds)
		if got > want*1.000001 || got < want*0.999-1/float64(seconds) {
			t.Errorf("%s polled every %d ticks gives %.1f/s, want %.1f", l, step, got, want)
		}
	}
	f(60_000, time.Second, µ, 1)
	f(60_000, time.Second, 17*milli, 100)
	f(1_000_000, time.Second, µ, 1)
	f(1_000_000, time.Second, 17*milli, 100)
	f(999_999, time.Second, µ, 1)
	f(999_999, time.Second, 17*milli, 100)
	f(100, time.Second, 17*milli, 100)
	f(100, time.Second, 9*milli+7, 100)
	f(7, time.Minute, 17*milli, 3600)
	f(333_333, time.Second, 3*µ+1, 1)
}

// TestIdleBurst: after idling, a bucket admits its burst and no more.
func TestIdleBurst(t *testing.T) {
	for _, l := range everyLaw() {
		for _, idle := range []int64{0, second, hour, 400 * day} {
			k := newSubject(t, l)
			k.take(epoch, one)
			k.giveBack(epoch, epoch, 1)
			k.take(epoch, one)
			now := epoch + max(idle, 70*day)
			want := l.Capacity()
			a := Ask{Cost: 1, Copies: 100, MaxWait: 0}
			if l.Algorithm == tidegate.LeakyBucket {
				a.MaxWait = hour
			}
			if v, _ := k.take(now, a); v.Granted != want {
				t.Errorf("%s after %d s: %d passed at once, want %d", l, idle/second, v.Granted, want)
			}
			if v, _ := k.take(now, a); v.Granted != 0 {
				t.Errorf("%s after %d s: %d more passed", l, idle/second, v.Granted)
			}
		}
	}
}

// TestEmission: an event takes ⌈period/events⌉ ticks, whatever the numbers.
func TestEmission(t *testing.T) {
	in := randomTape(3, 60_000)
	for !in.done() {
		events, period := in.numbers()
		l, err := tidegate.NewLimit(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: events, Period: period, Burst: 1})
		if err != nil {
			continue
		}
		if law := NewBucketLaw(l); law.Em != emission(l) || law.Tau != law.Em {
			t.Fatalf("%s: %+v, want em %d", l, law, emission(l))
		}
	}
}
