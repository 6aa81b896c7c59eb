package tidegate

import (
	"errors"
	"fmt"
	"time"
)

// Bounds of Terms.MaxOver, and the longest period of a limit that has one.
const (
	MinMaxOver = time.Second
	MaxMaxOver = 24 * time.Hour
	maxOverFor = 7 * 24 * time.Hour
)

// maxHold is the longest that a hold can last: two periods, as long as some windows count, and
// MaxMaxOver.
const maxHold = 16 * 24 * time.Hour

// grace is what a limit with Terms.MaxOver needs to give way for a while. Both counters are
// kept under the key of the limit.
type grace struct {
	lasts time.Duration
	// marks counts like the limit and only marks.
	marks *Limit
	// open has room for one event, which is taken when a grace begins and is back when it ends.
	open *Limit
	// hold is a bucket of raw time with room for one event. It is empty from the beginning of a
	// grace until the limit has had room for as long as a grace lasts: then another may begin.
	hold *Limit
}

// grace returns the grace of a valid spec; nil without a MaxOver.
func (s Spec) grace() *grace {
	if s.Terms == nil || s.Terms.MaxOver == 0 {
		return nil
	}
	g := &grace{lasts: s.Terms.MaxOver}
	terms := *s.Terms
	terms.Role, terms.MaxOver = Marks, 0
	terms.AtEnd.Block, terms.Handling.Queue, terms.Handling.Defer = nil, nil, nil
	marks := s
	marks.Terms = &terms
	g.marks = MustLimit(marks)
	g.marks.grace = g

	handling := Handling{
		OnStoreFailure: s.Terms.Handling.OnStoreFailure, Final: true,
		NoDenyCache: s.Terms.Handling.NoDenyCache, NoCoalesce: s.Terms.Handling.NoCoalesce,
	}
	own := Spec{
		Name: s.Name, Scope: s.Scope + "#over " + string(s.appendCounter(nil)), OnFull: s.OnFull,
		Algorithm: TokenBucket, Events: 1, Burst: 1, Period: g.lasts,
		Terms: &Terms{Rule: s.Terms.Rule, Role: Blocks, Handling: handling},
	}
	g.open = MustLimit(own)
	own.RawTime, own.Period = true, maxHold/2
	g.hold = MustLimit(own)
	return g
}

// holdFor returns a limit with the counter of hold. Charging two events to it by Store.Adjust makes
// the hold last until at least d from now: an event takes d/2 to refill, and the debt is at most one
// event.
func (g *grace) holdFor(d time.Duration) *Limit {
	const unit = 2 * time.Microsecond
	spec := g.hold.Spec
	spec.Period = (min(d, maxHold) + unit - 1).Truncate(unit) / 2
	return MustLimit(spec)
}

// checkMaxOver returns an error for a MaxOver that the counters of a grace cannot represent.
func (s *Spec) checkMaxOver() error {
	if s.Terms == nil || s.Terms.MaxOver == 0 {
		return nil
	}
	switch over := s.Terms.MaxOver; {
	case s.Algorithm == LeakyBucket || s.Algorithm == Concurrency || s.Algorithm == Deny:
		return fmt.Errorf("a time above the limit means nothing to %s", s.Algorithm)
	case over < MinMaxOver || over > MaxMaxOver || over%time.Microsecond != 0:
		return fmt.Errorf("the time above the limit is %s: want %s to %s, in whole microseconds", over, MinMaxOver, MaxMaxOver)
	case s.Period > maxOverFor || s.Algorithm == Quota && s.Calendar > Week:
		return errors.New("the period is too long for a time above the limit: the longest is a week")
	}
	return nil
}
