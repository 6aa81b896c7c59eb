package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Take implements tidegate.Store, in one round trip: all the checks go to one atomic
// script. In a cluster that holds for those of one subject.
func (s *Store) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	ctx, end := s.within(ctx)
	defer end()
	if n < 1 {
		return tidegate.Decision{}, fmt.Errorf("redis: Take(n=%d): want at least 1", n)
	}
	plans, _, err := s.plan(checks)
	if err != nil {
		return tidegate.Decision{}, err
	}
	if len(plans) == 0 {
		return tidegate.Decision{OK: true, Granted: int64(n), Receipt: tidegate.Receipt{At: s.clock.redis() * algo.Micro}}, nil
	}
	o := order{copies: int64(n), handle: slotsOf(plans)}
	d, _, err := s.decide(ctx, plans, o)
	if err = s.failure("take", err); err != nil && !errors.Is(err, tidegate.ErrCannotAsk) {
		s.abandon(ctx, plans, o)
	}
	return d, err
}

// takeShort is Take that says more when some of the copies were granted and not all:
// rest is what the next copy is refused with, from the same look at the counters.
// Otherwise rest has no Limit. Over several subjects of a cluster it is about those that
// were asked for that copy.
//
// name is that of slots; zero means one of its own.
func (s *Store) takeShort(ctx context.Context, checks []tidegate.Check, n int, name tidegate.Handle) (granted, rest tidegate.Decision, err error) {
	if n < 1 {
		return granted, rest, fmt.Errorf("redis: Take(n=%d): want at least 1", n)
	}
	plans, _, err := s.plan(checks)
	if err != nil {
		return granted, rest, err
	}
	if len(plans) == 0 {
		granted, err = s.Take(ctx, checks, n)
		return granted, rest, err
	}
	if name.IsZero() {
		name = slotsOf(plans)
	}
	granted, g, err := s.decide(ctx, plans, order{copies: int64(n), handle: name})
	if err != nil {
		return granted, rest, s.failure("take", err)
	}
	if granted.Granted > 0 && granted.Granted < int64(n) {
		rest = shortfall(plans, g)
	}
	return granted, rest, nil
}

// order is what is asked of a script for some checks.
type order struct {
	copies  int64
	handle  tidegate.Handle // of the slots, if there are any
	refused bool            // elsewhere: nothing is to be granted
	rec     *reservation    // to be left behind; nil: none
}

func (s *Store) decide(ctx context.Context, plans []*plan, o order) (tidegate.Decision, grant, error) {
	if s.cluster {
		if subjects := split(plans); len(subjects) > 1 {
			return s.decideApart(ctx, plans, subjects, o)
		}
	}
	g, err := s.ask(ctx, plans, o)
	if err != nil {
		return tidegate.Decision{}, g, err
	}
	return decision(plans, g, o.copies), g, nil
}

// grant is what a script granted.
type grant struct {
	copies int64
	at     int64 // the receipt, in ticks
	handle tidegate.Handle
}

// maxMisses is how often calendar bounds are sent again. The first miss tells what
// Redis' clock shows, so that a second one is a matter of a period that just ended.
const maxMisses = 3

// ask sends plans to one script and notes its answers in them.
func (s *Store) ask(ctx context.Context, plans []*plan, o order) (grant, error) {
	for range maxMoves(len(plans)) {
		r, err := s.request(plans, o)
		if err != nil {
			return grant{}, err
		}
		got, err := s.numbers(ctx, scriptFor(r.form, r.kinds), r.keys, r.args, r.tag)
		if err != nil {
			return grant{}, err
		}
		now, us, ok, err := missed(got, slices.ContainsFunc(plans, (*plan).calendar))
		if err != nil {
			return grant{}, err
		}
		if ok {
			s.reach(plans, now, us)
			continue
		}
		if i, n, ok, err := got.moved(len(plans)); err != nil {
			return grant{}, err
		} else if ok {
			plans[i].move(n)
			continue
		}
		return got.grant(plans, o)
	}
	return grant{}, errMissed
}

// grant is what a reply says of an order for plans, which it notes in them.
func (r reply) grant(plans []*plan, o order) (grant, error) {
	if len(r) < 2 || r[1] < 0 {
		return grant{}, nonsense("%d numbers about %d checks, the first %d", len(r), len(plans), r[:min(len(r), 2)])
	}
	g := grant{copies: r[0], at: r[1] * algo.Micro}
	if slices.ContainsFunc(plans, (*plan).leased) {
		g.handle = o.handle
	}
	each := 6
	if g.copies > 0 && g.copies < min(o.copies, maxCopies) {
		each = 8
	}
	if len(r) != 2+each*len(plans) {
		return grant{}, nonsense("%d numbers about %d checks", len(r), len(plans))
	}
	for i, p := range plans {
		p.at, p.handle, p.answer = g.at, g.handle, answerOf(r[2+each*i:][:each])
	}
	return g, g.sane(plans, o)
}

func answerOf(a reply) answer {
	told := answer{got: a[0], left: a[1], reset: a[2]*algo.Micro + a[3], other: a[4]*algo.Micro + a[5], later: -1}
	if len(a) > 6 {
		told.later = a[6]*algo.Micro + a[7]
	}
	return told
}

// reach makes calendar bounds that a script missed.
func (s *Store) reach(plans []*plan, now, us int64) {
	s.clock.seen(now)
	for _, p := range plans {
		p.b.reach(now, us)
	}
}

// duration rounds ticks up to what Redis' clock can tell apart, a µs: a moment earlier
// it would still give the same answer.
func duration(ticks int64) time.Duration {
	return algo.Duration((ticks + algo.Micro - 1) / algo.Micro * algo.Micro)
}

// decision tells what came of plans, of which n copies were asked.
func decision(plans []*plan, g grant, n int64) tidegate.Decision {
	if g.copies == 0 {
		return refusal(plans, g)
	}
	if g.copies == maxCopies { // peeks, all of them
		g.copies = n
	}
	var told tidegate.Decision
	var wait int64
	for _, p := range plans {
		if p.advisory {
			p.check.Over = p.answer.got < min(g.copies, maxCopies)
			continue
		}
		wait = max(wait, p.answer.other)
		d := tidegate.Decision{OK: true, Limit: p.b.limit, Remaining: p.answer.left, ResetAfter: duration(p.answer.reset)}
		if told.Limit == nil || d.Outranks(&told) {
			told = d
		}
	}
	told.OK, told.Granted, told.Wait, told.Receipt = true, g.copies, duration(wait), tidegate.Receipt{At: g.at, Handle: g.handle}
	return told
}

// refusal is about the limit that takes longest.
func refusal(plans []*plan, g grant) tidegate.Decision {
	var told tidegate.Decision
	for _, p := range plans {
		if p.advisory || p.answer.got > 0 {
			continue
		}
		d := tidegate.Decision{Limit: p.b.limit, Never: p.never(), Remaining: p.answer.left, ResetAfter: duration(p.answer.reset), Receipt: tidegate.Receipt{At: g.at}}
		if !d.Never {
			d.RetryAfter = duration(p.answer.other)
		}
		if told.Limit == nil || d.Outranks(&told) {
			told = d
		}
	}
	return told
}

// shortfall is what the copy after those granted is refused with, by the limits that had
// no room for it.
func shortfall(plans []*plan, g grant) tidegate.Decision {
	var told tidegate.Decision
	for _, p := range plans {
		if p.advisory || p.answer.later < 0 || p.answer.got > g.copies {
			continue
		}
		d := tidegate.Decision{
			Limit: p.b.limit, Remaining: p.answer.left, ResetAfter: duration(p.answer.reset),
			RetryAfter: duration(p.answer.later), Receipt: tidegate.Receipt{At: g.at},
		}
		if told.Limit == nil || d.Outranks(&told) {
			told = d
		}
	}
	return told
}
