package storetest

import (
	"math/big"
	"time"

	"tidegate.dev/tidegate"
)

// bucket is a token or leaky bucket by its definition: events used, which drain
// at the rate of the limit last asked. Fractions are exact.
type bucket struct {
	used  *big.Rat // events, as of since; nil means none
	since time.Time
	limit *tidegate.Limit // whose rate it drains at
}

// rate returns the rate of l in events per nanosecond.
func rate(l *tidegate.Limit) *big.Rat { return big.NewRat(l.Events, int64(l.Period)) }

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func lesser(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// settle drains up to now. A clock set back un-drains, but not beyond what was
// used or the capacity: nothing is refilled, and nobody is held back for long.
func (b *bucket) settle(l *tidegate.Limit, now time.Time) *big.Rat {
	if b.used == nil {
		b.used, b.since, b.limit = whole(0), now, l
	}
	drained := new(big.Rat).Mul(rate(b.limit), whole(int64(now.Sub(b.since))))
	used := new(big.Rat).Sub(b.used, drained)
	if drained.Sign() < 0 {
		most := whole(b.limit.Capacity())
		if b.used.Cmp(most) > 0 {
			most = b.used
		}
		used = lesser(used, most)
		if b.used.Sign() == 0 {
			used = whole(0)
		}
	}
	if used.Sign() < 0 {
		used = whole(0)
	}
	b.used, b.since = used, now
	if b.limit.Events == l.Events && b.limit.Capacity() == l.Capacity() && b.limit.Period == l.Period {
		return used
	}
	if l.RawTime { // the time stays, and is so many events of the other limit
		b.used, b.limit = used.Quo(used.Mul(used, rate(l)), rate(b.limit)), l
		return b.used
	}
	// More than a lowered limit can hold counts as its capacity, but is not
	// forgotten while it is only asked about: else asking under a narrower
	// tier would refill the wider one.
	if most := whole(l.Capacity()); used.Cmp(most) > 0 {
		return most
	}
	b.limit = l
	return used
}

// change makes used what is used from now on, under l.
func (b *bucket) change(l *tidegate.Limit, used *big.Rat) { b.limit, b.used = l, used }

func (b *bucket) ask(l *tidegate.Limit, now time.Time, q question) answer {
	maxWait := q.maxWait
	used := b.settle(l, now)
	free := new(big.Rat).Sub(whole(l.Capacity()), used)
	over := new(big.Rat).Sub(whole(q.need()), free) // events that must drain first
	excess := new(big.Rat).Sub(b.used, used)        // as above, and of the old limit
	a := answer{remaining: max(0, floor(free)-q.floor), reset: drainTime(l, used)}
	if excess.Sign() > 0 {
		a.reset = drainTime(b.limit, b.used)
	}
	if l.Algorithm == tidegate.LeakyBucket {
		turn := drainTime(l, used)
		a.ok = over.Sign() <= 0 && turn <= maxWait
		a.wait = turn
		a.retry = max(drainTime(l, over), turn-maxWait)
		if excess.Sign() > 0 {
			inTime := new(big.Rat).Mul(rate(l), whole(int64(maxWait))) // whose turn comes soon enough
			a.retry = max(drainTime(b.limit, excess.Add(excess, over)), drainTime(b.limit, inTime.Sub(b.used, inTime)))
		}
		line := int64(0) // how many could stand in line and be served in time
		if turn <= maxWait {
			line = floor(new(big.Rat).Mul(rate(l), whole(int64(maxWait-turn)))) + 1
		}
		a.remaining = min(a.remaining, line)
		return a
	}
	wait := drainTime(l, over)
	a.ok = wait <= maxWait
	a.retry = wait - maxWait
	if excess.Sign() > 0 {
		a.retry = drainTime(b.limit, excess.Add(excess, over))
	}
	if maxWait > 0 {
		a.wait = wait
	}
	return a
}

func (b *bucket) charge(l *tidegate.Limit, now time.Time, _ receipt, cost int64) {
	b.change(l, new(big.Rat).Add(b.settle(l, now), whole(cost)))
}

// giveBack lands for as long as a full bucket takes to drain.
func (b *bucket) giveBack(l *tidegate.Limit, now time.Time, at, cost int64) {
	used := b.settle(l, now)
	if at < 0 && l.Algorithm == tidegate.LeakyBucket {
		return
	}
	if at >= 0 && now.Sub(time.UnixMicro(at/1024)) > drainTime(l, whole(l.Capacity())) {
		return
	}
	left := new(big.Rat).Sub(used, whole(cost))
	if l.Algorithm == tidegate.LeakyBucket {
		// Those who leave before it keep their turns, and it keeps its own, as a
		// hole, when somebody leaves after it. Receipts are rounded.
		before := new(big.Rat).Mul(rate(b.limit), big.NewRat(at-ticks(now), 1024))
		before.Mul(before, whole(1000))
		half := big.NewRat(1, 2)
		if before.Cmp(used) >= 0 || left.Cmp(new(big.Rat).Add(before, half)) > 0 {
			return
		}
		if left.Cmp(new(big.Rat).Sub(before, half)) < 0 {
			left = before
		}
	}
	if left.Sign() < 0 {
		left = whole(0)
	}
	b.change(l, left)
}

// ticks returns a time in ticks of 1/1024 µs, as in a receipt.
func ticks(t time.Time) int64 { return t.UnixNano()/1000*1024 + t.UnixNano()%1000*1024/1000 }

func (b *bucket) force(l *tidegate.Limit, now time.Time, cost int64) {
	used := b.settle(l, now)
	level := lesser(new(big.Rat).Add(used, whole(cost)), whole(2*l.Capacity()))
	if level.Cmp(used) > 0 {
		b.change(l, level)
	}
}

// drainTime returns how long events take to drain, rounded up.
func drainTime(l *tidegate.Limit, events *big.Rat) time.Duration {
	if events.Sign() <= 0 {
		return 0
	}
	t := new(big.Rat).Quo(events, rate(l))
	n := new(big.Int).Add(t.Num(), new(big.Int).Sub(t.Denom(), big.NewInt(1)))
	return time.Duration(n.Quo(n, t.Denom()).Int64())
}

func floor(x *big.Rat) int64 {
	if x.Sign() < 0 {
		return -1
	}
	return new(big.Int).Quo(x.Num(), x.Denom()).Int64()
}
