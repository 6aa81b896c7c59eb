package algo

import (
	"time"

	"tidegate.dev/tidegate"
)

// SlidingLaw is the law of sliding_window: two counts, of which the older is weighed by
// how much of its window is still in view or, with Ceiling, counts whole.
type SlidingLaw struct {
	Events int64
	Brim   int64 // how many may be used: Events less the floor
	Period int64 // µs
	scale
}

// Sliding is the state of a key: the current window by number, its count, and
// the count of the one before.
type Sliding struct {
	Window, Prev, Cur int64
}

// NewSlidingLaw makes the law of a sliding window.
func NewSlidingLaw(l *tidegate.Limit) SlidingLaw {
	period := int64(l.Period / time.Microsecond)
	s := newScale(period, l.Events)
	if l.Ceiling {
		s = undivided(period)
	}
	return SlidingLaw{Events: l.Events, Brim: l.Events, Period: period, scale: s}
}

// mostCounted is the most that is ever counted in a window: a capacity and a debt of another, under whatever limit.
const mostCounted = 2 * tidegate.MaxCount

// view is a state at an instant that lies off units into its window.
type view struct {
	Sliding
	off int64
}

func (l *SlidingLaw) advance(s Sliding, now int64) view {
	us := now / Micro
	window := us / l.Period
	v := view{s, l.units(us - window*l.Period)}
	switch ahead := s.Window - window; {
	case ahead == 0:
	case ahead == -1:
		v.Prev, v.Cur = s.Cur, 0
	case ahead < 0:
		v.Prev, v.Cur = 0, 0
	case ahead == 1: // decide as at its instant
		v.off = 0
		return v
	default: // relabel; it is not known how much of prev had left the view
		v.Cur, v.Prev = min(v.Cur+v.Prev, mostCounted), 0
	}
	v.Window = window
	return v
}

// start returns when the window of v starts, in µs.
func (l *SlidingLaw) start(v view) int64 { return v.Window * l.Period }

// used estimates how many events are in the sliding window.
func (l *SlidingLaw) used(v view) int64 { return v.Cur + l.weigh(v.Prev, v.off) }

// Fit returns how many copies Take would grant.
func (l *SlidingLaw) Fit(s Sliding, now int64, a Ask) int64 {
	v := l.advance(s, now)
	return a.copies(l.Brim - l.used(v))
}

// Take grants what fits and charges it. The state that it returns must be kept even if
// nothing was granted: after a clock step it belongs to another window.
func (l *SlidingLaw) Take(s Sliding, now int64, a Ask) (Sliding, Verdict) {
	at := l.advance(s, now)
	used := l.used(at)
	k := a.copies(l.Brim - used)
	v := Verdict{Granted: k}
	charge := k > 0 && a.Cost > 0
	if charge {
		at.Cur += k * a.Cost
		used += k * a.Cost
	}
	if charge || s.Window > at.Window {
		s = at.Sliding
	}
	v.Remaining = max(0, l.Brim-used)
	if at.Cur > 0 {
		v.Reset = (l.start(at)+2*l.Period)*Micro - now
	} else if at.Prev > 0 {
		v.Reset = (l.start(at)+l.Period)*Micro - now
	}
	switch {
	case k > 0:
	case a.unit() > l.Brim:
		v.Delay = Never
	default:
		v.Delay = l.retry(at, a.unit())*Micro - now
	}
	return s, v
}

// retry returns the first µs at which cost would pass, if nothing else came.
func (l *SlidingLaw) retry(v view, cost int64) int64 {
	if o, ok := l.admits(l.Brim-cost-v.Cur, v.Prev); ok {
		return l.start(v) + l.micros(max(o, v.off))
	}
	next := l.start(v) + l.Period
	if o, ok := l.admits(l.Brim-cost, v.Cur); ok {
		return next + l.micros(o)
	}
	return next + l.Period
}

// Return gives back n events charged at the instant at into the window that
// was charged, if it is still held. Before 0, at means those charged last.
func (l *SlidingLaw) Return(s Sliding, now, at, n int64) Sliding {
	v := l.advance(s, now)
	if at < 0 {
		back := min(n, v.Cur)
		v.Cur -= back
		v.Prev -= min(n-back, v.Prev)
		return v.Sliding
	}
	switch at / Micro / l.Period {
	case v.Window:
		v.Cur -= min(n, v.Cur)
	case v.Window - 1:
		v.Prev -= min(n, v.Prev)
	default:
		return s
	}
	return v.Sliding
}

// Force charges n events whether there is room or not, into a debt of at most one capacity.
func (l *SlidingLaw) Force(s Sliding, now, n int64) Sliding {
	v := l.advance(s, now)
	v.Cur += max(0, min(n, 2*l.Events-l.used(v)))
	return v.Sliding
}

// Idle reports whether s says nothing more than the zero value does.
func (l *SlidingLaw) Idle(s Sliding, now int64) bool {
	v := l.advance(s, now)
	return v.Cur+v.Prev == 0
}
