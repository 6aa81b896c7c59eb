package algo

import (
	"time"

	"tidegate.dev/tidegate"
)

// RunsLaw is the law of sliding_log or sub_windows. Limits of both share a counter, so
// that a change of algorithm or of parts refills nobody. A record keeps the resolution
// in which it was begun until it is empty, with one exception: when sub_windows finds
// stamps, it turns them into counts, which loses no events. A sliding_log that finds
// counts reads them in the strictest way, with Ceiling.
//
// (Counts are not converted into stamps or into counts of other parts: that would round
// up each time, and two versions of a rule that take turns would hold a key for ever.)
type RunsLaw struct {
	log   LogLaw
	parts PartsLaw // of sub_windows; for a sliding_log its Parts is 0
}

// NewRunsLaw makes the law of a sliding log or of sub-windows.
func NewRunsLaw(l *tidegate.Limit) RunsLaw {
	if l.Algorithm == tidegate.SlidingLog {
		return RunsLaw{log: NewLogLaw(l)}
	}
	return RunsLaw{log: LogLaw{Events: l.Events, Brim: l.Events, Period: int64(l.Period / time.Microsecond)}, parts: NewPartsLaw(l)}
}

// WithEvents returns a law of the same windows whose Force charges as much as that of a limit of n
// events, for merging counts of instances that may have a higher limit. Take admits no more than
// before.
func (l *RunsLaw) WithEvents(n int64) RunsLaw {
	other := *l
	other.log.Events, other.parts.Events = n, n
	return other
}

// WithoutRejected returns a law of the same windows that stamps no refused event: a refusal by it needs no room.
func (l *RunsLaw) WithoutRejected() RunsLaw {
	other := *l
	other.log.CountRejected = false
	return other
}

// exact reports whether l is a sliding log.
func (l *RunsLaw) exact() bool { return l.parts.Parts == 0 }

// CountsRejected reports whether refused events are stamped as well.
func (l *RunsLaw) CountsRejected() bool { return l.log.CountRejected }

// Unit returns how many µs a difference of 1 between stamps of r stands for.
func (l *RunsLaw) Unit(r Runs) int64 {
	if n := r.Parts(); n > 0 {
		return partOf(l.log.Period, n)
	}
	return 1
}

// lawFor returns the law of sub-windows that r is decided by, or nil if it is decided by that of
// the log. It converts r where that is needed.
func (l *RunsLaw) lawFor(r Runs, now int64) *PartsLaw {
	n := r.Parts()
	switch {
	case n == l.parts.Parts && n > 0:
		return &l.parts
	case n == 0 && l.exact():
		return nil
	}
	if n > 0 && r.len() > 0 {
		found := l.partsLaw(n)
		found.scale = newScale(found.Part, l.log.Events)
		if found.advance(r, now); r.len() > 0 {
			return found
		}
	}
	if n == 0 {
		l.toCounts(r, now)
	}
	if r.room() > 0 { // keys without a record share an empty one, which is never written
		r.SetParts(l.parts.Parts)
	}
	if l.exact() {
		return nil
	}
	return &l.parts
}

// partsLaw returns the law for counts that were begun in n parts.
func (l *RunsLaw) partsLaw(n int64) *PartsLaw {
	return &PartsLaw{Events: l.log.Events, Brim: l.log.Brim, Parts: n, Part: partOf(l.log.Period, n), Ceiling: l.parts.Ceiling || l.exact()}
}

// toCounts turns the stamps of r into counts of the law's parts.
func (l *RunsLaw) toCounts(r Runs, now int64) {
	if l.log.advance(r, now); r.len() == 0 {
		return
	}
	kept := 0
	var base, part, sum int64
	for i := range r.len() {
		stamp, count := logShape.at(r, i)
		next := max(0, stamp) / l.parts.Part
		if kept == 0 {
			base = next
		}
		if kept == 0 || next != part {
			kept, part, sum = kept+1, next, 0
		}
		sum += count
		r.Set(r.slot(kept-1), uint64(part-base)<<partsShape.bits|uint64(sum))
	}
	r.Set(0, uint64(base))
	r.setRing(r.head(), uint64(kept))
}

// Fit returns how many copies Take would grant.
func (l *RunsLaw) Fit(r Runs, now int64, a Ask) int64 {
	if parts := l.lawFor(r, now); parts != nil {
		return parts.Fit(r, now, a)
	}
	return l.log.Fit(r, now, a)
}

// Take grants what fits and charges it. When r is too small it does nothing and
// reports false: the store gives it a larger record and asks again.
func (l *RunsLaw) Take(r Runs, now int64, a Ask) (Verdict, bool) {
	if parts := l.lawFor(r, now); parts != nil {
		return parts.Take(r, now, a)
	}
	return l.log.Take(r, now, a)
}

// Holds reports whether r has room for one more entry.
func (l *RunsLaw) Holds(r Runs, now int64) bool {
	if parts := l.lawFor(r, now); parts != nil {
		return parts.Holds(r, now)
	}
	return l.log.Holds(r, now)
}

// Reject stamps the copies of an ask that another limit refused, if rejected ones
// count. It reports false as Take does.
func (l *RunsLaw) Reject(r Runs, now int64, a Ask) bool {
	return l.lawFor(r, now) != nil || l.log.Reject(r, now, a)
}

// Return gives back n events charged at the instant at, where they are counted, if
// they still are.
func (l *RunsLaw) Return(r Runs, now, at, n int64) {
	if parts := l.lawFor(r, now); parts != nil {
		parts.Return(r, now, at, n)
		return
	}
	l.log.Return(r, now, at, n)
}

// Force charges n events whether there is room or not, into a debt of at most one
// capacity. It reports false as Take does.
func (l *RunsLaw) Force(r Runs, now, n int64) bool {
	if parts := l.lawFor(r, now); parts != nil {
		return parts.Force(r, now, n)
	}
	return l.log.Force(r, now, n)
}

// Idle reports whether r says nothing more than an empty record does.
func (l *RunsLaw) Idle(r Runs, now int64) bool {
	if n := r.Parts(); n > 0 {
		return l.partsLaw(n).Idle(r, now)
	}
	return l.log.Idle(r, now)
}

// Squeeze makes room in a record that may not grow, by holding events for at most a
// third of the period too long; the limit is never over for it. It reports false
// when the record is too small for that.
func (l *RunsLaw) Squeeze(r Runs, now int64) bool {
	if parts := l.lawFor(r, now); parts != nil {
		return parts.Squeeze(r, now)
	}
	return l.log.Squeeze(r, now)
}
