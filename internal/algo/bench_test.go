package algo

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// taker is Take of one law on a state of its own, as tight as a store calls it.
type taker func(now int64, a Ask) Verdict

func takers() map[string]taker {
	limit := func(alg tidegate.Algorithm) *tidegate.Limit {
		s := tidegate.Spec{Algorithm: alg, Events: 1000, Period: time.Second}
		if alg == tidegate.Quota {
			s.Period, s.Calendar, s.Zone = 0, tidegate.Month, "Europe/Berlin"
		}
		if alg == tidegate.LeakyBucket {
			s.Burst = 999
		}
		return tidegate.MustLimit(s)
	}
	counted := func(alg tidegate.Algorithm) taker {
		l := limit(alg)
		law, s, span := NewCounterLaw(l), Counter{}, Span{}
		return func(now int64, a Ask) (v Verdict) {
			if !span.Holds(now / Micro) {
				span = SpanAt(l, now)
			}
			s, v = law.Take(s, span, now, a)
			return v
		}
	}
	bucket := func(alg tidegate.Algorithm) taker {
		law, s := NewBucketLaw(limit(alg)), Bucket{}
		return func(now int64, a Ask) (v Verdict) { s, v = law.Take(s, now, a); return v }
	}
	sliding, slid := NewSlidingLaw(limit(tidegate.SlidingWindow)), Sliding{}
	log := NewLogLaw(limit(tidegate.SlidingLog))
	stamps := NewRecord(RunsHeader + log.MaxEntries())
	parts := NewPartsLaw(limit(tidegate.SubWindows))
	counts := NewRecord(RunsHeader + parts.MaxEntries())
	lease := NewLeaseLaw(limit(tidegate.Concurrency))
	leases := NewRecord(maxWords(lease))
	return map[string]taker{
		"token_bucket":   bucket(tidegate.TokenBucket),
		"leaky_bucket":   bucket(tidegate.LeakyBucket),
		"fixed_window":   counted(tidegate.FixedWindow),
		"quota":          counted(tidegate.Quota),
		"sliding_log":    func(now int64, a Ask) Verdict { v, _ := log.Take(stamps, now, a); return v },
		"sliding_window": func(now int64, a Ask) (v Verdict) { slid, v = sliding.Take(slid, now, a); return v },
		"sub_windows":    func(now int64, a Ask) Verdict { v, _ := parts.Take(counts, now, a); return v },
		"concurrency":    func(now int64, a Ask) Verdict { v, _ := lease.Take(leases, now, now, a); return v },
	}
}

// BenchmarkTake at half the rate (all pass) and at ten times (most are refused).
func BenchmarkTake(b *testing.B) {
	for name, take := range takers() {
		for load, step := range map[string]int64{"admit": 2 * milli, "refuse": milli / 10} {
			b.Run(name+"/"+load, func(b *testing.B) {
				b.ReportAllocs()
				now := epoch
				for b.Loop() {
					now += step
					take(now, one)
				}
			})
		}
	}
}

func BenchmarkSpanAt(b *testing.B) {
	l := tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.Quota, Events: 1, Calendar: tidegate.Month, Zone: "Europe/Berlin"})
	b.ReportAllocs()
	for b.Loop() {
		SpanAt(l, epoch)
	}
}

// TestAllocs: deciding allocates nothing, whichever way it goes.
func TestAllocs(t *testing.T) {
	for name, take := range takers() {
		now, granted, refused := epoch, 0, 0
		n := testing.AllocsPerRun(5000, func() {
			now += milli / 10
			if take(now, one).Granted > 0 {
				granted++
			} else {
				refused++
			}
		})
		if n != 0 || granted < 100 || refused < 100 {
			if name == "quota" && n == 0 && refused > 100 {
				continue
			}
			t.Errorf("%s: %v allocations per Take, %d granted, %d refused", name, n, granted, refused)
		}
	}
}
