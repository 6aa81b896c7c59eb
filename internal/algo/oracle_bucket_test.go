package algo

import (
	"math/big"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// emission is the ticks an event takes: ⌈period·1024/events⌉ in big integers.
func emission(l *tidegate.Limit) int64 {
	n := new(big.Int).Mul(big.NewInt(int64(l.Period/time.Microsecond)), big.NewInt(1024))
	n.Add(n, big.NewInt(l.Events-1))
	return n.Div(n, big.NewInt(l.Events)).Int64()
}

// tokenOracle is a bucket as it is told: tokens drip in, at most burst are
// kept, each event takes one. Its level is an exact fraction.
type tokenOracle struct {
	burst, em int64
	level     *big.Rat
	at        int64
}

func newTokenOracle(l *tidegate.Limit) *tokenOracle {
	return &tokenOracle{burst: l.Burst, em: emission(l), level: whole(l.Burst)}
}

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// less is the smaller one.
func less(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func (o *tokenOracle) refill(now int64) {
	drip := new(big.Rat).SetFrac64(now-o.at, o.em)
	o.level, o.at = less(drip.Add(drip, o.level), whole(o.burst)), now
}

func (o *tokenOracle) one(now, _, unit, maxWait int64, charge bool) (bool, int64) {
	o.refill(now)
	if unit > o.burst {
		return false, 0
	}
	missing := new(big.Rat).Sub(whole(unit), o.level)
	ticks := missing.Mul(missing, whole(o.em))
	hour := whole(3600 * 1_000_000 * 1024) // no more than that can be booked ahead
	if ticks.Cmp(less(whole(maxWait), hour)) > 0 {
		return false, 0
	}
	if charge {
		o.level = new(big.Rat).Sub(o.level, whole(unit))
	}
	if ticks.Sign() <= 0 {
		return true, 0
	}
	return true, ticks.Num().Int64() // ticks are whole: all instants are
}

func (o *tokenOracle) refused(int64, int64, int64) {}

func (o *tokenOracle) remaining(now, _ int64) int64 {
	o.refill(now)
	if o.level.Sign() <= 0 {
		return 0
	}
	return new(big.Int).Div(o.level.Num(), o.level.Denom()).Int64()
}

func (o *tokenOracle) giveBack(now, at, n int64) {
	o.refill(now)
	age := new(big.Rat).SetFrac64(now-at, o.em)
	if age.Cmp(whole(o.burst)) > 0 {
		return
	}
	o.level = less(new(big.Rat).Add(o.level, whole(n)), whole(o.burst))
}

func (o *tokenOracle) force(now, n int64) {
	o.refill(now)
	after := new(big.Rat).Sub(o.level, whole(n))
	if overdraft := whole(-o.burst); after.Cmp(overdraft) < 0 {
		after = overdraft
	}
	o.level = less(o.level, after)
}

func (o *tokenOracle) clean(now int64) bool {
	c := *o
	c.refill(now)
	return c.level.Cmp(whole(c.burst)) == 0
}

func (o *tokenOracle) clone() oracle { c := *o; return &c }

// change keeps used events.
func (o *tokenOracle) change(l *tidegate.Limit) {
	used := new(big.Rat).Sub(whole(o.burst), o.level)
	o.burst, o.em = l.Burst, emission(l)
	o.level = new(big.Rat).Sub(whole(o.burst), less(used, whole(o.burst)))
}

// leakyOracle is a line at a counter: the departures promised, one em apart,
// and never more than places of them still to come.
type leakyOracle struct {
	places, em int64
	departures []int64
}

func newLeakyOracle(l *tidegate.Limit) *leakyOracle {
	return &leakyOracle{places: l.Burst, em: emission(l)}
}

// next is when a newcomer would leave.
func (o *leakyOracle) next(now int64) int64 {
	if n := len(o.departures); n > 0 {
		return max(now, o.departures[n-1]+o.em)
	}
	return now
}

func (o *leakyOracle) one(now, _, unit, maxWait int64, charge bool) (bool, int64) {
	if unit > o.places+1 {
		return false, 0
	}
	line := o.departures
	var first int64
	c := leakyOracle{places: o.places, em: o.em, departures: slices.Clip(line)}
	for i := range unit {
		next := c.next(now)
		if i == 0 {
			first = next
		}
		c.departures = append(c.departures, next)
	}
	waiting := int64(0)
	for _, d := range c.departures {
		if d > now {
			waiting++
		}
	}
	if waiting > o.places || first-now > maxWait {
		return false, 0
	}
	if charge {
		o.departures = slices.DeleteFunc(c.departures, func(d int64) bool { return d+o.em <= now })
	}
	return true, first - now
}

func (o *leakyOracle) refused(int64, int64, int64) {}

func (o *leakyOracle) remaining(now, maxWait int64) (n int64) {
	c := o.clone()
	for {
		if ok, _ := c.one(now, now, 1, maxWait, true); !ok {
			return n
		}
		n++
	}
}

// giveBack frees the departures promised for at and the n-1 turns behind it, unless
// somebody leaves after those.
func (o *leakyOracle) giveBack(now, at, n int64) {
	first := len(o.departures)
	for first > 0 && o.departures[first-1] > at-o.em/2 {
		first--
	}
	behind := len(o.departures) - first
	if now-at <= (o.places+1)*o.em && behind > 0 && (o.departures[first+behind-1]-at+o.em/2)/o.em < n {
		o.departures = o.departures[:first]
	}
}

// force may cut the last one short at twice the line: departures then count
// back from there.
func (o *leakyOracle) force(now, n int64) {
	free := o.next(now)
	most := now + 2*(o.places+1)*o.em
	for ; n > 0 && free < most; n-- {
		free = min(free+o.em, most)
	}
	o.departures = nil
	for d := free - o.em; d > now-o.em; d -= o.em {
		o.departures = append(o.departures, d)
	}
	slices.Reverse(o.departures)
}

func (o *leakyOracle) clean(now int64) bool { return o.next(now) == now }

func (o *leakyOracle) clone() oracle {
	c := *o
	c.departures = slices.Clone(o.departures)
	return &c
}

func (o *leakyOracle) change(*tidegate.Limit) {}
