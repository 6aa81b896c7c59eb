package split

import (
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// windowShare is how a window is divided: into so many turns of a unit of events.
type windowShare struct{ unit, turns int64 }

// of is how many events an instance has in the window with a number. The sum over all ranks
// is what there is, in every window, and every rank has the same over n windows.
func (w windowShare) of(m members, number int64) int64 {
	j := place(m, number)
	return w.unit * ((j+1)*w.turns/m.n - j*w.turns/m.n)
}

func place(m members, number int64) int64 {
	j := (m.rank + number) % m.n
	if j < 0 {
		j += m.n
	}
	return j
}

// windowsUntilTurn is in how many windows an instance has a turn again; at least 1.
func (w windowShare) windowsUntilTurn(m members, number int64) int64 {
	j := place(m, number)
	passed := (j + 1) * w.turns / m.n
	return ((passed+1)*m.n+w.turns-1)/w.turns - 1 - j
}

// number counts the windows of a limit: the next one has the next number.
func number(l *tidegate.Limit, span algo.Span) int64 {
	if l.Algorithm != tidegate.Quota {
		return span.Start / int64(l.Period/time.Microsecond)
	}
	y, m, d := time.UnixMicro(span.Start).In(l.Location()).Date()
	days := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60)
	switch l.Calendar {
	case tidegate.Day:
		return days
	case tidegate.Week:
		return days / 7
	case tidegate.Month:
		return int64(y)*12 + int64(m)
	}
	return int64(y)
}

// maxWindowsAhead bounds how many windows are looked ahead.
const maxWindowsAhead = 1000

// untilNextTurn is how many ticks it is until a window after span in which an instance has
// room for unit, if nothing changes.
func untilNextTurn(l *tidegate.Limit, unit, room int64, m members, span algo.Span, wall int64) int64 {
	ahead := int64(1)
	if unit > room/m.n {
		ahead = min(windowShare{unit, room / unit}.windowsUntilTurn(m, number(l, span)), maxWindowsAhead)
	}
	if l.Algorithm != tidegate.Quota {
		return (span.End+(ahead-1)*(span.End-span.Start))*algo.Micro - wall
	}
	for range ahead - 1 {
		span = algo.SpanAt(l, span.End*algo.Micro)
	}
	return span.End*algo.Micro - wall
}
