package storetest

import (
	"math"
	"time"

	"tidegate.dev/tidegate"
)

// wantWaits takes one after another at one instant, each to wait as said.
func (s *subject) wantWaits(c tidegate.Check, waits ...time.Duration) (last tidegate.Decision) {
	s.Helper()
	for i, want := range waits {
		last = s.admit(c)
		if last.Wait != want {
			s.Errorf("request %d of key %q = %s, want wait %s", i+1, c.Key, show(last), want)
		}
	}
	return last
}

// turnAfter returns how long after the receipt of a request that waits its turn comes, in
// ticks.
func turnAfter(wait time.Duration) int64 { return int64(wait)/1000*1024 + int64(wait)%1000*1024/1000 }

// after returns r with an instant so many ticks later.
func after(r tidegate.Receipt, ticks int64) tidegate.Receipt {
	r.At += ticks
	return r
}

func isBucket(l *tidegate.Limit) bool {
	return l.Algorithm == tidegate.TokenBucket || l.Algorithm == tidegate.LeakyBucket
}

// testWaitToken: a bucket may be charged ahead by MaxWait, in order of arrival.
func testWaitToken(s *subject) {
	l := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: time.Second, Burst: 2, Algorithm: tidegate.TokenBucket})
	c := tidegate.Check{Key: "ann", Limit: l, Cost: 1, MaxWait: 3 * time.Second}
	last := s.wantWaits(c, 0, 0, time.Second, 2*time.Second, 3*time.Second)
	if last.Remaining != 0 {
		s.Errorf("booked ahead = %s, want remaining 0", show(last))
	}
	if d := s.refuse(c); d.RetryAfter != time.Second {
		s.Errorf("beyond MaxWait = %s, want retry 1s", show(d))
	}
	// A turn given back is the next one's.
	back := c
	back.Cost = -1
	s.adjust(last.Receipt, back)
	s.wantWaits(c, last.Wait)
	// Those who do not wait come after those who do.
	c.MaxWait = 0
	if d := s.refuse(c); d.RetryAfter != 4*time.Second {
		s.Errorf("without MaxWait = %s, want retry 4s", show(d))
	}
	s.wantRetry(4*time.Second, c)
	s.refuseForGood(tidegate.Check{Key: "new", Limit: l, Cost: 3, MaxWait: time.Hour})
	s.wantLeft(2, tidegate.Check{Key: "new", Limit: l})
}

// testWaitLeaky: events leave one by one; a request that does not wait passes only if
// nobody is waiting.
func testWaitLeaky(s *subject) {
	l := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: time.Second, Burst: 5, Algorithm: tidegate.LeakyBucket})
	c := tidegate.Check{Key: "ann", Limit: l, Cost: 1}
	s.wantWaits(c, 0)
	if d := s.refuse(c); d.RetryAfter != time.Second {
		s.Errorf("while one is served = %s, want retry 1s", show(d))
	}
	c.MaxWait = 2 * time.Second
	s.wantWaits(c, time.Second, 2*time.Second)
	if d := s.refuse(c); d.RetryAfter != time.Second {
		s.Errorf("beyond MaxWait = %s, want retry 1s", show(d))
	}
	c.MaxWait = time.Minute
	s.wantWaits(c, 3*time.Second, 4*time.Second, 5*time.Second)
	d := s.refuse(c)
	if d.RetryAfter != time.Second {
		s.Errorf("when all places are taken = %s, want retry 1s", show(d))
	}
	s.wantRetry(d.RetryAfter, c)
}

// testWaitVector: an admitted request waits for the slowest of its limits, and
// algorithms without a line know no waiting.
func testWaitVector(s *subject) {
	bucket := func(period time.Duration) tidegate.Check {
		l := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: period, Algorithm: tidegate.TokenBucket})
		return tidegate.Check{Key: "ann", Limit: l, Cost: 1, MaxWait: 10 * time.Second}
	}
	a, b, c := bucket(time.Second), bucket(3*time.Second), bucket(2*time.Second)
	s.admit(a, b, c)
	if d := s.admit(a, b, c); d.Wait != 3*time.Second {
		s.Errorf("second = %s, want wait 3s", show(d))
	}
	window := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: time.Second, Algorithm: tidegate.FixedWindow})
	w := tidegate.Check{Key: "ann", Limit: window, Cost: 1, MaxWait: time.Minute}
	s.admit(w)
	s.refuse(w)
	if d := s.refuse(a, w); d.Limit != window {
		s.Errorf("bucket and window = %s, want it refused by the window", show(d))
	}
	if d := s.admit(a); d.Wait != 2*time.Second {
		s.Errorf("third of the bucket = %s, want wait 2s: the refused one charged nothing", show(d))
	}
}

// testWaitForever: a request that would wait without end gets a turn, not an overflow.
func testWaitForever(s *subject) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.LeakyBucket} {
		l := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: time.Minute, Burst: 3, Algorithm: a})
		c := tidegate.Check{Key: "ann", Limit: l, Cost: 1, MaxWait: math.MaxInt64}
		if a == tidegate.LeakyBucket {
			s.wantWaits(c, 0, time.Minute, 2*time.Minute, 3*time.Minute)
		} else {
			s.wantWaits(c, 0, 0, 0, time.Minute, 2*time.Minute)
		}
	}
}
