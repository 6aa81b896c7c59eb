package rules

import (
	"maps"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// predecessor is a limit of rules that were in force before, in whose place there is one
// that counts elsewhere: by another algorithm, or over another period. Until what was used
// before counts in neither, requests are held to both and charged in both, so that the change
// refills nobody. It needs nothing of stores, and nobody is held longer than one of both
// counters says.
type predecessor struct {
	limit *tidegate.Limit // as it was
	until time.Time

	mu     sync.Mutex                                          // held while stands is replaced
	stands atomic.Pointer[map[*tidegate.Limit]*tidegate.Limit] // see standIn; never written
}

// maxStandIns bounds how many of one predecessor are kept, as limits can be made of what
// callers say.
const maxStandIns = 1024

// standIn is the limit that counts where p did with the numbers of successor: what is
// preserved are used events. Everything else is as its successor has it, and clients are
// told of that one. ceiling is the limit in force that counts there as well, nil if there is none.
func (p *predecessor) standIn(successor, ceiling *tidegate.Limit) *tidegate.Limit {
	if made := p.made(successor); made != nil {
		return made
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if made := p.made(successor); made != nil {
		return made
	}
	after := make(map[*tidegate.Limit]*tidegate.Limit)
	if before := p.stands.Load(); before != nil && len(*before) < maxStandIns {
		maps.Copy(after, *before)
	}
	made := standIn(p.limit, successor, ceiling)
	after[successor] = made
	p.stands.Store(&after)
	return made
}

func (p *predecessor) made(successor *tidegate.Limit) *tidegate.Limit {
	if all := p.stands.Load(); all != nil {
		return (*all)[successor]
	}
	return nil
}

func standIn(old, successor, ceiling *tidegate.Limit) *tidegate.Limit {
	terms := *successor.Terms
	if terms.Answer.Nominal == nil {
		terms.Answer.Nominal = successor
	}
	if terms.Handling.Queue = nil; terms.Role != tidegate.Blocks { // the queue is its successor's
		terms.Handling.Successor = successor
	}
	terms.Handling.Consistency = sharedAs(old) // its counters are where they were
	terms.MaxOver = 0                          // nobody passes above what was used before
	was := old.Spec
	was.OnFull, was.Terms = successor.OnFull, &terms
	was.CountRejected = was.CountRejected && successor.CountRejected
	spec := was
	if terms.Role != tidegate.Blocks { // a block is no number: somebody blocked stays so
		renumber(&spec, old, successor)
		if ceiling != nil && (spec.Algorithm == tidegate.TokenBucket || spec.Algorithm == tidegate.LeakyBucket) {
			spec.Events = min(spec.Events, ceiling.Events) // or what passes now would drain at the pace of before
		}
	}
	if made, err := tidegate.NewLimit(spec); err == nil && made.Identity() == old.Identity() {
		return made
	}
	return tidegate.MustLimit(was) // the numbers do not fit into the period
}

// sharedAs is how a fleet shares the counters of l.
func sharedAs(l *tidegate.Limit) tidegate.Consistency {
	if l.Terms == nil {
		return tidegate.Strict
	}
	return l.Terms.Handling.Consistency
}

// renumber gives spec, made of old, the numbers of a successor, so that used events are held
// against those. An old period that is longer may have had room for more; it does not get
// more than it had for being longer. A bucket drains at the faster pace: what was used there
// holds nobody for longer than was told.
func renumber(spec *tidegate.Spec, old, successor *tidegate.Limit) {
	if spec.Algorithm == tidegate.Concurrency {
		spec.Events = successor.Events
		return
	}
	events := min(scaled(successor.Events, period(spec), period(&successor.Spec)), tidegate.MaxCount)
	most := max(successor.Capacity(), min(old.Capacity(), events))
	if spec.Algorithm == successor.Algorithm && spec.Period == successor.Period { // of whatever tier old was
		most = successor.Capacity()
	}
	switch spec.Algorithm {
	case tidegate.TokenBucket:
		spec.Events, spec.Burst = max(spec.Events, events), most
	case tidegate.LeakyBucket:
		spec.Events, spec.Burst = max(spec.Events, events), most-1
	case tidegate.SlidingLog:
		spec.Events = most
		if most > tidegate.MaxLogEvents { // the same counter, read as strictly
			spec.Algorithm, spec.Ceiling = tidegate.SubWindows, true
		}
	default:
		spec.Events = most
	}
}

// scaled is events·own/other, rounded up.
func scaled(events int64, own, other time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(events), uint64(own))
	lo, carry := bits.Add64(lo, uint64(other-1), 0)
	if hi += carry; hi >= uint64(other) {
		return math.MaxInt64
	}
	n, _ := bits.Div64(hi, lo, uint64(other))
	return int64(min(n, math.MaxInt64))
}

// period is that of a limit; the longest that a calendar has, for a quota.
func period(s *tidegate.Spec) time.Duration {
	const day = 24 * time.Hour
	switch {
	case s.Algorithm != tidegate.Quota:
		return s.Period
	case s.Calendar == tidegate.Day:
		return day + time.Hour
	case s.Calendar == tidegate.Week:
		return 7*day + time.Hour
	case s.Calendar == tidegate.Month:
		return 31*day + time.Hour
	}
	return 366 * day
}

// slotLife is for how long requests that hold slots are looked for where they were before:
// they renew them for as long as they run.
const slotLife = time.Hour

// life is for how long what was counted under l can count at most. maxWait is how far it
// was booked ahead.
func life(l *tidegate.Limit, maxWait time.Duration) time.Duration {
	switch l.Algorithm {
	case tidegate.TokenBucket, tidegate.LeakyBucket:
		full := lookback(l)
		return full + max(full, maxWait) // what is charged unasked may be as much again
	case tidegate.SlidingLog, tidegate.SubWindows:
		return 2 * l.Period // in whatever parts it was begun
	}
	return lookback(l)
}

// lookback is for how long l itself would count what was used before it was in force.
func lookback(l *tidegate.Limit) time.Duration {
	switch l.Algorithm {
	case tidegate.TokenBucket, tidegate.LeakyBucket: // until it has refilled
		return time.Duration(min(scaled(l.Capacity(), l.Period, time.Duration(l.Events)), int64(tidegate.MaxRefill)))
	case tidegate.SubWindows:
		return l.Period + l.Period/time.Duration(l.Parts) + time.Microsecond
	case tidegate.SlidingWindow:
		return 2 * l.Period
	case tidegate.Concurrency:
		return max(l.Period, slotLife)
	}
	return period(&l.Spec)
}

// predecessors of the limits in force.
type predecessors struct {
	of    map[string][]*predecessor // by the identity of the limit that took their place
	until time.Time                 // of the last of them
}

// maxPredecessors of one limit, the latest of them: rules that change more often than
// that, within what the counters remember, are not followed.
const maxPredecessors = 8

// add attaches p to the limit of an identity, unless that counts there itself.
func (ps *predecessors) add(identity string, p *predecessor) {
	if p.limit.Identity() == identity {
		return
	}
	all := ps.of[identity]
	for i, had := range all {
		if had.limit.Identity() == p.limit.Identity() {
			if had.until.Before(p.until) {
				all[i] = p
			}
			return
		}
	}
	if len(all) >= maxPredecessors {
		all = all[1:]
	}
	if ps.of == nil {
		ps.of = make(map[string][]*predecessor)
	}
	ps.of[identity] = append(all[:len(all):len(all)], p)
}

// end finds when the last of them ends; nil when there are none.
func (ps *predecessors) end() *predecessors {
	if len(ps.of) == 0 {
		return nil
	}
	for _, all := range ps.of {
		for _, p := range all {
			if p.until.After(ps.until) {
				ps.until = p.until
			}
		}
	}
	return ps
}

// appendPredecessors adds what the checks of a rule, which begin at first, are also held to.
// A counter that is among them already is charged once.
func (st *state) appendPredecessors(dst []tidegate.Check, first int) []tidegate.Check {
	for i, n := first, len(dst); i < n; i++ {
		for _, p := range st.before.of[dst[i].Limit.Identity()] {
			if !st.now.Before(p.until) {
				continue
			}
			stand := dst[i]
			is := sameCounter(dst[first:], stand.Key, p.limit.Identity())
			var ceiling *tidegate.Limit
			if is != nil {
				ceiling = is.Limit
			}
			stand.Limit = p.standIn(stand.Limit, ceiling)
			stand.Floor = min(stand.Floor, stand.Limit.Capacity()-1) // of whatever numbers it has
			switch {
			case is == nil:
				dst = append(dst, stand)
			case stand.Advisory, is.Advisory && isNominal(is.Limit): // it marks below its ceiling again
			case is.Advisory, isNominal(dst[i].Limit) && stand.Limit.Capacity() < is.Limit.Capacity():
				*is = stand // its ceiling counts what was used of it when it was hard
			}
		}
	}
	return dst
}

// sameCounter returns the one of checks that is about a counter; nil if there is none.
func sameCounter(checks []tidegate.Check, key, identity string) *tidegate.Check {
	for i := range checks {
		if checks[i].Key == key && checks[i].Limit.Identity() == identity {
			return &checks[i]
		}
	}
	return nil
}

// predecessorOf returns the one that l stands in for, nil if l is of the rules in force.
func (st *state) predecessorOf(checks []tidegate.Check, l *tidegate.Limit) *predecessor {
	if st.before == nil {
		return nil
	}
	for i := range checks {
		for _, p := range st.before.of[checks[i].Limit.Identity()] {
			if p.made(checks[i].Limit) == l {
				return p
			}
		}
	}
	return nil
}
