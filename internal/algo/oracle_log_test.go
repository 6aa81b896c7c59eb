package algo

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// logOracle keeps the stamp of each single event, in µs.
type logOracle struct {
	limit  *tidegate.Limit
	stamps []int64
}

// inWindow are the stamps in (now-T, now].
func (o *logOracle) inWindow(now int64) (in []int64) {
	us, length := now/1024, int64(o.limit.Period/time.Microsecond)
	for _, s := range o.stamps {
		if us-length < s && s <= us {
			in = append(in, s)
		}
	}
	return in
}

func (o *logOracle) used(now int64) int64 { return int64(len(o.inWindow(now))) }

func (o *logOracle) stamp(now, n int64) {
	for range n {
		o.stamps = append(o.stamps, now/1024)
	}
}

func (o *logOracle) one(now, _, unit, _ int64, charge bool) (bool, int64) {
	if unit > o.limit.Events-o.used(now) {
		return false, 0
	}
	if charge {
		o.stamp(now, unit)
	}
	return true, 0
}

// refused keeps, where rejected events count, the newest as many as the limit.
func (o *logOracle) refused(now, unit, copies int64) {
	if !o.limit.CountRejected || unit > o.limit.Events {
		return
	}
	o.stamps = o.inWindow(now)
	kept := max(o.limit.Events, o.used(now))
	for range min(copies, kept) { // more would push out each other
		o.stamp(now, unit)
		o.stamps = o.stamps[max(0, int64(len(o.stamps))-kept):]
	}
}

func (o *logOracle) remaining(now, _ int64) int64 { return max(0, o.limit.Events-o.used(now)) }

func (o *logOracle) giveBack(now, at, n int64) {
	o.stamps = o.inWindow(now)
	o.stamps = slices.DeleteFunc(o.stamps, func(s int64) bool {
		gone := s == at/1024 && n > 0
		if gone {
			n--
		}
		return gone
	})
}

func (o *logOracle) force(now, n int64) { o.stamp(now, min(n, 2*o.limit.Events-o.used(now))) }

func (o *logOracle) clean(now int64) bool     { return o.used(now) == 0 }
func (o *logOracle) change(l *tidegate.Limit) { o.limit = l }
func (o *logOracle) clone() oracle            { return &logOracle{o.limit, slices.Clone(o.stamps)} }
