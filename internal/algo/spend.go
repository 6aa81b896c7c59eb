package algo

import (
	"math"
	"math/bits"
)

// The functions here are fast paths of Take for the most common ask: one copy that costs at least
// one event, without waiting, from a current state that was written under this law. They compute
// what Take does without an Ask and a Verdict, and mostly without dividing.

// Spend is Take for a token bucket. It returns the level and the events left afterwards, which a
// refusal does not change. If sure is false, call Take instead. It is just small enough to be inlined.
func (l *BucketLaw) Spend(drained, now, cost int64) (level, left int64, ok, sure bool) {
	if level = max(0, drained-now); level > l.Brim {
		return
	}
	if left = l.left(level); cost > left {
		sure = cost <= l.Fits
		return
	}
	return level + cost*l.Em, left - cost, true, true
}

// left returns how many events would still pass at a level: (Brim-level)/Em. Multiplying by the inverse
// comes to at most one event less, and takes a third of the time of a division on many processors.
func (l *BucketLaw) left(level int64) int64 {
	ticks, em := uint64(l.Brim-level), uint64(l.Em)
	events, _ := bits.Mul64(ticks, l.inverse)
	if ticks-events*em >= em {
		events++
	}
	return int64(events)
}

// inverse returns (2^64-1)/em, rounded down.
func inverse(em int64) uint64 { return math.MaxUint64 / uint64(em) }

// Spend is Take for a count of the current period. It returns how many events are left
// afterwards. If ok is false, call Take instead.
func (l *CounterLaw) Spend(count, cost int64) (left int64, ok bool) {
	if cost > l.Brim {
		return 0, false
	}
	left = l.Brim - count - cost
	return left, left >= 0
}

// Spend is Take for counts of the current window. It returns how many events remain, and the time
// until none of the used ones counts any more. If ok is false, call Take instead.
func (l *SlidingLaw) Spend(s Sliding, now, cost int64) (left, reset int64, ok bool) {
	start := s.Window * l.Period
	off := now/Micro - start
	if uint64(off) >= uint64(l.Period) || cost > l.Brim {
		return 0, 0, false
	}
	left = l.Brim - s.Cur - l.weigh(s.Prev, l.units(off)) - cost
	return left, (start+2*l.Period)*Micro - now, left >= 0
}

// raceTime is the most, in µs, that a state may be ahead of now because another caller charged
// it after this caller read the clock. A state that is further ahead shows that the clock was
// set back.
const raceTime = 1000

// Spending is the result of Spend for a record.
type Spending uint8

const (
	Unsure  Spending = iota // call Take instead
	Spent                   // there was room
	TooFull                 // there would be room in a larger record
)

// Spend is Take for a record. It returns how many events remain, the time until none of the used ones
// counts any more, and the instant at which it has charged: later than now if another caller has
// charged r since now was read. It changes r only if the result is Spent and charge is set; without
// charge it returns what it would do.
func (l *RunsLaw) Spend(r Runs, now, cost int64, charge bool) (left, reset, at int64, s Spending) {
	ring := r.Get(1)
	if uint32(ring) == 0 || int64(ring>>48) != l.parts.Parts || cost > l.log.Brim {
		return 0, 0, 0, Unsure
	}
	if l.exact() {
		return l.log.spend(r, ring, now, cost, charge)
	}
	return l.parts.spend(r, ring, now, cost, charge)
}

// outermost returns the indexes of the words with the oldest and the last entry of a record whose
// second word is ring.
func (r *Record) outermost(ring uint64) (oldest, last int) {
	head, n := int(ring>>32&0xffff), int(uint32(ring))
	if last = head + n - 1; last >= r.room() {
		last -= r.room()
	}
	return RunsHeader + head, RunsHeader + last
}

// after returns the index of the word after that of an entry, around the ring.
func (r *Record) after(word int) int {
	if word++; word == r.size {
		return RunsHeader
	}
	return word
}

// Behind reports whether something was charged after now: by another caller, or before the
// clock was set back.
func (l *RunsLaw) Behind(r Runs, now int64) bool {
	n := r.len()
	if n == 0 {
		return false
	}
	w := r.Get(r.slot(n - 1))
	if parts := r.Parts(); parts > 0 {
		return partsShape.stamp(r, w)*partOf(l.log.Period, parts) > now/Micro
	}
	return logShape.stamp(r, w) > now/Micro
}

func (l *LogLaw) spend(r Runs, ring uint64, now, cost int64, charge bool) (left, reset, at int64, s Spending) {
	at = now
	base, us := r.base(), now/Micro
	oldest, end := r.outermost(ring)
	newest := r.Get(end)
	last := base + int64(newest>>logBits)
	if us < last {
		if last-us > raceTime {
			return 0, 0, 0, Unsure
		}
		us, at = last, last*Micro
	}
	total, n := r.total(), int(uint32(ring))
	for { // those that have left the window
		w := r.Get(oldest)
		if base+int64(w>>logBits) > us-l.Period {
			break
		}
		if n--; n == 0 {
			return 0, 0, 0, Unsure
		}
		total -= int64(w & (1<<logBits - 1))
		oldest = r.after(oldest)
	}
	left = l.Brim - total - cost
	if left < 0 || (us-base)>>(63-logBits) != 0 {
		return 0, 0, 0, Unsure
	}
	if us != last && n == r.room() {
		return 0, 0, 0, TooFull
	}
	if charge {
		if us == last {
			r.Set(end, newest+uint64(cost))
		} else {
			r.Set(r.after(end), uint64(us-base)<<logBits|uint64(cost))
			n++
		}
		r.Set(1, uint64(oldest-RunsHeader)<<32|uint64(n))
		r.Set(2, uint64(total+cost))
	}
	return left, (us+l.Period)*Micro - now, at, Spent
}

func (l *PartsLaw) spend(r Runs, ring uint64, now, cost int64, charge bool) (left, reset, at int64, s Spending) {
	start, end := r.outermost(ring)
	base, current, first := r.base(), r.Get(end), r.Get(start)
	part, oldest := base+int64(current>>partsBits), base+int64(first>>partsBits)
	off, at, ok := l.within(part, now)
	if !ok || oldest < part-l.Parts {
		return 0, 0, 0, Unsure
	}
	total := r.total()
	left = l.Brim - total - cost
	if oldest == part-l.Parts && !l.Ceiling {
		leaving := int64(first & (1<<partsBits - 1))
		left += leaving - l.weigh(leaving, l.units(off))
	}
	if left < 0 {
		return 0, 0, 0, Unsure
	}
	if charge {
		r.Set(end, current+uint64(cost))
		r.Set(2, uint64(total+cost))
	}
	return left, l.expiry(part) - now, at, Spent
}

// within returns how many µs after the start of a part now is, and the instant to charge at: the
// start of the part if now is just before it, because another caller that read the clock later has
// begun the part. ok is false if now is further before the part, or after it.
func (l *PartsLaw) within(part, now int64) (off, at int64, ok bool) {
	start := part * l.Part
	off, at = now/Micro-start, now
	if off < 0 {
		if off < -raceTime {
			return 0, 0, false
		}
		off, at = 0, start*Micro
	}
	return off, at, off < l.Part
}
