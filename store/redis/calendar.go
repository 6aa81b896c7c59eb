package redis

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// dates are the bounds of calendar periods, in µs: of the one that contains an instant, of the
// one before and of those after. The script picks among them by Redis' own time.
type dates []int64

// current reports whether us is in the second of the periods.
func (d dates) current(us int64) bool { return d[1] <= us && us < d[2] }

// maxDates is how many bounds a script can be sent.
const maxDates = 255

// newDates returns the bounds of the period before us, the one that contains it, the one after,
// and more until one ends after the instant until.
func newDates(l *tidegate.Limit, us, until int64) dates {
	now := algo.SpanAt(l, us*algo.Micro)
	d := dates{algo.SpanAt(l, (now.Start-1)*algo.Micro).Start, now.Start, now.End}
	for next := now.End; len(d) < 4 || next <= until && len(d) < maxDates; {
		next = algo.SpanAt(l, next*algo.Micro).End
		d = append(d, next)
	}
	return d
}

// datesAround returns the dates to send now; nil for a limit without a calendar.
func (lim *compiledLimit) datesAround(c *clock) dates {
	if lim.limit.Algorithm != tidegate.Quota {
		return nil
	}
	us := c.redis()
	if d := lim.dates.Load(); d != nil && d.current(us) {
		return *d
	}
	d := newDates(lim.limit, us, us)
	lim.dates.Store(&d)
	return d
}

// extendDates makes dates that include the instant us, which a script did not find.
func (lim *compiledLimit) extendDates(now, us int64) {
	if lim.limit.Algorithm == tidegate.Quota {
		d := newDates(lim.limit, now, max(now, us))
		lim.dates.Store(&d)
	}
}
