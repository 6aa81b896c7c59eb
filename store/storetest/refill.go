package storetest

import (
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// textbookBucket is a token bucket as it is drawn: a refiller fills it up at the start of every
// minute, and each event takes a token.
type textbookBucket struct {
	capacity, tokens int64
	refilled         time.Time
}

func (b *textbookBucket) take(now time.Time, cost int64) (ok bool, retry time.Duration) {
	if begin := now.Truncate(minute); begin.After(b.refilled) {
		b.refilled, b.tokens = begin, b.capacity
	}
	if cost > b.tokens {
		return false, b.refilled.Add(minute).Sub(now)
	}
	b.tokens -= cost
	return true, 0
}

// testRefilledAtOnce: a fixed window is a token bucket that gets its events at once, at the start
// of every period, which is what `refill: at_once` makes of it.
func testRefilledAtOnce(s *subject) {
	r := rand.New(rand.NewPCG(4, 60))
	for _, events := range []int64{1, 4, 60} {
		l := tidegate.MustLimit(tidegate.Spec{Name: "lumps", Events: events, Period: minute, Algorithm: tidegate.FixedWindow})
		for _, key := range []string{"ann", "bob"} {
			c := check(l, key+" "+l.String(), 1)
			b := textbookBucket{capacity: events}
			for range lessIf(s.brief, 300, 100) {
				s.clock.add(time.Duration(r.Int64N(int64(40*time.Second) / events)).Truncate(time.Microsecond))
				c.Cost = 1 + r.Int64N(events+1)/2
				ok, retry := b.take(s.clock.now(), c.Cost)
				if d := s.takeN(1, c); d.OK != ok || d.RetryAfter != retry || d.Remaining != b.tokens {
					s.Fatalf("Take(%s, %d) at %s = %s, want %t, remaining %d, retry %s",
						l, c.Cost, s.clock.now().Format("15:04:05.999999"), show(d), ok, b.tokens, retry)
				}
			}
		}
	}
}
