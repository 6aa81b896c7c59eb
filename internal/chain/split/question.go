package split

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain/share"
)

// question is a check as the own store is asked about it. There, costs are multiplied by the
// number of instances: what is used is in events of the fleet, a bucket's share is exact, and
// a change of the number refills nothing.
type question struct {
	check tidegate.Check
	n     int64 // by which the cost was multiplied
	more  int64 // how much more room there is for others than for this one
	// next is until the next turn of this instance, if it has none now and cannot be asked;
	// 0 otherwise. turns: it has turns, also if this is one.
	next  int64
	turns bool
}

// moment is when a question is asked, by the steady clock and by the wall clock.
type moment struct{ steady, wall int64 }

// ask makes the question about c, whose cost is not negative.
func (s *Store) ask(c *tidegate.Check, m members, now moment) question {
	q := question{check: *c, n: 1}
	if !Is(c.Limit) {
		return q
	}
	unit := max(c.Cost, 1) // a peek asks about one event
	room := c.Limit.Capacity() - c.Floor
	last := s.history.last.Load()
	if unit > room || m.n == 1 && last.before == 0 { // it can never fit, or there was never anybody else
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

// pose asks for the cost where there is room for as many events as brim.
func (s *Store) pose(q *question, cost, brim int64) {
	tell := brim
	if q.check.Cost == 0 { // it passes if there is room for cost
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

// askBucketInTurn is about a cost that is more than the share of a bucket. Instances have
// turns, one after the other, as long as it takes to refill the cost; in each turn there is
// room for one such request. Turns last for as long as others may begin without all of them
// together having more than the burst, and at least until the next one begins.
//
// It is paid for as if it had been asked for when the turn began, so that the next one is
// paid for when the next turn begins, whenever in its turn it came.
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

// joinedIn returns at which µs of span this instance joined others; 0 if it did not.
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
