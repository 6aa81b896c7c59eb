package algo

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// passed is what a key was granted: cost events at an instant.
type passed struct{ at, cost int64 }

// traffic asks for a key of l at random instants, around the limit and in
// bursts, and returns what passed.
func traffic(t *testing.T, l *tidegate.Limit, seed uint64) []passed {
	t.Helper()
	in := randomTape(seed, 4000)
	k := newSubject(t, l)
	now := epoch + in.upTo(day)
	var all []passed
	var v Verdict
	for !in.done() {
		now += in.step(Ticks(l.Period), v)
		a := Ask{Cost: 1 + in.upTo(2), Copies: 1 + in.upTo(2)}
		if v, _ = k.take(now, a); v.Granted > 0 {
			all = append(all, passed{now, v.Granted * a.Cost})
		}
	}
	return all
}

// specs are limits of an algorithm that random traffic runs into.
func specs(alg tidegate.Algorithm, each func(tidegate.Spec)) {
	for i, events := range []int64{1, 2, 3, 7, 10, 60} {
		for j, period := range []time.Duration{time.Millisecond, 1234567 * time.Microsecond, time.Minute, 7 * 24 * time.Hour} {
			if (4*i+j)%thin != 0 {
				continue
			}
			each(tidegate.Spec{Algorithm: alg, Events: events, Period: period})
		}
	}
}

// stretches calls over with what passed in each stretch between two grants.
func stretches(all []passed, over func(from, to, sum int64)) {
	for i := range all {
		var sum int64
		for _, p := range all[i:] {
			sum += p.cost
			over(all[i].at, p.at, sum)
		}
	}
}

// TestTokenBucketBound: never more than burst + rate·W, for every two instants.
func TestTokenBucketBound(t *testing.T) {
	specs(tidegate.TokenBucket, func(s tidegate.Spec) {
		for seed := range uint64(12) {
			s.Burst = []int64{0, 1, 3, 20}[seed%4]
			l := tidegate.MustLimit(s)
			em := emission(l)
			stretches(traffic(t, l, seed), func(from, to, sum int64) {
				if most := l.Burst + (to-from)/em; sum > most {
					t.Fatalf("%s seed %d: %d passed in %d ticks, want at most %d", l, seed, sum, to-from, most)
				}
			})
		}
	})
}

// TestWindowBounds: how much passes in any window of the length given.
func TestWindowBounds(t *testing.T) {
	testdep.SkipUnderRace(t)
	f := func(alg tidegate.Algorithm, adapt func(*tidegate.Spec), window func(*tidegate.Limit) int64) {
		t.Helper()
		specs(alg, func(s tidegate.Spec) {
			adapt(&s)
			for seed := range uint64(8) {
				l := tidegate.MustLimit(s)
				length := window(l)
				stretches(traffic(t, l, seed), func(from, to, sum int64) {
					if to/Micro-from/Micro < length && sum > l.Events {
						t.Fatalf("%s seed %d: %d passed in %d µs", l, seed, sum, to/Micro-from/Micro)
					}
				})
			}
		})
	}
	period := func(l *tidegate.Limit) int64 { return l.Period.Microseconds() }
	f(tidegate.SlidingLog, func(*tidegate.Spec) {}, period)
	f(tidegate.SubWindows, func(s *tidegate.Spec) { s.Parts, s.Ceiling = 6, true }, period)
	f(tidegate.SubWindows, func(s *tidegate.Spec) { s.Parts, s.Ceiling = 1, true }, period)
	f(tidegate.SlidingWindow, func(s *tidegate.Spec) { s.Ceiling = true }, period)
	// Interpolated, the error is at most one part.
	f(tidegate.SubWindows, func(s *tidegate.Spec) { s.Parts = 6 }, func(l *tidegate.Limit) int64 { return period(l) * 5 / 6 })
}

// TestAlignedBounds: never more than the limit in a window of the wall clock.
func TestAlignedBounds(t *testing.T) {
	for _, alg := range []tidegate.Algorithm{tidegate.FixedWindow, tidegate.SlidingWindow} {
		specs(alg, func(s tidegate.Spec) {
			for seed := range uint64(8) {
				l := tidegate.MustLimit(s)
				sums := map[int64]int64{}
				for _, p := range traffic(t, l, seed) {
					window := SpanAt(l, p.at).Start
					if alg == tidegate.SlidingWindow {
						window = p.at / Micro / l.Period.Microseconds()
					}
					if sums[window] += p.cost; sums[window] > l.Events {
						t.Fatalf("%s seed %d: %d passed in one window", l, seed, sums[window])
					}
				}
			}
		})
	}
}

// TestConcurrencyBound: never more than the slots at any instant.
func TestConcurrencyBound(t *testing.T) {
	specs(tidegate.Concurrency, func(s tidegate.Spec) {
		for seed := range uint64(8) {
			l := tidegate.MustLimit(s)
			stretches(traffic(t, l, seed), func(from, to, sum int64) {
				if to-from < Ticks(l.Period) && sum > l.Events {
					t.Fatalf("%s seed %d: %d held at once", l, seed, sum)
				}
			})
		}
	})
}

// TestLaggingClock lets two clocks ask in turn, one of them some µs behind: at
// a window's roll nothing is lost, and no window gets more than its limit.
func TestLaggingClock(t *testing.T) {
	f := func(s tidegate.Spec, same func(l *tidegate.Limit, a, b int64) bool) {
		t.Helper()
		l := tidegate.MustLimit(s)
		for seed := range uint64(150 / thin) {
			in := randomTape(seed, 2000)
			k := newSubject(t, l)
			now, instant := epoch+in.upTo(second), int64(0)
			lag := (1 + in.upTo(500)) * µ
			var all []passed
			for !in.done() {
				now += in.upTo(Ticks(l.Period) / 8)
				at := now
				if in.flag() {
					at -= lag
				}
				if v, _ := k.take(at, Ask{Cost: 1, Copies: 1}); v.Granted > 0 {
					instant = max(instant, at) // it was decided as at the state's instant
					all = append(all, passed{instant, 1})
				}
			}
			stretches(all, func(from, to, sum int64) {
				if same(l, from, to) && sum > l.Events {
					t.Fatalf("%s seed %d: %d passed in one window", l, seed, sum)
				}
			})
		}
	}
	aligned := func(l *tidegate.Limit, a, b int64) bool {
		return a/Micro/l.Period.Microseconds() == b/Micro/l.Period.Microseconds()
	}
	sliding := func(l *tidegate.Limit, a, b int64) bool { return b/Micro-a/Micro < l.Period.Microseconds() }
	for _, period := range []time.Duration{time.Millisecond, time.Second} {
		f(tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 5, Period: period}, aligned)
		f(tidegate.Spec{Algorithm: tidegate.SlidingWindow, Events: 5, Period: period}, aligned)
		f(tidegate.Spec{Algorithm: tidegate.SlidingWindow, Events: 5, Period: period, Ceiling: true}, sliding)
		f(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 5, Period: period}, sliding)
		f(tidegate.Spec{Algorithm: tidegate.SubWindows, Events: 5, Period: period, Parts: 6, Ceiling: true}, sliding)
	}
}
