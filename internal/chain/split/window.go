package split

import (
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// windowShare is how a window is divided among instances: into turns of unit events each.
type windowShare struct{ unit, turns int64 }

// of returns how many events an instance has in the window with a number. In every window, the shares
// of all ranks add up to the whole; over n windows, every rank has the same. The remainder goes to
// the first places. So an instance's share of fewer turns is never more than its share of more turns:
// classes together never have more than the limit, nor versions of a limit more than the largest.
func (w windowShare) of(m members, number int64) int64 {
	each := w.turns / m.n
	if place(m, number) < w.turns%m.n {
		each++
	}
	return w.unit * each
}

// place returns the place of an instance in the order of the window with a number, from 0. The order
// rotates by one from window to window.
func place(m members, number int64) int64 {
	j := (m.rank + number) % m.n
	if j < 0 {
		j += m.n
	}
	return j
}

// windowsUntilTurn returns in how many windows an instance has a turn again: at least 1, at most
// maxWindowsAhead.
func (w windowShare) windowsUntilTurn(m members, number int64) int64 {
	ahead := int64(1)
	for ahead < maxWindowsAhead && w.of(m, number+ahead) == 0 {
		ahead++
	}
	return ahead
}

// number returns the number of a window of l; the next window has the next number.
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

// shareOf returns how a window is divided among n instances, for requests of cost unit that have room
// for room events, when part of its time is left. If unit is more than a share, the window is divided
// into turns of unit.
func shareOf(unit, room, n int64, part float64) windowShare {
	w := windowShare{unit: 1, turns: room}
	if part < 1 {
		w.turns = int64(float64(room) * part)
	}
	if unit > room/n {
		w = windowShare{unit: unit, turns: w.turns / unit}
	}
	return w
}

// untilNextTurn returns how many ticks it is from wall until the next window after span in which an
// instance has room for unit, if nothing changes; at most maxWindowsAhead windows.
func untilNextTurn(l *tidegate.Limit, unit, room int64, m members, span algo.Span, wall int64) int64 {
	ahead := int64(1)
	if unit > room/m.n {
		ahead = shareOf(unit, room, m.n, 1).windowsUntilTurn(m, number(l, span))
	}
	if l.Algorithm != tidegate.Quota {
		return (span.End+(ahead-1)*(span.End-span.Start))*algo.Micro - wall
	}
	for range ahead - 1 {
		span = algo.SpanAt(l, span.End*algo.Micro)
	}
	return span.End*algo.Micro - wall
}
