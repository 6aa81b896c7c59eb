package split

import (
	"context"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain/share"
)

// part is a vector, divided into the checks that are counted in shares and the rest.
type part struct {
	own      []tidegate.Check
	ownFrom  []int // their indexes in the vector
	rest     []tidegate.Check
	restFrom []int

	questions []question       // about own
	asked     []tidegate.Check // the checks to put to the own store
	askedFrom []int            // their indexes in own
}

// divide returns nil if nothing is counted in shares.
func (s *Store) divide(checks []tidegate.Check) *part {
	first := -1
	for i := range checks {
		if Is(checks[i].Limit) {
			first = i
			break
		}
	}
	if first < 0 {
		return nil
	}
	p := s.parts.Get().(*part)
	for i := range checks {
		if s.o.Whole || Is(checks[i].Limit) {
			p.own, p.ownFrom = append(p.own, checks[i]), append(p.ownFrom, i)
		} else {
			p.rest, p.restFrom = append(p.rest, checks[i]), append(p.restFrom, i)
		}
	}
	return p
}

func (s *Store) putPart(p *part) {
	clear(p.own)
	clear(p.rest)
	clear(p.asked)
	clear(p.questions)
	p.own, p.ownFrom, p.rest, p.restFrom = p.own[:0], p.ownFrom[:0], p.rest[:0], p.restFrom[:0]
	p.questions, p.asked, p.askedFrom = p.questions[:0], p.asked[:0], p.askedFrom[:0]
	s.parts.Put(p)
}

func (p *part) copyOver(checks []tidegate.Check) {
	for i, at := range p.ownFrom {
		checks[at].Over = p.own[i].Over
	}
	for i, at := range p.restFrom {
		checks[at].Over = p.rest[i].Over
	}
}

// takeShare decides the checks of p that are counted in shares, all or none.
func (s *Store) takeShare(ctx context.Context, p *part, copies int) (tidegate.Decision, error) {
	now := s.now()
	m := s.members(now)
	try := attempt{look: p.mayWait() && p.countsRejected()}
	d, asked, err := s.tryShare(ctx, p, copies, m, now, try)
	if err == nil && try.look && (d.OK || !p.waits()) {
		d, asked, err = s.tryShare(ctx, p, copies, m, now, attempt{})
	}
	if err == nil && !d.OK && p.waits() {
		d, asked, err = s.tryShare(ctx, p, copies, m, now, attempt{book: true})
	}
	if err == nil && !asked && p.countsRejected() {
		share.CountRejected(ctx, s.local, p.own, copies)
	}
	return d, err
}

// attempt is how tryShare asks. look: it only looks whether there is room, because a refusal would be counted, and
// booking ahead may follow. book: checks that have turns are booked ahead.
type attempt struct{ look, book bool }

// countsRejected reports whether the own store has a limit of p that counts rejected requests.
func (p *part) countsRejected() bool {
	return slices.ContainsFunc(p.own, func(c tidegate.Check) bool { return c.Limit.CountRejected && !c.Advisory })
}

// mayWait reports whether waits may be true once the questions are known.
func (p *part) mayWait() bool {
	return slices.ContainsFunc(p.own, func(c tidegate.Check) bool {
		return c.MaxWait > 0 && Is(c.Limit) && c.Limit.Algorithm == tidegate.TokenBucket
	})
}

// waits reports whether a request that has no room in this turn may be booked into a later one.
func (p *part) waits() bool {
	for i := range p.questions {
		if q := &p.questions[i]; q.turns && p.own[i].MaxWait > 0 && p.own[i].Limit.Algorithm == tidegate.TokenBucket {
			return true
		}
	}
	return false
}

// tryShare is one attempt of takeShare. asked is false if it is refused without asking the own store.
func (s *Store) tryShare(ctx context.Context, p *part, copies int, m members, now moment, try attempt) (d tidegate.Decision, asked bool, err error) {
	p.questions, p.asked, p.askedFrom = p.questions[:0], p.asked[:0], p.askedFrom[:0]
	for i := range p.own {
		c := &p.own[i]
		c.Over = false
		q := s.ask(c, m, now)
		p.questions = append(p.questions, q)
		switch bucket := c.Limit.Algorithm == tidegate.TokenBucket; {
		case q.turns && bucket && try.book && c.MaxWait > algo.Duration(q.next):
			s.askAhead(&q, c, m)
			p.questions[i] = q
		case q.next > 0 && c.Advisory:
			c.Over = true
			continue
		case q.next > 0:
			d, err = s.notInTurn(ctx, c, m, now)
			return d, false, err
		case q.turns && bucket:
			q.check.MaxWait = 0
			copies = 1 // one in a turn
		}
		p.asked, p.askedFrom = append(p.asked, q.check), append(p.askedFrom, i)
	}
	if try.look {
		for i := range p.asked { // a check without a cost passes where one of 1 would
			c := &p.asked[i]
			c.Floor, c.Cost = c.Floor+max(c.Cost-1, 0), 0
		}
	}
	if d, err = s.local.Take(ctx, p.asked, copies); err != nil {
		return d, true, err
	}
	for i, at := range p.askedFrom {
		p.own[at].Over = p.asked[i].Over
	}
	if try.book && d.OK {
		s.bookTurns(ctx, p, &d)
	}
	s.tell(p, &d, m, now)
	return d, true, nil
}

// askAhead changes q so that it asks for a turn that may come later.
func (s *Store) askAhead(q *question, c *tidegate.Check, m members) {
	next := q.next
	*q = question{check: *c, n: m.n, next: next, turns: true}
	want := max(c.Cost, 1) * m.n
	s.pose(q, want, want)
	q.check.MaxWait -= algo.Duration(next)
	q.more += c.Limit.Capacity() - c.Floor - want
}

// bookTurns makes requests that were booked ahead wait until their turn begins. It also charges
// what refills until then, so that the next request waits for the turn after that.
func (s *Store) bookTurns(ctx context.Context, p *part, d *tidegate.Decision) {
	for i, at := range p.askedFrom {
		q := &p.questions[at]
		if later := q.next - algo.Ticks(d.Wait); q.next > 0 && later > 0 && !p.asked[i].Advisory {
			em, c := emission(p.own[at].Limit), p.asked[i]
			c.Cost = (later + em - 1) / em
			_ = s.local.Adjust(ctx, d.Receipt, []tidegate.Check{c}) // it has just answered
			d.Wait = algo.Duration(q.next)
		}
	}
}

// tell translates d, a decision of the own store, into one about the checks of p.
func (s *Store) tell(p *part, d *tidegate.Decision, m members, now moment) {
	for i, at := range p.askedFrom {
		if d.Limit == nil || p.asked[i].Limit != d.Limit {
			continue
		}
		c, q := &p.own[at], &p.questions[at]
		d.Limit = c.Limit
		d.Remaining = max(0, d.Remaining+q.more) / q.n
		if d.OK && c.Cost == 0 && q.turns && d.Wait == 0 {
			d.Remaining = max(d.Remaining, 1)
		}
		if !d.OK && !d.Never && q.turns && d.Err == nil && c.MaxWait == 0 {
			d.RetryAfter = untilTurn(c, m, now, d.ResetAfter)
		}
		return
	}
}

// untilTurn returns how long it is until a later turn of this instance in which c passes. What is
// used will have drained after reset.
func untilTurn(c *tidegate.Check, m members, now moment, reset time.Duration) time.Duration {
	unit, room := max(c.Cost, 1), c.Limit.Capacity()-c.Floor
	if c.Limit.Algorithm == tidegate.TokenBucket {
		t, _ := turnOf(c.Limit, unit, room, m, now.wall)
		return algo.Duration(t.free(algo.Ticks(reset)))
	}
	return algo.Duration(untilNextTurn(c.Limit, unit, room, m, algo.SpanAt(c.Limit, now.wall), now.wall))
}

// notInTurn refuses a check because this instance has no turn. What the refusal says is left
// is asked of the own store, for a check without a cost.
func (s *Store) notInTurn(ctx context.Context, c *tidegate.Check, m members, now moment) (tidegate.Decision, error) {
	less := tidegate.Check{Key: c.Key, Limit: c.Limit, Floor: c.Floor} // a smaller cost may pass
	q := s.ask(&less, m, now)
	d, err := s.local.Take(ctx, []tidegate.Check{q.check}, 1)
	if err != nil {
		return d, err
	}
	if d.Remaining = max(0, d.Remaining+q.more) / q.n; q.next > 0 {
		d.Remaining = 0
	}
	d.OK, d.Never, d.Granted, d.Limit = false, false, 0, c.Limit
	d.RetryAfter = max(untilTurn(c, m, now, d.ResetAfter)-c.MaxWait, 1)
	return d, nil
}
