package algo

import (
	"math"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// epoch is where tests start: 2026-03-01 12:00 UTC, a Sunday.
var epoch = Instant(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// second and µ are lengths in ticks.
const (
	µ      = int64(Micro)
	milli  = 1000 * µ
	second = 1000 * milli
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// tape reads choices from fuzzed bytes; at its end everything is 0.
type tape struct{ b []byte }

func (t *tape) done() bool { return len(t.b) == 0 }

func (t *tape) byte() byte {
	if t.done() {
		return 0
	}
	c := t.b[0]
	t.b = t.b[1:]
	return c
}

// upTo is a number from 0 to n.
func (t *tape) upTo(n int64) int64 {
	var v uint64
	for room := uint64(n); room > 0; room >>= 8 {
		v = v<<8 | uint64(t.byte())
	}
	if n == math.MaxInt64 {
		return int64(v >> 1)
	}
	return int64(v % uint64(n+1))
}

func (t *tape) pick(of ...int64) int64 { return of[int(t.byte())%len(of)] }

func (t *tape) flag() bool { return t.byte()&1 == 1 }

// numbers are events and a period: small ones that meet all the edges soon, and
// now and then the largest.
func (t *tape) numbers() (events int64, period time.Duration) {
	events = 1 + t.upTo(11)
	switch t.byte() % 8 {
	case 0:
		events = t.pick(1, 100, 9_999, 60_000, 1_000_003, tidegate.MaxCount)
	case 1:
		events = 1 + t.upTo(500)
	}
	period = time.Duration(t.pick(1, 1, 10, 60, 3600, 86400, 7*86400)) * time.Second
	switch t.byte() % 4 {
	case 0:
		period = time.Millisecond + time.Duration(t.upTo(5000))*time.Microsecond
	case 1:
		period = time.Millisecond + time.Duration(t.upTo(int64(tidegate.MaxPeriod/time.Microsecond)-1000))*time.Microsecond
	}
	return events, period
}

// ask is what a request wants, edges of the capacity included.
func (t *tape) ask(capacity, em int64) Ask {
	a := Ask{Cost: t.upTo(3), Copies: 1}
	switch t.byte() % 8 {
	case 0:
		a.Cost = t.pick(capacity, capacity+1, max(1, capacity-1), capacity/2, math.MaxInt64, 0)
	case 1:
		a.Copies = 1 + t.upTo(6)
	case 2:
		if capacity/a.unit() < 4096 {
			a.Copies = t.pick(math.MaxInt64, capacity, capacity+1)
		}
	}
	switch t.byte() % 4 {
	case 0:
		a.MaxWait = t.upTo(3)*em + t.upTo(2)*(em/3)
	case 1:
		a.MaxWait = t.pick(0, 1, 4*capacity*em, math.MaxInt64, -1, math.MinInt64, maxAhead, maxAhead+1)
	}
	if a.MaxWait > em {
		a.Copies = min(a.Copies, 64) // the oracle lets them try one by one
	}
	return a
}

// step is a stretch of time: nothing, a tick, parts of the period, or to one of
// the instants that the last verdict spoke of.
func (t *tape) step(period int64, v Verdict) int64 {
	switch t.byte() % 12 {
	case 0:
		return 1
	case 1:
		return t.upTo(5 * µ)
	case 2, 3:
		return t.upTo(period / 4)
	case 4:
		return t.upTo(period)
	case 5:
		return t.upTo(3 * period)
	case 6:
		return period * t.upTo(3)
	case 7:
		return v.Retry()
	case 8:
		return max(0, v.Retry()-1)
	case 9:
		return v.Reset
	case 10:
		return max(0, v.Reset-1)
	}
	return 0
}

// randomTape is a tape for tests that are not fuzzed.
func randomTape(seed uint64, n int) *tape {
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return &tape{b}
}
