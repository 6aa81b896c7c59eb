package algo

import "tidegate.dev/tidegate"

// CounterLaw is the law of fixed_window and quota: a count per period, which starts at zero.
type CounterLaw struct {
	Events int64
	Brim   int64 // how many may be used: Events less the floor
	limit  *tidegate.Limit
}

// Counter is the state of a key: the period counted, by its start in µs.
type Counter struct {
	Start, Count int64
}

// NewCounterLaw makes the law of a fixed window or a quota.
func NewCounterLaw(l *tidegate.Limit) CounterLaw {
	return CounterLaw{Events: l.Events, Brim: l.Events, limit: l}
}

// advance brings s to now, which lies in span, and returns the end, in ticks, of the period that it
// then counts. If s is ahead by at most a period, it stays in its own period.
func (l *CounterLaw) advance(s Counter, span Span, now int64) (Counter, int64) {
	switch ahead := s.Start*Micro - now; {
	case s.Start < span.Start || s.Count == 0:
		return Counter{Start: span.Start}, span.End * Micro
	case s.Start == span.Start:
		return s, span.End * Micro
	case ahead <= (span.End-span.Start)*Micro:
		return s, SpanAt(l.limit, s.Start*Micro).End * Micro // months differ
	}
	return Counter{Start: span.Start, Count: s.Count}, span.End * Micro
}

// Fit returns how many copies Take would grant.
func (l *CounterLaw) Fit(s Counter, span Span, now int64, a Ask) int64 {
	s, _ = l.advance(s, span, now)
	return a.copies(l.Brim - s.Count)
}

// Take grants what fits and charges it. now lies in span. The state that it returns must be
// kept even if nothing was granted: after a clock step it belongs to another period.
func (l *CounterLaw) Take(s Counter, span Span, now int64, a Ask) (Counter, Verdict) {
	current, end := l.advance(s, span, now)
	k := a.copies(l.Brim - current.Count)
	v := Verdict{Granted: k}
	if k > 0 && a.Cost > 0 {
		current.Count += k * a.Cost
	}
	if current.Count > 0 {
		s = current
	}
	v.Remaining = max(0, l.Brim-current.Count)
	if current.Count > 0 {
		v.Reset = end - now
	}
	switch {
	case k > 0:
	case a.unit() > l.Brim:
		v.Delay = Never
	default:
		v.Delay = end - now
	}
	return s, v
}

// Return gives back n events that were counted in the period charged, if that is still
// the current one.
func (l *CounterLaw) Return(s Counter, span, charged Span, now, n int64) Counter {
	current, _ := l.advance(s, span, now)
	if current.Start != charged.Start {
		return s
	}
	current.Count -= min(n, current.Count)
	return current
}

// Force charges n events whether there is room or not, into a debt of at most one capacity.
func (l *CounterLaw) Force(s Counter, span Span, now, n int64) Counter {
	s, _ = l.advance(s, span, now)
	s.Count = max(s.Count, min(add(s.Count, n), 2*l.Events))
	return s
}

// Idle reports whether s says nothing more than the zero value does.
func (s Counter) Idle(span Span) bool { return s.Count == 0 || s.Start < span.Start }
