package lint

import (
	"fmt"
	"math"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// most returns an upper bound for what s admits within any interval of length span.
func most(s tidegate.Spec, span time.Duration) float64 {
	events := float64(s.Events)
	windows := func(length time.Duration) float64 { return math.Ceil(float64(span) / float64(length)) }
	switch s.Algorithm {
	case tidegate.TokenBucket:
		return capacity(s) + math.Floor(events*float64(span)/float64(s.Period))
	case tidegate.LeakyBucket:
		return capacity(s) + math.Ceil(events*float64(span)/float64(s.Period))
	case tidegate.SlidingLog:
		return events * windows(s.Period)
	case tidegate.SubWindows:
		length := s.Period
		if !s.Ceiling {
			length -= s.Period / time.Duration(parts(s)) // a window that is shorter by one part never exceeds the limit
		}
		if length <= 0 {
			return events * (windows(s.Period) + 1)
		}
		return events * windows(length)
	case tidegate.FixedWindow, tidegate.SlidingWindow:
		if s.Ceiling { // no window exceeds the limit
			return events * windows(s.Period)
		}
		return events * (windows(s.Period) + 1)
	case tidegate.Quota:
		return events * (windows(shortest(s.Calendar)) + 1)
	}
	return math.Inf(1)
}

// looks returns how far back s looks at most to decide that it has no room, and how much it must
// have admitted in that time to refuse. A span of 0 means that nothing is known.
func looks(s tidegate.Spec) (span time.Duration, room float64) {
	room = float64(s.Events)
	switch s.Algorithm {
	case tidegate.SlidingLog:
		if s.CountRejected {
			return 0, 0 // refused requests count, too
		}
		return s.Period, room
	case tidegate.FixedWindow:
		return s.Period, room
	case tidegate.SlidingWindow:
		return 2 * s.Period, room
	case tidegate.SubWindows:
		return s.Period + s.Period/time.Duration(parts(s)), room
	case tidegate.Quota:
		return longest(s.Calendar), room
	}
	return 0, 0
}

// makesRedundant reports whether a admits so little that b, which is charged with it, never refuses.
func makesRedundant(a, b tidegate.Spec) bool {
	if b.Algorithm == tidegate.TokenBucket {
		return a.Algorithm == tidegate.TokenBucket && capacity(a) <= capacity(b) && rate(a) <= rate(b)
	}
	if aligned(a, b) {
		return float64(a.Events)*float64(b.Period/a.Period) <= float64(b.Events)
	}
	span, room := looks(b)
	return span > 0 && most(a, span) <= room
}

// aligned reports whether a window of b consists of whole windows of a.
func aligned(a, b tidegate.Spec) bool {
	const fixed = tidegate.FixedWindow
	return a.Algorithm == fixed && b.Algorithm == fixed && b.Period%a.Period == 0
}

// capacity returns how many events s admits at once.
func capacity(s tidegate.Spec) float64 {
	l, err := tidegate.NewLimit(s)
	if err != nil {
		return math.Inf(1)
	}
	return float64(l.Capacity())
}

func rate(s tidegate.Spec) float64 { return float64(s.Events) / s.Period.Seconds() }

func parts(s tidegate.Spec) int {
	if s.Parts == 0 {
		return tidegate.DefaultParts
	}
	return s.Parts
}

const (
	hour = time.Hour
	day  = 24 * hour
)

// shortest and longest return the length of a calendar period in the extreme, including days of 23
// and 25 hours.
func shortest(c tidegate.Calendar) time.Duration {
	return map[tidegate.Calendar]time.Duration{
		tidegate.Day: 23 * hour, tidegate.Week: 7*day - hour, tidegate.Month: 28*day - hour, tidegate.Year: 365*day - hour,
	}[c]
}

func longest(c tidegate.Calendar) time.Duration {
	return map[tidegate.Calendar]time.Duration{
		tidegate.Day: 25 * hour, tidegate.Week: 7*day + hour, tidegate.Month: 31*day + hour, tidegate.Year: 366*day + hour,
	}[c]
}

// knownLimit is a limit with known numbers, one of those that are charged together.
type knownLimit struct {
	rulefile.Limit
	period time.Duration // its length; approximate for a quota
}

// label returns how messages name the limit.
func (b knownLimit) label() string {
	if b.Spec.Algorithm == tidegate.Quota {
		return fmt.Sprintf("the quota of %d a %s", b.Spec.Events, b.Spec.Calendar)
	}
	return diag.Quote(b.Text)
}

// knownLimits returns the limits of t whose numbers are known.
func knownLimits(t rulefile.Terms) []knownLimit {
	var all []knownLimit
	if t.Limits != nil {
		for _, l := range t.Limits.All {
			if l.From == nil {
				all = append(all, knownLimit{l, l.Spec.Period})
			}
		}
	}
	if q := t.Quota; q != nil && q.AnchorFrom == nil {
		all = append(all, knownLimit{rulefile.Limit{Pos: q.Pos, Spec: q.Spec}, longest(q.Spec.Calendar)})
	}
	return all
}

// pairs calls f with every two limits that are charged together, of which a admits so little that b
// never refuses. It looks at the rule's own terms and at each branch that has limits.
func (p *pass) pairs(r *rulefile.Rule, f func(a, b knownLimit)) {
	each := func(t rulefile.Terms) {
		if raised(t.Over) || t.Cost != nil && t.Cost.Settle != "" {
			return // other numbers decide here; what is settled is charged even above a limit
		}
		all := knownLimits(t)
		for i, a := range all {
			p.step(len(all))
			for j, b := range all {
				if i != j && makesRedundant(a.Spec, b.Spec) {
					f(a, b)
				}
			}
		}
	}
	each(r.Terms)
	for i := range r.For {
		if b := &r.For[i]; b.Terms.Limits != nil || b.Terms.Quota != nil {
			each(r.Under(b))
		}
	}
}
