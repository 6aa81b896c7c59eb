package rules

import (
	"maps"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// predecessor is a limit of earlier rules that was replaced by one with other counters, because its
// algorithm or period is different. Until what was used before no longer matters in either,
// requests are held to both and charged in both, so that the change gives nobody a fresh allowance.
// Stores need not know about it, and nobody is held longer than by the stricter of the two
// counters.
type predecessor struct {
	limit *tidegate.Limit             // as it was
	tiers map[numbers]*tidegate.Limit // as it was for tiers and branches, by the numbers that each has now, if not limit
	until time.Time

	mu     sync.Mutex                                          // held while stands is replaced
	stands atomic.Pointer[map[*tidegate.Limit]*tidegate.Limit] // see standIn; maps are replaced, never changed
}

// numbers tell the limits of one counter apart: those of a rule, its tiers and its branches.
type numbers struct{ events, capacity int64 }

func numbersOf(l *tidegate.Limit) numbers { return numbers{l.Events, l.Capacity()} }

// replacedBy returns the limit that successor took the place of.
func (p *predecessor) replacedBy(successor *tidegate.Limit) *tidegate.Limit {
	if was := p.tiers[numbersOf(successor)]; was != nil {
		return was
	}
	return p.limit
}

// maxStandIns bounds the stand-ins of one predecessor, since limits can be made from what callers
// send.
const maxStandIns = 1024

// standIn returns a limit that uses the counter of p with the numbers of successor: used events are
// preserved, not the room that was left. Everything else is that of successor, and clients are told
// about that one. ceiling is the limit in force that uses the same counter; nil if there is none.
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
	made := standIn(p.replacedBy(successor), successor, ceiling)
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
	if terms.Handling.Queue = nil; terms.Role != tidegate.Blocks { // only its successor queues
		terms.Handling.Successor = successor
	}
	terms.Handling.Consistency = sharedAs(old) // it uses the old counters
	terms.MaxOver = 0                          // nothing passes above what was used before
	was := old.Spec
	was.OnFull, was.Terms = successor.OnFull, &terms
	was.CountRejected = was.CountRejected && successor.CountRejected
	spec := was
	if terms.Role != tidegate.Blocks { // a block has no numbers: blocked callers stay blocked
		renumber(&spec, old, successor)
		if ceiling != nil && (spec.Algorithm == tidegate.TokenBucket || spec.Algorithm == tidegate.LeakyBucket) {
			spec.Events = min(spec.Events, ceiling.Events) // or what passes now would drain at the pace of before
		}
	}
	if made, err := tidegate.NewLimit(spec); err == nil && made.Identity() == old.Identity() {
		return made
	}
	return tidegate.MustLimit(was) // these numbers are not possible with the old period: keep the old ones
}

// sharedAs returns how a fleet shares the counters of l.
func sharedAs(l *tidegate.Limit) tidegate.Consistency {
	if l.Terms == nil {
		return tidegate.Strict
	}
	return l.Terms.Handling.Consistency
}

// renumber gives spec, a copy of old, the numbers of successor, so that used events are compared
// with those. A longer old period is given more events in proportion, but not more than it had. A
// bucket drains at the faster of both rates, so that nobody waits longer than announced.
func renumber(spec *tidegate.Spec, old, successor *tidegate.Limit) {
	if spec.Algorithm == tidegate.Concurrency {
		spec.Events = successor.Events
		return
	}
	events := min(scaled(successor.Events, period(spec), period(&successor.Spec)), tidegate.MaxCount)
	most := max(successor.Capacity(), min(old.Capacity(), events))
	if spec.Algorithm == successor.Algorithm && spec.Period == successor.Period { // old may be that of another tier
		most = successor.Capacity()
	}
	switch spec.Algorithm {
	case tidegate.TokenBucket:
		spec.Events, spec.Burst = max(spec.Events, events), most
	case tidegate.LeakyBucket:
		spec.Events, spec.Burst = max(spec.Events, events), most-1
	case tidegate.SlidingLog:
		spec.Events = most
		if most > tidegate.MaxLogEvents { // the same counter, read just as strictly
			spec.Algorithm, spec.Ceiling = tidegate.SubWindows, true
		}
	default:
		spec.Events = most
	}
}

// scaled returns events·own/other, rounded up; math.MaxInt64 if it is larger than that.
func scaled(events int64, own, other time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(events), uint64(own))
	lo, carry := bits.Add64(lo, uint64(other-1), 0)
	if hi += carry; hi >= uint64(other) {
		return math.MaxInt64
	}
	n, _ := bits.Div64(hi, lo, uint64(other))
	return int64(min(n, math.MaxInt64))
}

// period returns the period of a limit; for a quota, the longest that its calendar has.
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

// slotLife is for how long the old counter of slots is still looked at: requests renew their slots
// there for as long as they run.
const slotLife = time.Hour

// life returns for how long events counted under l can matter at most. maxWait is how far ahead it
// was booked.
func life(l *tidegate.Limit, maxWait time.Duration) time.Duration {
	switch l.Algorithm {
	case tidegate.TokenBucket, tidegate.LeakyBucket:
		full := lookback(l)
		return full + max(full, maxWait) // Adjust may overdraw it by as much again
	case tidegate.SlidingLog, tidegate.SubWindows:
		return 2 * l.Period // however many parts it was started with
	}
	return lookback(l)
}

// lookback returns for how long l itself would count events from before it was in force.
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
	of    map[string][]*predecessor // by the identity of the limit that replaced them
	until time.Time                 // the latest of all
}

// maxPredecessors bounds the predecessors of one limit; the latest are kept. If rules change more
// often within the memory of the counters, the older ones are dropped.
const maxPredecessors = 8

// attach attaches was, which counts until then, to the limit that has taken its place, unless both use the same counter.
func (ps *predecessors) attach(successor, was *tidegate.Limit, until time.Time) {
	ps.add(successor.Identity(), &predecessor{limit: was, tiers: map[numbers]*tidegate.Limit{numbersOf(successor): was}, until: until})
}

// join makes p, which is not in force yet, also what other is, which uses the same counter: as the one that counts for longer was.
func (p *predecessor) join(other *predecessor) {
	later, same := p.until.Before(other.until), p.until.Equal(other.until)
	if later {
		p.limit, p.until = other.limit, other.until
	}
	for n, was := range other.tiers {
		// Of two tiers that have become one, neither is to be refilled.
		if had := p.tiers[n]; had == nil || later || same && was.Capacity() < had.Capacity() {
			p.tiers[n] = was
		}
	}
}

// add attaches p to the limits with that identity, unless both use the same counter.
func (ps *predecessors) add(identity string, p *predecessor) {
	if p.limit.Identity() == identity {
		return
	}
	all := ps.of[identity]
	for _, had := range all {
		if had.limit.Identity() == p.limit.Identity() {
			had.join(p)
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

// end sets until; it returns nil if there are no predecessors.
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

// appendPredecessors adds checks against the predecessors of the limits of a rule, whose checks
// begin at first, and of which leave is set aside. A counter that has a check already is charged once.
func (st *state) appendPredecessors(dst []tidegate.Check, first, leave int) []tidegate.Check {
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
			if marks := stand.Advisory && isNominal(dst[i].Limit); !marks {
				stand.Floor = rulefile.Leave(stand.Limit.Capacity(), leave)
			}
			switch {
			case is == nil:
				dst = append(dst, stand)
			case stand.Advisory, is.Advisory && isNominal(is.Limit): // it marks below its ceiling again
			case is.Advisory, isNominal(dst[i].Limit) && stand.Limit.Capacity() < is.Limit.Capacity():
				*is = stand // the counter of its ceiling has what was used while the limit was hard
			}
		}
	}
	return dst
}

// sameCounter returns the check that uses the counter of that key and identity; nil if there is none.
func sameCounter(checks []tidegate.Check, key, identity string) *tidegate.Check {
	for i := range checks {
		if checks[i].Key == key && checks[i].Limit.Identity() == identity {
			return &checks[i]
		}
	}
	return nil
}

// predecessorOf returns the predecessor that l stands in for; nil if l is a limit of the rules in
// force.
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
