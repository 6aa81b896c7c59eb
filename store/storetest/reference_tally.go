package storetest

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// tally is every algorithm that counts by time: windows, parts, calendar
// periods, and the log, whose parts are single microseconds. It keeps a list of
// what was taken and in which part.
type tally struct {
	events []event // in the order of their parts
}

type event struct {
	part, count int64
	receipt
}

// shape returns how the parts of a limit count by their age: those younger than
// whole in full; the one of just that age, if leaving, by how much of it is
// still in view, or, with ceiling, in full.
func shape(l *tidegate.Limit) (size, whole int64, leaving bool) {
	period := l.Period.Microseconds()
	switch l.Algorithm {
	case tidegate.SlidingLog:
		return 1, period, false
	case tidegate.SlidingWindow:
		return period, 1, true
	case tidegate.SubWindows:
		n := int64(l.Parts)
		return (period + n - 1) / n, n, true
	}
	return period, 1, false // fixed window, quota
}

// partAt returns the part that holds us, and how far into it us lies.
func partAt(l *tidegate.Limit, us int64) (part, off int64) {
	if l.Algorithm == tidegate.Quota {
		return calendarPart(l, us), 0
	}
	size, _, _ := shape(l)
	const week = int64(7 * 24 * time.Hour / time.Microsecond)
	if l.Algorithm == tidegate.FixedWindow && size%week == 0 {
		us -= week * 4 / 7 // the epoch was a Thursday, weeks start on Monday
	}
	return us / size, us % size
}

// calendarPart numbers calendar periods such that the next has the next number.
func calendarPart(l *tidegate.Limit, us int64) int64 {
	t := time.UnixMicro(us).In(l.Location())
	y, m, d := t.Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
	months := int64(y)*12 + int64(m) - 1
	before := func(year int, month time.Month) bool {
		last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
		return m == month && d < min(l.Anchor, last)
	}
	switch l.Calendar {
	case tidegate.Day:
		return day
	case tidegate.Week:
		return (day + 3) / 7
	case tidegate.Month:
		if before(y, m) {
			months--
		}
		return months
	}
	if before(y, time.January) {
		return int64(y) - 1
	}
	return int64(y)
}

func (t *tally) last() int64 {
	if len(t.events) == 0 {
		return 0
	}
	return t.events[len(t.events)-1].part
}

// settle moves what lies more than a period ahead, after the clock was set
// back, to now. A part that was leaving would weigh less there, by chance of the
// clock: it stays for a part longer.
func (t *tally) settle(l *tidegate.Limit, us int64) {
	_, whole, leaving := shape(l)
	part, _ := partAt(l, us)
	if shift := part - t.last(); len(t.events) > 0 && -shift > whole {
		for i := range t.events {
			e := &t.events[i]
			if e.part += shift; leaving && e.part == part-whole {
				e.part++
			}
		}
	}
	for len(t.events) > 0 && t.events[0].part < part-whole {
		t.events = t.events[1:]
	}
}

// usedAt returns what counts at us.
func (t *tally) usedAt(l *tidegate.Limit, us int64) (used int64) {
	size, whole, leaving := shape(l)
	part, off := partAt(l, us)
	if len(t.events) > 0 && t.last() > part { // decide as at its instant
		part, off = t.last(), 0
	}
	var old int64
	for _, e := range t.events {
		switch age := part - e.part; {
		case age < whole:
			used += e.count
		case age == whole && leaving:
			old += e.count
		}
	}
	if l.Ceiling {
		return used + old
	}
	return used + old*(size-off)/max(size, 1)
}

// goneAt reports whether nothing is in view any more at us.
func (t *tally) goneAt(l *tidegate.Limit, us int64) bool {
	if len(t.events) == 0 {
		return true
	}
	_, whole, leaving := shape(l)
	part, _ := partAt(l, us)
	age := part - t.last()
	return age > whole || age == whole && !leaving
}

// when returns how long after now ok first holds; what holds once holds for ever
// after, so the microsecond can be searched for.
func when(l *tidegate.Limit, now time.Time, ok func(us int64) bool) time.Duration {
	longest := 3 * l.Period
	if l.Algorithm == tidegate.Quota {
		longest = 3 * 366 * 24 * time.Hour
	}
	lo := now.UnixMicro()
	for hi := lo + longest.Microseconds(); lo < hi; {
		if mid := lo + (hi-lo)/2; ok(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return time.UnixMicro(lo).Sub(now)
}

func (t *tally) ask(l *tidegate.Limit, now time.Time, q question) answer {
	us := now.UnixMicro()
	t.settle(l, us)
	free := l.Events - t.usedAt(l, us)
	a := answer{ok: q.need() <= free, remaining: max(0, free-q.floor)}
	if !t.goneAt(l, us) {
		a.reset = when(l, now, func(us int64) bool { return t.goneAt(l, us) })
	}
	if !a.ok && q.need() <= l.Events {
		a.retry = when(l, now, func(us int64) bool { return q.need() <= l.Events-t.usedAt(l, us) })
	}
	return a
}

func (t *tally) add(l *tidegate.Limit, us int64, r receipt, count int64) {
	part, _ := partAt(l, us)
	if len(t.events) > 0 {
		part = max(part, t.last())
	}
	t.events = append(t.events, event{part, count, r})
}

func (t *tally) charge(l *tidegate.Limit, now time.Time, r receipt, cost int64) {
	us := now.UnixMicro()
	t.settle(l, us)
	t.add(l, us, r, cost)
}

func (t *tally) giveBack(l *tidegate.Limit, now time.Time, at, cost int64) {
	t.settle(l, now.UnixMicro())
	for i := range slices.Backward(t.events) {
		if e := &t.events[i]; at < 0 || e.grant == at || e.copy == at {
			back := min(cost, e.count)
			e.count -= back
			cost -= back
		}
	}
	t.forgetEmpty()
}

func (t *tally) forgetEmpty() {
	t.events = slices.DeleteFunc(t.events, func(e event) bool { return e.count == 0 })
}

func (t *tally) force(l *tidegate.Limit, now time.Time, cost int64) {
	us := now.UnixMicro()
	t.settle(l, us)
	if used := t.usedAt(l, us); used < 2*l.Events {
		t.add(l, us, receipt{}, min(cost, 2*l.Events-used))
	}
}

// reject counts what was refused; beyond what the asker may use the oldest are forgotten.
// What is below its floor it does not use up, nor keep others from using.
func (t *tally) reject(l *tidegate.Limit, now time.Time, cost, floor int64) {
	us := now.UnixMicro()
	t.settle(l, us)
	if floor > 0 && t.usedAt(l, us) > l.Events-floor {
		return
	}
	t.add(l, us, receipt{}, cost)
	used := t.usedAt(l, us)
	_, whole, _ := shape(l)
	for i := range t.events {
		if e := &t.events[i]; t.last()-e.part < whole { // it counts
			drop := min(e.count, max(0, used-l.Events+floor))
			e.count -= drop
			used -= drop
		}
	}
	t.forgetEmpty()
}
