package storetest

import (
	"time"

	"tidegate.dev/tidegate"
)

// runs is the tally of sliding_log and sub_windows, which are counted together. It
// stays in the parts it was begun in until it is empty, but for a log, which is counted
// in parts as soon as it is asked about as such.
type runs struct {
	tally
	parts int // 0 means a log
}

// in returns l in the parts that t is counted in.
func (t *runs) in(l *tidegate.Limit, now time.Time) *tidegate.Limit {
	spec := l.Spec
	spec.CountRejected = false
	if t.parts > 0 {
		spec.Algorithm, spec.Parts = tidegate.SubWindows, t.parts
		spec.Ceiling = l.Ceiling || l.Algorithm == tidegate.SlidingLog
	} else {
		spec.Algorithm, spec.Parts, spec.Ceiling = tidegate.SlidingLog, 0, false
		spec.Events = min(spec.Events, tidegate.MaxLogEvents)
	}
	begun := tidegate.MustLimit(spec)
	t.settle(begun, now.UnixMicro())
	switch {
	case t.parts == l.Parts:
		return l
	case t.goneAt(begun, now.UnixMicro()):
		t.events, t.parts = nil, l.Parts
		return l
	case t.parts > 0:
		return begun
	}
	t.parts = l.Parts
	size, _, _ := shape(l)
	for i := range t.events {
		t.events[i].part /= size
	}
	return l
}

func (t *runs) ask(l *tidegate.Limit, now time.Time, q question) answer {
	return t.tally.ask(t.in(l, now), now, q)
}

func (t *runs) charge(l *tidegate.Limit, now time.Time, r receipt, cost int64) {
	t.tally.charge(t.in(l, now), now, r, cost)
}

func (t *runs) giveBack(l *tidegate.Limit, now time.Time, at, cost int64) {
	t.tally.giveBack(t.in(l, now), now, at, cost)
}

func (t *runs) force(l *tidegate.Limit, now time.Time, cost int64) {
	t.tally.force(t.in(l, now), now, cost)
}

// reject counts what was refused, in a log.
func (t *runs) reject(l *tidegate.Limit, now time.Time, cost, floor int64) {
	if in := t.in(l, now); t.parts == 0 {
		t.tally.reject(in, now, cost, floor)
	}
}
