package split

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain/share"
)

// question is a check in the form in which the own store is asked. Costs are multiplied by the
// number of instances there: what is used is in events of the fleet, a bucket's share is exact,
// and a change of the number refills nothing.
type question struct {
	check tidegate.Check
	n     int64 // by which the cost was multiplied
	more  int64 // events to add to Remaining of the own store: room that this check may not use
	// next is how long it is until the next turn of this instance, if it has none now and the
	// own store cannot be asked; otherwise 0. turns: the check goes by turns, even if it is
	// this instance's turn now.
	next  int64
	turns bool
}

// moment is when a question is asked, by the steady clock and by the wall clock.
type moment struct{ steady, wall int64 }

// ask returns the question about c, whose cost is not negative.
func (s *Store) ask(c *tidegate.Check, m members, now moment) question {
	q := question{check: *c, n: 1}
	if !Is(c.Limit) {
		return q
	}
	unit := max(c.Cost, 1) // a peek asks about one event
	room := c.Limit.Capacity() - c.Floor
	last := s.history.last.Load()
	if unit > room || m.n == 1 && last.before == 0 { // it can never fit, or this instance was always alone
		return q
	}
	q.n = m.n
	if c.Limit.Algorithm != tidegate.TokenBucket {
		s.askWindow(&q, unit, room, m, now)
		return q
	}
	if unit*m.n > room {
		s.askBucketInTurn(&q, unit, room, m, now)
		return q
	}
	s.seed(c, unit, room, last, now)
	s.pose(&q, unit*m.n, room)
	return q
}

// pose sets q to ask for a cost when the counter may have at most brim events.
func (s *Store) pose(q *question, cost, brim int64) {
	tell := brim
	if q.check.Cost == 0 { // a peek: it passes if there would be room for cost
		brim, cost = brim-cost+1, 0
	}
	size := q.check.Limit.Capacity()
	if brim > size {
		q.check.Limit = s.sizes.Get(q.check.Limit, min(share.For(brim), tidegate.MaxCount))
		size = q.check.Limit.Capacity()
	}
	brim = min(brim, size) // no larger one can be made
	q.check.Floor, q.check.Cost = size-brim, min(cost, brim)
	q.more += tell - brim
}

// askBucketInTurn asks for a cost that is above the share of a bucket. Turns of the instances
// begin one after the other, each after the time in which the cost refills; in each turn there is
// room for one such request. A turn lasts at least until the next one begins, and longer as far
// as the turns that then overlap have no more than the burst together.
//
// A request is charged as if it had come at the beginning of the turn, so that it is paid for
// when the next turn of this instance begins.
func (s *Store) askBucketInTurn(q *question, unit, room int64, m members, now moment) {
	want := unit * m.n
	t, ok := turnOf(q.check.Limit, unit, room, m, now.wall)
	q.turns = ok
	switch last := s.history.last.Load(); {
	case !ok:
		s.pose(q, want, want)
	case !t.mine, last.before != 0 && now.steady-t.phase <= last.at: // it began among others
		q.next = t.next
	default:
		s.pose(q, t.cost, want)
	}
	q.more += room - want
}

// askWindow is about a fixed window or a quota. Of its events, or of the requests of this
// cost that it has room for if the cost is more than a share, this instance has those that
// its rank is due, another number from window to window. Who has how many is settled when a
// window begins; if the number of instances changes within it, what is left over, by what
// this instance has used, is divided among the new number.
func (s *Store) askWindow(q *question, unit, room int64, m members, now moment) {
	l := q.check.Limit
	span := algo.SpanAt(l, now.wall)
	first := s.history.at(now.steady - (now.wall - span.Start*algo.Micro))
	left := 1.0
	if joined := s.joinedIn(span, now); joined > 0 { // the others have what went before
		first = m
		left = float64(span.End-joined) / float64(span.End-span.Start)
	}
	w := shareOf(unit, room, first.n, left)
	mine := w.of(first, number(l, span))
	brim := mine * m.n
	if first != m {
		brim = min(mine*first.n, w.unit*((w.turns+m.n-1)/m.n)*m.n)
		if mine >= unit {
			brim = max(brim, unit*m.n)
		}
	}
	q.turns = unit > room/m.n
	if unit*m.n > brim {
		q.next = untilNextTurn(l, unit, room, m, span, now.wall)
		return
	}
	s.pose(q, unit*m.n, brim)
}

// joinedIn returns when, within span, this instance joined others, in µs since the Unix epoch; 0 if
// it did not join in that time.
func (s *Store) joinedIn(span algo.Span, now moment) int64 {
	joined := s.history.joined.Load()
	if joined == 0 {
		return 0
	}
	if us := (joined + now.wall - now.steady) / algo.Micro; us > span.Start && us < span.End {
		return us
	}
	return 0
}
