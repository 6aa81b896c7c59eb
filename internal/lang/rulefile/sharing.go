package rulefile

import (
	"fmt"
	"math"
	"time"

	"tidegate.dev/tidegate"
)

// modes are the words of `consistency` other than strict. Any other word means Strict here.
var modes = map[string]tidegate.Consistency{"leased": tidegate.Leased, "eventual": tidegate.Eventual, "split": tidegate.Split}

// Shares returns how the rule says that a fleet shares the counters of its limits. A rule in
// which requests wait for their turn is strict, in all branches alike: they share counters.
func (r *Rule) Shares() tidegate.Consistency {
	if r.Queues {
		return tidegate.Strict
	}
	return modes[r.Consistency.Text]
}

// Sharing returns how a fleet shares the counters of those limits of the rule that have the
// algorithm a. If that is Strict although the rule says something else, why is the reason;
// otherwise why is "".
func (r *Rule) Sharing(a tidegate.Algorithm) (c tidegate.Consistency, why string) {
	wanted := modes[r.Consistency.Text]
	switch {
	case wanted == tidegate.Strict:
		return tidegate.Strict, ""
	case r.Queues:
		return tidegate.Strict, "requests that wait for their turn cannot be " + wanted.String()
	case !wanted.Suits(a):
		return tidegate.Strict, a.String() + " cannot be " + wanted.String()
	}
	return wanted, ""
}

// Bounds of how long what was taken ahead may be used. They are those of the layer that
// takes leases.
const (
	MaxLease = 100 * time.Millisecond
	MinLease = 20 * time.Millisecond
	// LeaseEach is how many events a lease must have for each instance.
	LeaseEach = 2
)

// Lease is what instances take ahead from a limit that is leased.
type Lease struct {
	Life   time.Duration // for how long it may be used
	Events float64       // at most, in all leases that are out
}

// LeaseOf returns the leases of a limit that so many instances share. An error means that
// there are none, so that the limit is strict, and says why.
func LeaseOf(l *tidegate.Limit, instances int) (Lease, error) {
	perSecond := RateOf(l)
	life := MaxLease
	switch {
	case l.Algorithm == tidegate.TokenBucket: // half of the burst is held back at most, in whole events
		life = min(life, seconds(float64(l.Capacity()/2)/perSecond))
	case l.Period > 0:
		life = min(life, l.Period/2)
	}
	switch {
	case life >= MinLease:
	case l.Algorithm != tidegate.TokenBucket:
		return Lease{}, fmt.Errorf("leases last at least %s, and half of its period at most, which is %s", MinLease, l.Period)
	default:
		need := 2 * math.Ceil(perSecond*MinLease.Seconds())
		return Lease{}, fmt.Errorf("leases last at least %s, for which a burst of %.0f is needed, and it has %d", MinLease, need, l.Capacity())
	}
	events, need := perSecond*life.Seconds(), float64(LeaseEach*max(1, instances))
	if events < need {
		return Lease{}, fmt.Errorf("leases need %.0f events in %s for %s, and it has %s",
			need, life.Round(time.Millisecond), Instances(instances), ShortNumber(events))
	}
	return Lease{Life: life, Events: events}, nil
}

// seconds returns s seconds as a Duration, at most one second: no lease is longer.
func seconds(s float64) time.Duration { return time.Duration(min(s, 1) * float64(time.Second)) }

// RateOf returns how many events per second l admits in the long run.
func RateOf(l *tidegate.Limit) float64 {
	if l.Algorithm == tidegate.Quota {
		return float64(l.Events) / calendarLength[l.Calendar].Seconds()
	}
	return float64(l.Events) / l.Period.Seconds()
}

var calendarLength = map[tidegate.Calendar]time.Duration{
	tidegate.Day: 24 * time.Hour, tidegate.Week: 7 * 24 * time.Hour, tidegate.Month: 31 * 24 * time.Hour, tidegate.Year: 366 * 24 * time.Hour,
}

// Instances returns a number of instances in words; 0 is "one instance", as 1 is.
func Instances(n int) string {
	if n <= 1 {
		return "one instance"
	}
	return fmt.Sprintf("%d instances", n)
}

// ShortNumber returns n with at most two digits after the point. A number below 0.01 has one
// significant digit.
func ShortNumber(n float64) string {
	if n != 0 && math.Abs(n) < 0.01 {
		return fmt.Sprintf("%.1g", n)
	}
	text := fmt.Sprintf("%.2f", n)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	return text
}
