package algo

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// counterOracle remembers every charge and in which period it was made; a
// period is only a name here, equal for instants that lie in the same one.
type counterOracle struct {
	limit   *tidegate.Limit
	charges []periodCharge
}

type periodCharge struct {
	period string
	n      int64
}

func (o *counterOracle) period(now int64) string {
	us := now / 1024
	if o.limit.Algorithm == tidegate.Quota {
		return calendarPeriod(o.limit, time.UnixMicro(us))
	}
	t, length := big.NewInt(us), big.NewInt(int64(o.limit.Period/time.Microsecond))
	if week := int64(7 * 24 * time.Hour); int64(o.limit.Period)%week == 0 {
		t.Sub(t, big.NewInt(time.Date(1970, 1, 5, 0, 0, 0, 0, time.UTC).UnixMicro()))
	}
	return t.Div(t, length).String()
}

// calendarPeriod names the calendar period that the local date lies in.
func calendarPeriod(l *tidegate.Limit, t time.Time) string {
	y, m, d := t.In(l.Location()).Date()
	switch l.Calendar {
	case tidegate.Day:
		return fmt.Sprintf("%d-%d-%d", y, m, d)
	case tidegate.Week:
		y, w := t.In(l.Location()).ISOWeek()
		return fmt.Sprintf("%d w%d", y, w)
	case tidegate.Month:
		if d < min(l.Anchor, daysIn(y, m)) {
			if m--; m == 0 {
				y, m = y-1, 12
			}
		}
		return fmt.Sprintf("%d-%d", y, m)
	}
	if m == time.January && d < l.Anchor {
		y--
	}
	return fmt.Sprint(y)
}

func daysIn(y int, m time.Month) int {
	switch {
	case m == time.February && (y%4 == 0 && y%100 != 0 || y%400 == 0):
		return 29
	case m == time.February:
		return 28
	case slices.Contains([]time.Month{time.April, time.June, time.September, time.November}, m):
		return 30
	}
	return 31
}

func (o *counterOracle) used(now int64) (n int64) {
	p := o.period(now)
	for _, c := range o.charges {
		if c.period == p {
			n += c.n
		}
	}
	return n
}

func (o *counterOracle) one(now, _, unit, _ int64, charge bool) (bool, int64) {
	if unit > o.limit.Events-o.used(now) {
		return false, 0
	}
	if charge {
		o.charges = append(o.charges, periodCharge{o.period(now), unit})
	}
	return true, 0
}

func (o *counterOracle) refused(int64, int64, int64) {}

func (o *counterOracle) remaining(now, _ int64) int64 {
	return max(0, o.limit.Events-o.used(now))
}

func (o *counterOracle) giveBack(now, at, n int64) {
	if p := o.period(at); p == o.period(now) {
		o.charges = append(o.charges, periodCharge{p, -min(n, o.used(now))})
	}
}

func (o *counterOracle) force(now, n int64) {
	n = min(n, 2*o.limit.Events-o.used(now))
	if n > 0 {
		o.charges = append(o.charges, periodCharge{o.period(now), n})
	}
}

func (o *counterOracle) clean(now int64) bool     { return o.used(now) == 0 }
func (o *counterOracle) change(l *tidegate.Limit) { o.limit = l }

func (o *counterOracle) clone() oracle {
	return &counterOracle{o.limit, slices.Clone(o.charges)}
}
