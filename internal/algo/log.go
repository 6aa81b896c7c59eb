package algo

import (
	"time"

	"tidegate.dev/tidegate"
)

// LogLaw is the law of sliding_log: a stamp in µs per event, and the window (now-Period, now].
type LogLaw struct {
	Events        int64
	Brim          int64 // how many may be used: Events less the floor
	Period        int64 // µs
	CountRejected bool  // refused events are stamped as well
}

// logBits is how many of the 63 bits of an entry hold its count, of up to twice
// tidegate.MaxLogEvents. The other 48 hold the µs since the base, up to 8 years.
const logBits = 15

var logShape = runPacking{bits: logBits}

// NewLogLaw makes the law of a sliding log.
func NewLogLaw(l *tidegate.Limit) LogLaw {
	return LogLaw{Events: l.Events, Brim: l.Events, Period: int64(l.Period / time.Microsecond), CountRejected: l.CountRejected}
}

// MaxEntries returns the most entries that a record can need under this law; a record
// that was written under a higher limit may have more.
func (l *LogLaw) MaxEntries() int { return int(2 * l.Events) }

// advance drops what has left the window and returns the instant to decide at.
func (l *LogLaw) advance(r Runs, now int64) (us int64) {
	us = now / Micro
	if last, ok := logShape.last(r); ok && last > us {
		if last-us > l.Period {
			r.Shift(us - last)
		} else {
			us = last
		}
	}
	for r.len() > 0 {
		if stamp, _ := logShape.at(r, 0); stamp > us-l.Period {
			break
		}
		logShape.drop(r)
	}
	return us
}

// Fit returns how many copies Take would grant.
func (l *LogLaw) Fit(r Runs, now int64, a Ask) int64 {
	l.advance(r, now)
	return a.copies(l.Brim - r.total())
}

// Take grants what fits and charges it. When r is too small it does nothing and
// reports false: the store gives it a larger record and asks again.
func (l *LogLaw) Take(r Runs, now int64, a Ask) (Verdict, bool) {
	us := l.advance(r, now)
	k := a.copies(l.Brim - r.total())
	v := Verdict{Granted: k}
	switch {
	case a.Cost <= 0 || a.Cost > l.Brim:
	case l.CountRejected:
		if !l.stampAll(r, us, a) {
			return Verdict{}, false
		}
	case k > 0:
		if !logShape.fits(r, us) {
			return Verdict{}, false
		}
		logShape.push(r, us, k*a.Cost)
	}
	v.Remaining = max(0, l.Brim-r.total())
	if last, ok := logShape.last(r); ok && r.total() > 0 {
		v.Reset = (last+l.Period)*Micro - now
	}
	switch {
	case k > 0:
	case a.unit() > l.Brim:
		v.Delay = Never
	default:
		v.Delay = l.retry(r, a.unit()) - now
	}
	return v, true
}

// Holds reports whether r has room for one more stamp.
func (l *LogLaw) Holds(r Runs, now int64) bool { return logShape.fits(r, l.advance(r, now)) }

// Reject stamps the copies of an ask that another limit refused, if rejected
// ones count. It reports false as Take does.
func (l *LogLaw) Reject(r Runs, now int64, a Ask) bool {
	if !l.CountRejected || a.Cost <= 0 || a.Cost > l.Brim {
		return true
	}
	return l.stampAll(r, l.advance(r, now), a)
}

// stampAll stamps every copy, granted or not. The oldest events beyond the limit are
// dropped, because they no longer matter. If a higher limit has stamped more events than
// this one allows, that many stay: the next ask may come under that limit again.
func (l *LogLaw) stampAll(r Runs, us int64, a Ask) bool {
	if l.Brim < l.Events && r.total() > l.Brim { // being refused does not use up what is below the floor
		return true
	}
	kept := max(l.Brim, r.total())
	stamps := min(mul(a.Cost, a.Copies), kept)
	room := logShape.fits(r, us)
	for over := r.total() + stamps - kept; over > 0 || !room; {
		if r.len() == 0 {
			return false
		}
		stamp, count := logShape.at(r, 0)
		if !room && count > over {
			return false
		}
		if count > over {
			logShape.takeBack(r, stamp, over)
			break
		}
		logShape.drop(r)
		over -= count
		room = true
	}
	logShape.push(r, us, stamps)
	return true
}

// retry returns the first instant, in ticks, at which cost would pass if nothing else came.
func (l *LogLaw) retry(r Runs, cost int64) int64 {
	left := r.total()
	for i := range r.len() {
		stamp, count := logShape.at(r, i)
		if left -= count; left <= l.Brim-cost {
			return (stamp + l.Period) * Micro
		}
	}
	return 0 // there is always such a stamp
}

// Return removes n stamps made at the instant at, if they are still in the window. An at below 0
// means those made last.
func (l *LogLaw) Return(r Runs, now, at, n int64) {
	l.advance(r, now)
	if at < 0 {
		logShape.takeLast(r, n)
		return
	}
	logShape.takeBack(r, at/Micro, n)
}

// Force stamps n events whether there is room or not, into a debt of at most one
// capacity. It reports false as Take does.
func (l *LogLaw) Force(r Runs, now, n int64) bool {
	us := l.advance(r, now)
	n = min(n, 2*l.Events-r.total())
	if n <= 0 {
		return true
	}
	if !logShape.fits(r, us) {
		return false
	}
	logShape.push(r, us, n)
	return true
}

// Idle reports whether r says nothing more than an empty record does.
func (l *LogLaw) Idle(r Runs, now int64) bool {
	if r.len() == 0 || r.total() == 0 {
		return true
	}
	gone := now/Micro - l.Period
	if r.base() > gone { // quick: no stamp is before the base; reading the last one would mostly miss the cache
		return false
	}
	last, _ := logShape.last(r)
	return last <= gone
}

// Squeeze makes room in a record that may not grow, by holding events for at most
// a third of the period too long; the limit is never over for it. It reports false
// when the record is too small for that.
func (l *LogLaw) Squeeze(r Runs, now int64) bool {
	l.advance(r, now)
	return logShape.squeeze(r, l.Period)
}
