package algo

import (
	"time"

	"tidegate.dev/tidegate"
)

// maxAhead bounds, in ticks, how far ahead waiters can book a token bucket, beyond its burst.
const maxAhead = int64(time.Hour/time.Microsecond) * Micro

// maxRefill is the longest that a bucket may take to refill, in ticks.
const maxRefill = int64(tidegate.MaxRefill/time.Microsecond) * Micro

// BucketLaw is the law of token_bucket (GCRA) and leaky_bucket (departure times). Both keep
// one instant, at which all that was charged will have drained. The level is what has not
// drained yet, in ticks: 0 when nothing is used, Tau when everything is.
//
// An event takes Em = ⌈period/events⌉ ticks and n events take n·Em, so that a
// burst can be spent one by one or at once, to the same effect, and never more.
type BucketLaw struct {
	Em      int64  // ticks an event takes
	inverse uint64 // (2^64-1)/Em, rounded down: see left

	// Brim and Fits are Tau and Cap less the floor: the highest level, and the most events, that
	// this law admits. States are still read and written by Tau and Cap.
	Brim, Fits int64

	Tau   int64 // ticks that capacity events take
	Cap   int64 // events: the burst, or the one being served and those in the queue
	Leaky bool  // admitted events leave one by one, Em apart
	Raw   bool  // RawTime: a state is only an instant, and is not converted between limits

	// Widest is for states that do not say when they were written: the largest
	// capacity of all laws that share the counter, tiers and overrides, and at
	// least Cap. A higher level can only come from a clock that was set back.
	// It is right only where one process knows all of these laws.
	Widest int64
	// Longest is the longest that a used-up bucket of any of these laws takes to drain, in
	// ticks; 0 means not known.
	Longest int64
}

// Bucket is the state of a key. The zero value is a bucket of which nothing is used.
type Bucket struct {
	Drained int64 // GCRA's TAT: the instant at which the level is back at 0
	Em      int64 // of the law it was written under
	Ahead   bool  // the level was above Tau: booked ahead by waiters, or in debt
	Written int64 // when it was written, to detect a clock that was set back; 0 if the store does not keep that
}

// NewBucketLaw makes the law of a token or leaky bucket.
func NewBucketLaw(l *tidegate.Limit) BucketLaw {
	em := mulDivCeil(int64(l.Period/time.Microsecond), Micro, l.Events)
	capacity := l.Capacity()
	tau := mul(capacity, em)
	return BucketLaw{Em: em, inverse: inverse(em), Tau: tau, Brim: tau, Cap: capacity, Fits: capacity, Widest: capacity, Leaky: l.Algorithm == tidegate.LeakyBucket, Raw: l.RawTime}
}

// advance brings s to now. It returns the state to keep even if nothing is charged, the
// instant to decide at, and the level then: the ticks that s takes to drain under this law.
//
// A state written under another law keeps its used events. If the capacity holds them,
// they drain at this law's pace from now on. If it does not, the state stays as it is
// and drains at its own pace until it fits: the next ask may come under the wider law
// again, perhaps from a node that knows only that one.
func (l *BucketLaw) advance(s Bucket, now int64) (kept Bucket, at, level int64) {
	s, now = l.decideAt(s, now)
	level = s.Drained - now
	if level <= 0 {
		return s, now, 0
	}
	if s.Em <= 0 || l.Raw {
		s.Em = l.Em
	}
	if highest := l.maxLevel(s); s.Written == 0 && level > highest { // the clock was set back
		s.Drained, level = add(now, highest), highest
	}
	if s.Em == l.Em {
		return s, now, level
	}
	level = mulDivCeil(level, l.Em, s.Em)
	if level > l.Tau {
		return s, now, level
	}
	return l.state(now, level), now, level
}

// decideAt returns the instant at which to decide, and the state then. The instant is now, unless the
// clock was set back to before s was written: after a step of at most Tau, it is the instant at which
// s was written; after a longer one, s is moved to now and keeps its level. Neither refills anything.
func (l *BucketLaw) decideAt(s Bucket, now int64) (kept Bucket, at int64) {
	ahead := s.Written - now
	switch {
	case ahead <= 0:
		return s, now
	case ahead <= l.Tau:
		return s, s.Written
	}
	s.Drained, s.Written = s.Drained-ahead, now
	return s, now
}

// maxLevel returns the highest level that s can have, at the pace at which it drains.
func (l *BucketLaw) maxLevel(s Bucket) int64 {
	highest := l.fullLevel(s.Em)
	if s.Ahead {
		highest = add(highest, max(highest, maxAhead))
	}
	return highest
}

// fullLevel returns the level of a used-up bucket that drains one event in em ticks; what is above
// is booked ahead, or a debt.
func (l *BucketLaw) fullLevel(em int64) int64 {
	highest := l.widestLevel(em)
	if l.Longest > 0 {
		highest = min(highest, max(l.Longest, l.Tau))
	}
	return highest
}

// widestLevel returns the level of a used-up bucket of the widest law, if an event drains in em
// ticks. It is not known under which law a raw state was written.
func (l *BucketLaw) widestLevel(em int64) int64 {
	if l.Raw {
		return max(l.Longest, l.Tau)
	}
	return mul(l.Widest, em) // em may be another law's: perhaps no law has both
}

// wait returns how many ticks ahead a may be charged. A leaky bucket is bounded by its capacity
// alone.
func (l *BucketLaw) wait(a Ask) int64 {
	if l.Leaky {
		return max(a.MaxWait, 0)
	}
	return min(max(a.MaxWait, 0), maxAhead)
}

func (l *BucketLaw) state(now, level int64) Bucket {
	if level == 0 {
		return Bucket{Em: l.Em} // nothing is used, whatever the clock does
	}
	return Bucket{Drained: add(now, level), Em: l.Em, Ahead: level > l.fullLevel(l.Em), Written: now}
}

// room returns how many events would be admitted at that level.
func (l *BucketLaw) room(level, maxWait int64) int64 {
	if !l.Leaky {
		return max(0, (l.Brim-level+maxWait)/l.Em)
	}
	if level > maxWait || level > l.Brim {
		return 0
	}
	return (l.Brim - level) / l.Em
}

func (l *BucketLaw) fit(level int64, a Ask) int64 {
	unit := a.unit()
	if unit > l.Fits {
		return 0
	}
	wait := l.wait(a)
	k := a.copies(l.room(level, wait))
	if l.Leaky && k > 1 && a.Cost > 0 { // the last copy must also leave in time
		k = min(k, (wait-level)/(unit*l.Em)+1)
	}
	return k
}

// Fit returns how many copies Take would grant.
func (l *BucketLaw) Fit(s Bucket, now int64, a Ask) int64 {
	_, _, level := l.advance(s, now)
	return l.fit(level, a)
}

// Take grants what fits and charges it. What it returns is to be kept even when
// nothing was granted: a state written under another law, or before the clock
// was set back, drains from now on under this one.
func (l *BucketLaw) Take(s Bucket, now int64, a Ask) (Bucket, Verdict) {
	s, at, level := l.advance(s, now)
	k := l.fit(level, a)
	if k == 0 {
		return s, l.refuse(s, now, level, a)
	}
	v := Verdict{Granted: k}
	if l.Leaky {
		v.Delay = level
	} else {
		v.Delay = max(0, level+a.unit()*l.Em-l.Brim)
	}
	if a.Cost > 0 {
		level += k * a.Cost * l.Em
		s = l.state(at, level)
	}
	v.Remaining = l.remaining(level, a)
	v.Reset = max(0, s.Drained-now) // a peek leaves it draining at its own pace
	return s, v
}

func (l *BucketLaw) remaining(level int64, a Ask) int64 {
	if l.Leaky {
		wait := l.wait(a)
		if level > wait {
			return 0
		}
		return min(l.room(level, wait), (wait-level)/l.Em+1)
	}
	return l.room(level, 0)
}

func (l *BucketLaw) refuse(s Bucket, now, level int64, a Ask) Verdict {
	v := Verdict{Remaining: l.remaining(level, a), Reset: max(0, s.Drained-now)}
	unit := a.unit()
	if unit > l.Fits {
		v.Delay = Never
		return v
	}
	// It passes once the level is no higher than this.
	limit := l.Brim - unit*l.Em
	if l.Leaky {
		limit = min(limit, l.wait(a))
	} else {
		limit += l.wait(a)
	}
	if s.Em != l.Em && s.Em > 0 { // still draining at the pace of another law
		limit = mulDivFloor(limit, s.Em, l.Em)
	}
	v.Delay = s.Drained - now - limit
	return v
}

// Return gives back n events that were charged at the instant at or, if they were booked ahead,
// have their turn then; in a leaky bucket every event has a turn of its own. Events count only
// until the bucket has refilled; after that nothing is returned. An at below 0 means the events
// charged last; a leaky bucket does not know these, and returns nothing.
func (l *BucketLaw) Return(s Bucket, now, at, n int64) Bucket {
	if at < 0 {
		if l.Leaky {
			return s
		}
		at = now
	}
	if add(at, l.Tau) < now {
		return s
	}
	s, now, level := l.advance(s, now)
	if l.Leaky {
		return l.returnTurn(s, now, at, n)
	}
	if level > l.Tau && s.Em != l.Em { // more than this law holds: at its own pace
		return s.until(now, s.Drained-mul(n, s.Em))
	}
	return l.state(now, max(0, level-mul(n, l.Em)))
}

// until returns s as of now, with another instant at which it will have drained.
func (s Bucket) until(now, drained int64) Bucket {
	if drained <= now {
		return Bucket{Em: s.Em}
	}
	s.Drained, s.Written = drained, now
	return s
}

// returnTurn gives back the turns of n events of a leaky bucket, the first of which is due at
// the instant at, if they are the last in the queue. If others follow, the turns stay unused,
// due or not: otherwise two events would leave at once. at may be off by less than half a turn,
// because it was rounded.
func (l *BucketLaw) returnTurn(s Bucket, now, at, n int64) Bucket {
	if at >= s.Drained || add(at, mul(n, s.Em)) < s.Drained-s.Em/2 {
		return s
	}
	end := s.Drained - mul(n, s.Em)
	if end < at-s.Em/2 { // more events than were taken: those before keep their turns
		end = at
	}
	if s.Em != l.Em { // more than this law holds drains at its own pace
		return s.until(now, end)
	}
	return l.state(now, max(0, end-now))
}

// Force charges n events whether there is room or not, into a debt of at most one capacity.
func (l *BucketLaw) Force(s Bucket, now, n int64) Bucket {
	s, now, level := l.advance(s, now)
	if level > l.Tau && s.Em != l.Em { // more than this law holds: at its own pace
		own := *l
		own.Em, own.Tau = s.Em, min(mul(l.Cap, s.Em), maxRefill) // no law allows more
		return own.Force(s, now, n)
	}
	return l.state(now, max(level, min(add(level, mul(n, l.Em)), 2*l.Tau)))
}

// Successor returns the Successor of l (see [tidegate.Handling]) if both are buckets of the same kind;
// otherwise nil.
func Successor(l *tidegate.Limit) *tidegate.Limit {
	if l.Terms == nil || l.Terms.Handling.Successor == nil || l.Algorithm != tidegate.TokenBucket && l.Algorithm != tidegate.LeakyBucket {
		return nil
	}
	next := l.Terms.Handling.Successor
	if next.Algorithm != l.Algorithm || l.RawTime || next.RawTime {
		return nil
	}
	return next
}

// Follow returns s with at least as many events used as in other, or with all of them used if l has
// fewer. s is a state of l, other one of the law before.
func (l *BucketLaw) Follow(s Bucket, now int64, before *BucketLaw, other Bucket) Bucket {
	_, _, used := before.advance(other, now)
	least := min(mulDivCeil(used, l.Em, before.Em), l.Tau)
	s, at, level := l.advance(s, now)
	if level >= least {
		return s
	}
	return l.state(at, least)
}

// Idle reports whether s says nothing more than the zero value does.
func (s Bucket) Idle(now int64) bool { return s.Drained <= now }
