package ledger

import (
	"cmp"
	"slices"
	"time"
)

// Pay takes tokens from the shared bucket, if as many as spare remain above the floor afterwards. It
// returns how many remain above the floor, and whether there were enough.
type Pay func(tokens, spare int64) (left int64, enough bool)

// What a Pay returns instead of how many remain.
const (
	Unknown = -1 // the shared bucket has not said that
	Away    = -2 // the shared bucket does not answer, and a share of it was asked instead
)

// Tick returns the assignments that are due. Call it several times per Renewal, and when there is a
// new node. pay is only called for limits that are paid ahead.
func (l *Ledger) Tick(now time.Duration, pay Pay) (due []Assignment) {
	l.advance(now)
	l.forget()
	all := l.aims()
	lack := slices.ContainsFunc(all, func(a *aim) bool { return a.lacks })
	var dues []*aim
	for _, a := range all {
		if a.keep = a.keeps(l, lack, now); a.next <= now {
			dues = append(dues, a)
		}
	}
	// Extensions first, then the nodes that have the smallest part of their targets.
	slices.SortStableFunc(dues, func(a, b *aim) int {
		return cmp.Or(compareBool(b.keep, a.keep), cmp.Compare(a.has(), b.has()))
	})
	l.prepay(dues, now, pay)
	short := false
	for _, a := range dues {
		a.keep = a.keep || a.keeps(l, lack, now) // those before it have used up what it wants
		t, paid := l.assign(a, now, pay)
		if !paid {
			short = true
			continue // it expires unless it can be paid soon
		}
		a.next = now + l.times.Renewal()
		due = append(due, t)
	}
	l.steer(now, all, short)
	return due
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// has returns the part of its target that a node has.
func (a *aim) has() float64 { return float64(a.now.Fill) / a.target }

// keeps reports whether the assignment of a node should be extended.
func (a *aim) keeps(l *Ledger, lack bool, now time.Duration) bool {
	if !a.extends(l, now) {
		return false
	}
	fits := l.fits(a, lack) && !l.poor(a)
	settling := now-a.changed < l.times.Out() && a.has() > 0.5 && a.has() < 2
	return fits || settling
}

// poor reports whether a node got a small bucket for lack of tokens, and there are more now.
func (l *Ledger) poor(a *aim) bool {
	if l.ahead != nil {
		return false
	}
	for _, size := range []int64{useful(a.now.Strategy), l.most(a.now.Fill)} {
		if a.now.Max*4 <= size && l.fund/4 >= float64(size) {
			return true
		}
	}
	return false
}

// assign returns the next assignment of a node, or false if an extension cannot be paid.
func (l *Ledger) assign(a *aim, now time.Duration, pay Pay) (Assignment, bool) {
	if now < l.opens {
		return l.deny(a, now), true
	}
	if !a.keep {
		if s, ok := l.change(a, now, pay); ok {
			return Assignment{Node: a.node, Strategy: s, New: true}, true
		}
	}
	if a.extends(l, now) {
		return Assignment{Node: a.node, Strategy: a.now.Strategy}, l.extend(a, now, pay)
	}
	return l.deny(a, now), true
}

// extends reports whether the assignment of a node can be extended.
func (a *aim) extends(l *Ledger, now time.Duration) bool {
	return !a.now.Denies() && now < a.now.free && a.now.Interval == l.interval
}

// change begins a new epoch, for a part of the target if the whole cannot be paid. It reports false if
// it has begun none.
func (l *Ledger) change(a *aim, now time.Duration, pay Pay) (Strategy, bool) {
	target, has := a.target, float64(a.now.Fill)
	for range 4 {
		s, ok := l.newStrategy(a, int64(target), now)
		if !ok {
			break
		}
		if l.begin(a.share, s, now, pay) {
			return s, true
		}
		if s.Fill < a.now.Fill { // a small bucket costs no more than extending what it has
			s.Max = min(s.Max, useful(s))
			return s, l.begin(a.share, s, now, pay)
		}
		if target = has + (target-has)/2; target <= has/near {
			break // not worth a full bucket
		}
	}
	return Strategy{}, false
}

// deny assigns the strategy that admits nothing.
func (l *Ledger) deny(a *aim, now time.Duration) Assignment {
	first := !a.assigned || !a.now.Denies()
	a.begin(epoch{until: now})
	return Assignment{Node: a.node, New: first}
}

// most returns the size of a bucket if the fund suffices: half of the burst is divided by rate, the
// other half is for changes.
func (l *Ledger) most(fill int64) int64 {
	return max(1, int64(float64(l.limit.Burst)/2*float64(fill)/float64(max(l.fill, 1))))
}

// useful returns the size of a bucket from which a node can use its rate although requests are not
// evenly spread: 20 milliseconds' worth.
func useful(s Strategy) int64 { return 1 + int64(s.perSecond()/50) }

// size returns the size of a new bucket, 0 if the fund is too small. A node that has nothing takes what
// there is.
func (l *Ledger) size(a *aim, s Strategy) int64 {
	least, fund := useful(s), int64(l.fund)
	if a.now.Denies() {
		least = min(least, fund)
	}
	if least > fund {
		return 0
	}
	return max(min(l.most(s.Fill), fund/4), least)
}

// newStrategy returns a strategy for a new epoch, or false if there is none or it is not worth it.
func (l *Ledger) newStrategy(a *aim, target int64, now time.Duration) (Strategy, bool) {
	left := l.left(a.share)
	s := Strategy{Fill: min(target, left), Interval: l.interval}
	if !a.demand.known { // the next node may want some as well
		s.Fill = min(s.Fill, a.now.Fill+max(left-a.now.Fill+1, 0)/2)
	}
	if s.Fill < 1 {
		return Strategy{}, false
	}
	if a.lacks && a.extends(l, now) && float64(s.Fill)*near < float64(a.now.Fill) {
		return Strategy{}, false // not worth a full bucket
	}
	if l.ahead != nil {
		s.Max = max(1, int64(s.perSecond()*l.ahead.reach.Seconds())-1)
	} else if s.Max = l.size(a, s); s.Max < 1 {
		return Strategy{}, false
	}
	s.Max = min(s.Max, maxFill)
	// Envoy does not notice a change of the interval alone, in whole seconds.
	if s.Max == a.now.Max && s.Fill == a.now.Fill && s.Interval != a.now.Interval {
		if s.Fill--; s.Fill < 1 {
			return Strategy{}, false
		}
	}
	return s, true
}

// begin starts an epoch, or returns false if it cannot be paid.
func (l *Ledger) begin(s *share, with Strategy, now time.Duration, pay Pay) bool {
	e := epoch{Strategy: with}
	if l.ahead == nil {
		l.fund -= float64(with.Max)
	} else {
		e.pace = max(with.perSecond(), float64(with.Max+1)/l.ahead.reach.Seconds())
		paid, cost := s.paid.raise(e.pace, now, now+l.times.Out(), with.Max)
		spare := l.ahead.spare
		if with.Fill < s.now.Fill {
			spare = 0 // less will be taken from now on
		}
		if !l.take(pay, cost, spare) {
			return false
		}
		s.paid = paid
	}
	e.sentAt(l.times, now)
	s.begin(e)
	s.changed = now
	return true
}

// prepay pays for all extensions that are due together, if there is enough for all. Otherwise each is
// paid by itself.
func (l *Ledger) prepay(dues []*aim, now time.Duration, pay Pay) {
	if l.ahead == nil {
		return
	}
	var extended []*aim
	var paid []coverage
	total := int64(0)
	for _, a := range dues {
		if a.keep {
			p, cost := a.paid.raise(a.now.pace, now, now+l.times.Out(), 0)
			extended, paid, total = append(extended, a), append(paid, p), total+cost
		}
	}
	if len(extended) < 2 || total > 0 && !l.take(pay, total, 0) {
		return
	}
	for i, a := range extended {
		a.paid, a.prepaid = paid[i], true
	}
}

// extend extends the current epoch, or returns false if that cannot be paid.
func (l *Ledger) extend(a *aim, now time.Duration, pay Pay) bool {
	if l.ahead != nil && !a.prepaid {
		paid, cost := a.paid.raise(a.now.pace, now, now+l.times.Out(), 0)
		if cost > 0 && !l.take(pay, cost, 0) {
			return false
		}
		a.paid = paid
	}
	a.now.sentAt(l.times, now)
	return true
}

// sentAt sets the times of an epoch that is sent at now.
func (e *epoch) sentAt(t Times, now time.Duration) {
	e.until, e.free = now+t.Out(), now+t.Latest()
}
