package tidegate_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// Thousands a second for one key are limited like any other rate.
func TestTrap16FastRatesAreLimited(t *testing.T) {
	for _, perSecond := range []int64{1_000, 1_500, 10_000, 60_000, 1_000_000} {
		for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows} {
			synctest.Test(t, func(t *testing.T) {
				l := tidegate.MustLimit(tidegate.Spec{Events: perSecond, Period: time.Second, Algorithm: a})
				store := memory.New()
				checks := []tidegate.Check{{Key: "alice", Limit: l, Cost: 1}}
				passed := int64(0)
				for range 1000 { // 10 s, asked every 10 ms for four times the rate
					d, err := store.Take(t.Context(), checks, int(perSecond/25))
					if err != nil {
						t.Fatal(err)
					}
					passed += d.Granted
					time.Sleep(10 * time.Millisecond)
				}
				least, most := perSecond*10*99/100, perSecond*10
				switch a {
				case tidegate.TokenBucket:
					most += perSecond // the burst it starts with
				case tidegate.SubWindows:
					most += perSecond/tidegate.DefaultParts + 1 // wrong by a part at most
				}
				if passed < least || passed > most {
					t.Errorf("%s: %d passed in 10 s, want %d to %d", l, passed, least, most)
				}
			})
		}
	}
}

// FuzzSpec: whatever is asked for is either an error, or a limit that can be
// asked about, with answers that make sense. Nothing panics or hangs.
func FuzzSpec(f *testing.F) {
	f.Add(int64(0), int64(0), uint8(1), int64(0), 0, uint8(0), int64(1), "")
	f.Add(int64(5), int64(time.Minute), uint8(200), int64(3), 6, uint8(7), int64(1), "Mars")
	f.Add(int64(1_000_000), int64(time.Second), uint8(1), int64(1<<28), 0, uint8(0), int64(1<<40), "")
	f.Add(int64(9), int64(0), uint8(8), int64(0), 0, uint8(3), int64(3), "Asia/Seoul")
	f.Add(int64(-1<<63), int64(-1<<63), uint8(2), int64(-1<<63), -1<<31, uint8(255), int64(-1<<63), "\x00")
	f.Fuzz(func(t *testing.T, events, period int64, alg uint8, burst int64, parts int, calendar uint8, cost int64, zone string) {
		l, err := tidegate.NewLimit(tidegate.Spec{
			Events: events, Period: time.Duration(period), Algorithm: tidegate.Algorithm(alg), Burst: burst,
			Parts: parts, Calendar: tidegate.Calendar(calendar), Zone: zone,
		})
		if err != nil {
			return
		}
		lim := tidegate.New(memory.New(), l)
		for i := range 3 {
			d := lim.AllowN(t.Context(), "alice", cost)
			say := fmt.Sprintf("%s, AllowN(%d) number %d: %+v", l, cost, i, d)
			if d.Err != nil || d.Remaining < 0 || d.Remaining > l.Capacity() || d.RetryAfter < 0 || d.ResetAfter < 0 || d.Wait != 0 {
				t.Error(say)
			}
			if d.Never != (cost > l.Capacity()) || d.OK && d.RetryAfter != 0 || !d.OK && !d.Never && d.RetryAfter == 0 {
				t.Error(say)
			}
		}
	})
}
