package tidegate

import (
	"fmt"
	"strconv"
	"time"
)

// Spec describes a limit: so many Events per Period, counted by an Algorithm.
// Events and Period are needed, everything else has a default.
type Spec struct {
	// Name tells counters apart: two limits of the same name, scope, algorithm and
	// period in one store share their counters, whatever their numbers.
	Name string
	// Scope says who is counted and for what, such as "user" or "ip": it tells
	// counters apart like Name, and clients are not told.
	Scope string
	// Events that may pass in a Period. For Concurrency: the slots.
	Events int64
	// Period, at least a millisecond and in whole microseconds. For
	// Concurrency: the lease, after which a slot not renewed is free again.
	// For Quota it must be 0.
	Period time.Duration
	// Algorithm; the zero value is Auto.
	Algorithm Algorithm
	// Burst, for TokenBucket: how many may pass at once; 0 means Events.
	// For LeakyBucket: the places in the queue behind the one being served.
	Burst int64
	// RawTime, for TokenBucket: the store keeps only the instant at which the bucket will be
	// full again, whatever limit it was charged under. A change of limit then does not convert
	// it, and the period is not part of the limit's identity. This is how redis-cell counts;
	// without RawTime, a change of limit keeps the number of used events.
	RawTime bool
	// Parts of SubWindows; 0 means DefaultParts.
	Parts int
	// Ceiling, for SubWindows and SlidingWindow: count the oldest part whole, so that no
	// window is ever over the limit.
	Ceiling bool
	// CountRejected, for SlidingLog: refused events count as well.
	CountRejected bool
	// Calendar, for Quota: the unit of the calendar period.
	Calendar Calendar
	// Zone, for Quota: a time zone such as "Asia/Seoul"; "" means UTC.
	Zone string
	// Anchor, for Quota by Month or Year: the day of the month on which the
	// period starts; 0 means 1; beyond the month means its last day.
	Anchor int
	// OnFull says what a bounded store does with a new key when it has no
	// room left. The default evicts a key with little left to remember.
	OnFull OnFull
	// Terms are what a rule says beyond the numbers; nil says nothing.
	Terms *Terms
}

// OnFull is what happens at a store's memory bound.
type OnFull uint8

const (
	// EvictLeast drops the keys with the least to remember. Keys that still
	// hold somebody back go last. Each one dropped is counted.
	EvictLeast OnFull = iota
	// RefuseNew refuses new keys while all the room is held by keys that
	// still hold somebody back.
	RefuseNew
)

// Calendar is the unit of a Quota.
type Calendar uint8

const (
	NoCalendar Calendar = iota
	Day
	Week
	Month
	Year
)

var calendarNames = [...]string{"none", "day", "week", "month", "year"}

// String gives the name used in rule files, for example "month".
func (c Calendar) String() string {
	if int(c) < len(calendarNames) {
		return calendarNames[c]
	}
	return fmt.Sprintf("calendar(%d)", uint8(c))
}

// Limit is a valid Spec, completed with its defaults.
// It is immutable and meant to be shared: make it once, not per request.
type Limit struct {
	Spec
	identity string
	location *time.Location
	settled  *Limit // see Settled
	grace    *grace // nil without Terms.MaxOver
}

// NewLimit checks spec and fills in its defaults.
func NewLimit(spec Spec) (*Limit, error) {
	spec.complete()
	if err := spec.check(); err != nil {
		return nil, fmt.Errorf("limit %q: %w", spec.Name, err)
	}
	l := &Limit{Spec: spec, location: time.UTC}
	if spec.Zone != "" {
		loc, err := time.LoadLocation(spec.Zone)
		if err != nil {
			return nil, fmt.Errorf("limit %q: zone: %w", spec.Name, err)
		}
		l.location = loc
	}
	l.identity = spec.identity()
	l.settled = spec.settled()
	l.grace = spec.grace()
	return l, nil
}

// MustLimit is NewLimit for specs written in code; it panics on an invalid one.
func MustLimit(spec Spec) *Limit {
	l, err := NewLimit(spec)
	if err != nil {
		panic("tidegate: " + err.Error())
	}
	return l
}

// Per returns a limit of events per period with every default. Like the shorthands
// below it panics when the numbers are not valid.
func Per(events int64, period time.Duration) *Limit {
	return MustLimit(Spec{Events: events, Period: period})
}

// PerSecond is shorthand for Per(events, time.Second).
func PerSecond(events int64) *Limit { return Per(events, time.Second) }

// PerMinute is shorthand for Per(events, time.Minute).
func PerMinute(events int64) *Limit { return Per(events, time.Minute) }

// PerHour is shorthand for Per(events, time.Hour).
func PerHour(events int64) *Limit { return Per(events, time.Hour) }

// PerDay is shorthand for Per(events, 24*time.Hour).
func PerDay(events int64) *Limit { return Per(events, 24*time.Hour) }

// Slots is shorthand for a Concurrency limit: n at a time, each held on a lease.
func Slots(n int64, lease time.Duration) *Limit {
	return MustLimit(Spec{Events: n, Period: lease, Algorithm: Concurrency})
}

// Identity names the counters this limit is counted in. Limits that differ
// only in their numbers (events, burst) have the same one, so that raising a
// limit, or a change of tier, keeps what was used.
func (l *Limit) Identity() string { return l.identity }

// CounterSpec returns a Spec by which a store can write down which counters it has. A limit made
// from it has the same Identity; of the Terms it has only what the Identity depends on.
func (l *Limit) CounterSpec() Spec {
	spec := l.Spec
	spec.Terms = nil
	if l.Terms != nil {
		if c := l.Terms.Handling.Consistency; c == Split || c == Eventual {
			spec.Terms = &Terms{Handling: Handling{Consistency: c, OnPartition: l.Terms.Handling.OnPartition}}
		}
	}
	return spec
}

// Sheds reports whether the limit is an access rule that refuses for want of capacity.
func (l *Limit) Sheds() bool { return l.Terms != nil && l.Terms.Role == Sheds }

// Settled returns a limit of the same numbers with a counter of its own, which counts only
// requests whose outcome is known; nil unless the Terms have a Block. A Gate charges it when a
// request ends whose charge may be given back. A refusal starts the Block only if Settled
// would refuse as well.
func (l *Limit) Settled() *Limit { return l.settled }

// Beside returns limits whose counters a Gate keeps beside that of l, under the same keys.
// Reset them together with l.
func (l *Limit) Beside() []*Limit {
	var all []*Limit
	if l.settled != nil {
		all = append(all, l.settled)
	}
	if l.grace != nil {
		all = append(all, l.grace.open, l.grace.hold)
	}
	return all
}

// Turn returns, for a LeakyBucket, how long after the first event of a charge the event after
// n others has its turn, in ticks of 1/1024 µs; 0 for the other algorithms. To return all but
// the first n events of a charge, add it to Receipt.At.
func (l *Limit) Turn(n int64) int64 {
	if l.Algorithm != LeakyBucket {
		return 0
	}
	period := int64(l.Period/time.Microsecond) * 1024
	em := period / l.Events
	if period%l.Events != 0 {
		em++
	}
	return min(n, MaxCount) * em
}

// Location returns the zone of a Quota; UTC for other algorithms.
func (l *Limit) Location() *time.Location { return l.location }

// String describes the limit for logs and messages: "100/1m0s token_bucket burst 20".
func (l *Limit) String() string {
	b := make([]byte, 0, 64) // without fmt: every refusal has it in its slip
	if l.Name != "" {
		b = append(append(b, l.Name...), ": "...)
	}
	switch l.Algorithm {
	case Quota:
		b = append(append(strconv.AppendInt(b, l.Events, 10), '/'), l.Calendar.String()...)
		b = append(b, " quota"...)
	case Concurrency:
		b = append(append(strconv.AppendInt(b, l.Events, 10), " slots, lease "...), l.Period.String()...)
	case Deny:
		b = append(b, "deny"...)
	default:
		b = append(append(strconv.AppendInt(b, l.Events, 10), '/'), l.Period.String()...)
		b = append(append(b, ' '), l.Algorithm.String()...)
	}
	if l.Algorithm == TokenBucket || l.Algorithm == LeakyBucket {
		b = strconv.AppendInt(append(b, " burst "...), l.Burst, 10)
	}
	return string(b)
}

// Capacity returns the most that can pass at one instant, which is what Remaining starts from.
func (l *Limit) Capacity() int64 {
	switch l.Algorithm {
	case TokenBucket:
		return l.Burst
	case LeakyBucket:
		return l.Burst + 1
	}
	return l.Events
}
