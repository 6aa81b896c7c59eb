package algo

import (
	"time"

	"tidegate.dev/tidegate"
)

// PartsLaw is the law of sub_windows: counts of N whole parts of the window, and of
// the part that is leaving it, which is weighed by how much of it is still in the
// window or, with Ceiling, counts whole.
type PartsLaw struct {
	Events  int64
	Brim    int64 // how many may be used: Events less the floor
	Parts   int64
	Part    int64 // length in µs; all parts together are at least the period
	Ceiling bool
	scale
}

// partsBits is how many of the 63 bits of an entry hold its count, of up to twice
// tidegate.MaxCount. The other 33 hold the number of the part, less the base.
const partsBits = 30

var partsShape = runPacking{bits: partsBits}

// NewPartsLaw makes the law of sub-windows.
func NewPartsLaw(l *tidegate.Limit) PartsLaw {
	n := int64(l.Parts)
	part := partOf(int64(l.Period/time.Microsecond), n)
	return PartsLaw{Events: l.Events, Brim: l.Events, Parts: n, Part: part, Ceiling: l.Ceiling, scale: newScale(part, l.Events)}
}

// partOf returns the length of each of n parts of a period, rounded up.
func partOf(period, n int64) int64 { return (period + n - 1) / n }

// MaxEntries returns the most entries a record can come to need.
func (l *PartsLaw) MaxEntries() int { return int(l.Parts + 1) }

// advance drops what has left the window and returns the part to decide in and
// how far into it, in units.
func (l *PartsLaw) advance(r Runs, now int64) (part, off int64) {
	us := now / Micro
	part = us / l.Part
	off = l.units(us - part*l.Part)
	if last, ok := partsShape.last(r); ok && last > part {
		if last-part > l.Parts {
			l.relabel(r, part)
		} else {
			part, off = last, 0
		}
	}
	for r.len() > 0 {
		if stamp, _ := partsShape.at(r, 0); stamp >= part-l.Parts {
			break
		}
		partsShape.drop(r)
	}
	return part, off
}

// relabel moves all counts so that the last one is in part. The oldest must not
// weigh less after that, and leaves the window together with the next.
func (l *PartsLaw) relabel(r Runs, part int64) {
	last, _ := partsShape.last(r)
	r.Shift(part - last)
	stamp, count := partsShape.at(r, 0)
	if stamp != part-l.Parts {
		return
	}
	if next, _ := partsShape.at(r, 1); next != stamp+1 {
		r.Set(r.slot(0), r.Get(r.slot(0))+1<<partsShape.bits)
		return
	}
	partsShape.drop(r)
	r.Set(2, r.Get(2)+uint64(count))
	r.Set(r.slot(0), r.Get(r.slot(0))+uint64(count))
}

// used estimates how many events are in the window.
func (l *PartsLaw) used(r Runs, part, off int64) int64 {
	used := r.total()
	if l.Ceiling || used == 0 {
		return used
	}
	if stamp, count := partsShape.at(r, 0); stamp == part-l.Parts {
		used += l.weigh(count, off) - count
	}
	return used
}

// Fit returns how many copies Take would grant.
func (l *PartsLaw) Fit(r Runs, now int64, a Ask) int64 {
	part, off := l.advance(r, now)
	return a.copies(l.Brim - l.used(r, part, off))
}

// Take grants what fits and charges it. When r is too small it does nothing and
// reports false: the store gives it a larger record and asks again.
func (l *PartsLaw) Take(r Runs, now int64, a Ask) (Verdict, bool) {
	part, off := l.advance(r, now)
	used := l.used(r, part, off)
	k := a.copies(l.Brim - used)
	v := Verdict{Granted: k}
	if k > 0 && a.Cost > 0 {
		if !partsShape.fits(r, part) {
			return Verdict{}, false
		}
		partsShape.push(r, part, k*a.Cost)
		used += k * a.Cost
	}
	v.Remaining = max(0, l.Brim-used)
	if last, ok := partsShape.last(r); ok && r.total() > 0 {
		v.Reset = l.expiry(last) - now
	}
	switch {
	case k > 0:
	case a.unit() > l.Brim:
		v.Delay = Never
	default:
		v.Delay = max(0, l.retry(r, a.unit())-now)
	}
	return v, true
}

// Holds reports whether r has room for one more part.
func (l *PartsLaw) Holds(r Runs, now int64) bool {
	part, _ := l.advance(r, now)
	return partsShape.fits(r, part)
}

// expiry returns when the whole count of a part has left the window, in ticks.
func (l *PartsLaw) expiry(stamp int64) int64 { return (stamp + l.Parts + 1) * l.Part * Micro }

// retry returns the first instant, in ticks, at which cost would pass if nothing
// else came. It lets the parts leave one by one, oldest first.
func (l *PartsLaw) retry(r Runs, cost int64) int64 {
	free := l.Brim - cost
	left := r.total()
	var at int64
	for i := range r.len() {
		if left <= free {
			return at
		}
		stamp, count := partsShape.at(r, i)
		left -= count
		if off, ok := l.admits(free-left, count); ok && !l.Ceiling {
			leaving := (stamp + l.Parts) * l.Part
			return (leaving + l.micros(off)) * Micro
		}
		at = l.expiry(stamp)
	}
	return at
}

// Return gives back n events charged at the instant at into the part that was
// charged, if it is still held. Before 0, at means those charged last.
func (l *PartsLaw) Return(r Runs, now, at, n int64) {
	l.advance(r, now)
	if at < 0 {
		partsShape.takeLast(r, n)
		return
	}
	partsShape.takeBack(r, at/Micro/l.Part, n)
}

// Force charges n events whether there is room or not, into a debt of at most one
// capacity. It reports false as Take does.
func (l *PartsLaw) Force(r Runs, now, n int64) bool {
	part, off := l.advance(r, now)
	n = min(n, 2*l.Events-l.used(r, part, off))
	if n <= 0 {
		return true
	}
	if !partsShape.fits(r, part) {
		return false
	}
	partsShape.push(r, part, n)
	return true
}

// Idle reports whether r says nothing more than an empty record does.
func (l *PartsLaw) Idle(r Runs, now int64) bool {
	if r.len() == 0 || r.total() == 0 {
		return true
	}
	if l.expiry(r.base()) > now { // as in LogLaw.Idle
		return false
	}
	last, _ := partsShape.last(r)
	return l.expiry(last) <= now
}

// Squeeze makes room in a record that may not grow, by holding events for at most
// a third of the period too long; the limit is never over for it. It reports false
// when the record is too small for that.
func (l *PartsLaw) Squeeze(r Runs, now int64) bool {
	l.advance(r, now)
	return partsShape.squeeze(r, l.Parts+1)
}
