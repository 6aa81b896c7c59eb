package tidegate

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Bounds of a Spec. They are what the arithmetic of every store can hold, so
// that a limit means the same in memory and in Redis.
const (
	MinPeriod = time.Millisecond
	MaxPeriod = 366 * 24 * time.Hour
	// MaxPerSecond is the fastest rate of one key: an event then takes 1024
	// ticks of 1/1024 µs, and rounding up to a tick costs at most 0.1 %.
	MaxPerSecond = 1_000_000
	// MaxLogEvents bounds what a SlidingLog remembers per key.
	MaxLogEvents = 10_000
	// MaxCount bounds the events of a counted window.
	MaxCount = 1<<28 - 1
	// MaxParts bounds the parts of SubWindows.
	MaxParts = 1000
	// MaxRefill bounds the time in which a bucket refills, burst/rate.
	MaxRefill = 366 * 24 * time.Hour
	// maxEmission bounds the time one event of a bucket takes.
	maxEmission = 14 * 24 * time.Hour
)

func (s *Spec) complete() {
	if s.Algorithm == Auto {
		switch {
		case s.Terms != nil && s.Terms.Handling.Consistency == Eventual:
			s.Algorithm = SubWindows
		case s.Terms != nil && s.Terms.Handling.Consistency != Strict:
			s.Algorithm = TokenBucket
		case s.Events <= AutoLogEvents:
			s.Algorithm = SlidingLog
		default:
			s.Algorithm = SubWindows
		}
	}
	switch s.Algorithm {
	case TokenBucket:
		if s.Burst == 0 {
			s.Burst = s.Events
		}
	case SubWindows:
		if s.Parts == 0 {
			s.Parts = DefaultParts
		}
	case Quota:
		if s.Anchor == 0 {
			s.Anchor = 1
		}
	}
}

func (s *Spec) check() error {
	if s.Algorithm >= algorithms {
		return fmt.Errorf("unknown %s", s.Algorithm)
	}
	if err := s.checkMaxOver(); err != nil {
		return err
	}
	if s.Algorithm == Deny {
		return s.checkDeny()
	}
	if s.Events <= 0 {
		return fmt.Errorf("events is %d: a limit needs at least 1 (to refuse everything, use an access rule)", s.Events)
	}
	if s.Events > MaxCount {
		return fmt.Errorf("events is %d: at most %d can be counted; use a shorter period", s.Events, int64(MaxCount))
	}
	if s.Algorithm == Quota {
		return s.checkQuota()
	}
	if err := s.checkPeriod(); err != nil {
		return err
	}
	if err := s.checkFit(); err != nil {
		return err
	}
	return s.checkMisplaced()
}

func (s *Spec) checkPeriod() error {
	switch {
	case s.Period < MinPeriod:
		return fmt.Errorf("period is %s: the shortest is %s", s.Period, MinPeriod)
	case s.Period > MaxPeriod:
		return fmt.Errorf("period is %s: the longest is %s; use a quota for months and years", s.Period, MaxPeriod)
	case s.Period%time.Microsecond != 0:
		return fmt.Errorf("period is %s: it must be in whole microseconds", s.Period)
	}
	return nil
}

// checkFit returns an error for numbers that the state of the algorithm cannot represent.
func (s *Spec) checkFit() error {
	if s.Burst < 0 || s.Burst > MaxCount {
		return fmt.Errorf("burst is %d: want 0 to %d", s.Burst, int64(MaxCount))
	}
	perSecond := float64(s.Events) / s.Period.Seconds()
	switch s.Algorithm {
	case TokenBucket, LeakyBucket:
		emission := s.Period.Seconds() / float64(s.Events)
		if emission > maxEmission.Seconds() {
			return fmt.Errorf("%d/%s is slower than one in %s: use a quota", s.Events, s.Period, maxEmission)
		}
		if emission*float64(s.Burst+1) > MaxRefill.Seconds() {
			return fmt.Errorf("burst %d at %d/%s takes longer than %s to refill", s.Burst, s.Events, s.Period, MaxRefill)
		}
		if perSecond > MaxPerSecond {
			return fmt.Errorf("%d/%s is more than %d/s for one key: limit in larger units, with a cost per request", s.Events, s.Period, MaxPerSecond)
		}
	case SlidingLog:
		if s.Events > MaxLogEvents {
			return fmt.Errorf("events is %d: a sliding log keeps at most %d; use sub_windows, with ceiling if it must never be over", s.Events, MaxLogEvents)
		}
	case SubWindows:
		if s.Parts < 1 || s.Parts > MaxParts {
			return fmt.Errorf("parts is %d: want 1 to %d", s.Parts, MaxParts)
		}
		if s.Period/time.Duration(s.Parts) < 10*time.Microsecond {
			return fmt.Errorf("%s in %d parts: a part must be at least 10µs", s.Period, s.Parts)
		}
	case Concurrency:
		if s.Events > MaxLogEvents {
			return fmt.Errorf("slots is %d: at most %d leases are kept per key", s.Events, MaxLogEvents)
		}
	}
	return nil
}

// checkMisplaced returns an error for fields that the algorithm would ignore.
func (s *Spec) checkMisplaced() error {
	switch {
	case s.Burst != 0 && s.Algorithm != TokenBucket && s.Algorithm != LeakyBucket:
		return fmt.Errorf("burst means nothing to %s: use token_bucket", s.Algorithm)
	case s.RawTime && s.Algorithm != TokenBucket:
		return fmt.Errorf("raw time means nothing to %s: use token_bucket", s.Algorithm)
	case s.Parts != 0 && s.Algorithm != SubWindows:
		return fmt.Errorf("parts means nothing to %s: use sub_windows", s.Algorithm)
	case s.Ceiling && s.Algorithm != SubWindows && s.Algorithm != SlidingWindow:
		return fmt.Errorf("ceiling means nothing to %s: use sub_windows or sliding_window", s.Algorithm)
	case s.CountRejected && s.Algorithm != SlidingLog:
		return fmt.Errorf("count_rejected means nothing to %s: use sliding_log", s.Algorithm)
	case s.Calendar != NoCalendar || s.Zone != "" || s.Anchor != 0:
		return fmt.Errorf("calendar, zone and anchor mean nothing to %s: use a quota", s.Algorithm)
	}
	return nil
}

func (s *Spec) checkQuota() error {
	switch {
	case s.Calendar == NoCalendar || s.Calendar > Year:
		return errors.New("a quota needs a calendar period: day, week, month or year")
	case s.Period != 0 || s.Burst != 0 || s.Parts != 0 || s.Ceiling || s.CountRejected:
		return errors.New("a quota has no period, burst, parts, ceiling or count_rejected")
	case s.RawTime:
		return errors.New("raw time means nothing to quota: use token_bucket")
	case s.Anchor < 1 || s.Anchor > 31:
		return fmt.Errorf("anchor is %d: want a day of the month, 1 to 31", s.Anchor)
	case s.Anchor != 1 && s.Calendar != Month && s.Calendar != Year:
		return fmt.Errorf("anchor is %d: only months and years have one", s.Anchor)
	}
	return nil
}

func (s *Spec) checkDeny() error {
	if s.Events != 0 || s.Period != 0 || s.Burst != 0 || s.RawTime || s.Parts != 0 || s.Ceiling || s.CountRejected || s.Calendar != NoCalendar || s.Zone != "" || s.Anchor != 0 {
		return errors.New("an access rule counts nothing: it has a name and nothing else")
	}
	return nil
}

// settled returns the limit for Limit.Settled of a valid spec. Concurrency limits have none: a
// slot counts only while its request is in flight.
func (s Spec) settled() *Limit {
	if s.Terms == nil || s.Terms.AtEnd.Block == nil || s.Algorithm == Concurrency || s.Algorithm == Deny {
		return nil
	}
	s.Scope += "#settled"
	s.CountRejected = false
	s.Terms = &Terms{Rule: s.Terms.Rule, Role: Blocks, Handling: s.Terms.Handling}
	s.Terms.Handling.Queue, s.Terms.Handling.Successor = nil, nil
	return MustLimit(s)
}

// identity returns what Limit.Identity does. Name and scope are preceded by their lengths, so
// that different ones never make the same identity.
func (s *Spec) identity() string {
	id := make([]byte, 0, 128)
	if s.Scope != "" {
		id = append(framed(id, s.Scope), '@')
	}
	return string(s.appendCounter(append(framed(id, s.Name), '/')))
}

// appendCounter appends what tells counters of the same name and scope apart. SubWindows and
// SlidingLog share a counter, whatever the parts: when a limit is raised from 60 to 100 its
// default algorithm changes, and what was used must still count.
func (s *Spec) appendCounter(id []byte) []byte {
	family := s.Algorithm
	if family == SubWindows {
		family = SlidingLog
	}
	id = append(id, family.String()...)
	if s.Terms != nil {
		switch c := s.Terms.Handling.Consistency; {
		case !c.Suits(s.Algorithm):
		case c == Split, c == Eventual: // counted by each instance, not where others count it
			id = append(append(id, '/'), c.String()...)
		}
	}
	id = append(id, '/')
	switch {
	case s.Algorithm == Quota:
		id = append(append(id, s.Calendar.String()...), '/')
		id = append(strconv.AppendInt(id, int64(s.Anchor), 10), '/')
		id = append(id, s.Zone...)
	case s.RawTime: // one counter, whatever the rate
		id = append(id, "raw"...)
	default:
		id = append(id, s.Period.String()...)
	}
	return id
}

// framed appends text and, before it, its length.
func framed(id []byte, text string) []byte {
	id = append(strconv.AppendInt(id, int64(len(text)), 10), ':')
	return append(id, text...)
}
