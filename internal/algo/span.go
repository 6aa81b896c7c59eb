package algo

import (
	"time"

	"tidegate.dev/tidegate"
)

// Span is a period [Start, End) in µs since the epoch.
type Span struct {
	Start, End int64
}

// Holds reports whether the instant us lies in the span.
func (s Span) Holds(us int64) bool { return s.Start <= us && us < s.End }

// monday is the first Monday of the epoch, in µs: where weeks are aligned.
const monday = int64(4 * 24 * time.Hour / time.Microsecond)

const week = 7 * 24 * time.Hour

// aligned returns the wall-clock window of length period (µs) that holds us.
func aligned(us, period int64) Span {
	var origin int64
	if period%int64(week/time.Microsecond) == 0 {
		origin = monday
	}
	start := us - floorMod(us-origin, period)
	return Span{start, start + period}
}

func floorMod(a, b int64) int64 {
	if m := a % b; m < 0 {
		return m + b
	} else {
		return m
	}
}

// SpanAt returns the period of a fixed window or quota that contains now, which is in ticks.
func SpanAt(l *tidegate.Limit, now int64) Span {
	us := now / Micro
	if l.Algorithm == tidegate.Quota {
		return calendarSpan(l, us)
	}
	return aligned(us, int64(l.Period/time.Microsecond))
}

// calendarSpan finds the calendar period around us. A period starts at the
// first existing instant of its local date: where clocks jump over midnight,
// the first instant after the jump.
func calendarSpan(l *tidegate.Limit, us int64) Span {
	loc := l.Location()
	y, m, d := time.UnixMicro(us).In(loc).Date()
	from, to := calendarDates(l, date{y, m, d})
	span := Span{firstInstant(from, loc), firstInstant(to, loc)}
	switch { // a clock turned back over midnight shows a date twice
	case us < span.Start:
		from, _ = calendarDates(l, from.plus(-1))
		return Span{firstInstant(from, loc), span.Start}
	case us >= span.End:
		_, to = calendarDates(l, to)
		return Span{span.End, firstInstant(to, loc)}
	}
	return span
}

// calendarDates returns the first day of the period that contains today, and of the next one.
func calendarDates(l *tidegate.Limit, today date) (from, to date) {
	y, m := today.y, today.m
	switch l.Calendar {
	case tidegate.Day:
		from, to = today, today.plus(1)
	case tidegate.Week:
		from = today.plus(-int(today.weekday()+6) % 7)
		to = from.plus(7)
	case tidegate.Month:
		from = anchored(y, m, l.Anchor)
		if today.before(from) {
			m--
			from = anchored(y, m, l.Anchor)
		}
		to = anchored(y, m+1, l.Anchor)
	default:
		from = anchored(y, time.January, l.Anchor)
		if today.before(from) {
			y--
			from = anchored(y, time.January, l.Anchor)
		}
		to = anchored(y+1, time.January, l.Anchor)
	}
	return from, to
}

type date struct {
	y int
	m time.Month
	d int
}

func (a date) utc() time.Time        { return time.Date(a.y, a.m, a.d, 0, 0, 0, 0, time.UTC) }
func (a date) weekday() time.Weekday { return a.utc().Weekday() }
func (a date) before(b date) bool    { return a.utc().Before(b.utc()) }

func (a date) plus(days int) date {
	y, m, d := a.utc().AddDate(0, 0, days).Date()
	return date{y, m, d}
}

// anchored returns the day anchor of the month, or its last day if the month is shorter.
func anchored(y int, m time.Month, anchor int) date {
	first := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	y, m, _ = first.Date()
	return date{y, m, min(anchor, last)}
}

// firstInstant returns the instant, in µs, at which the local date becomes day or later, by binary
// search over the seconds around it. If the date becomes day twice, because the clock is turned
// back just after midnight, it always finds the same of the two instants.
func firstInstant(day date, loc *time.Location) int64 {
	around := day.utc().Unix()
	lo, hi := around-36*3600, around+36*3600
	for lo < hi {
		mid := lo + (hi-lo)/2
		y, m, d := time.Unix(mid, 0).In(loc).Date()
		if (date{y, m, d}).before(day) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo * 1_000_000
}
