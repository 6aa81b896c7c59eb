package lint

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// A limit that another one keeps from being reached changes no decision, however
// the requests come.
func TestKeepsFrom(t *testing.T) {
	kept := make(map[tidegate.Algorithm]int) // by the one that is never reached
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		a, b := randomSpec(r, "a"), randomSpec(r, "b")
		if !makesRedundant(a, b) {
			continue
		}
		kept[b.Algorithm]++
		if seed%thin != 0 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			both := tidegate.New(memory.New(), tidegate.MustLimit(a), tidegate.MustLimit(b))
			alone := tidegate.New(memory.New(), tidegate.MustLimit(a))
			for range 300 {
				n := 1 + r.Int64N(max(1, a.Events/2))
				with, without := both.AllowN(context.Background(), "k", n), alone.AllowN(context.Background(), "k", n)
				if with.OK != without.OK {
					t.Fatalf("seed %d: %v refuses what %v lets through, at %v", seed, tidegate.MustLimit(b), tidegate.MustLimit(a), time.Now())
				}
				if r.IntN(3) == 0 {
					span := max(a.Period, time.Second)
					if r.IntN(4) == 0 {
						span = max(b.Period, time.Hour)
					}
					time.Sleep(time.Duration(r.Int64N(int64(span))).Round(time.Microsecond))
				}
			}
		})
	}
	for _, algorithm := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Quota} {
		if kept[algorithm] < 10 {
			t.Errorf("only %d limits with %s were never reached", kept[algorithm], algorithm)
		}
	}
}

func randomSpec(r *rand.Rand, name string) tidegate.Spec {
	periods := []time.Duration{time.Second, 2 * time.Second, 7 * time.Second, time.Minute, time.Hour, 24 * time.Hour}
	s := tidegate.Spec{Name: name, Period: periods[r.IntN(len(periods))], Events: 1 + r.Int64N(20)}
	if r.IntN(2) == 0 {
		s.Events *= 1 + r.Int64N(100)
	}
	switch r.IntN(7) {
	case 0:
		s.Algorithm, s.Burst = tidegate.TokenBucket, 1+r.Int64N(2*s.Events)
	case 1:
		s.Algorithm = tidegate.FixedWindow
	case 2, 3:
		s.Algorithm = tidegate.SlidingLog
	case 4:
		s.Algorithm = tidegate.SlidingWindow
	case 5:
		s.Algorithm, s.Parts, s.Ceiling = tidegate.SubWindows, 1+r.IntN(60), r.IntN(2) == 0
	default:
		s.Algorithm, s.Period, s.Calendar = tidegate.Quota, 0, tidegate.Day
	}
	return s
}
