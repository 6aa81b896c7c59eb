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
// script. In a cluster and on shards that holds for those of one subject.
func (s *Store) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	ctx, end := s.withDeadline(ctx)
	defer end()
	if n < 1 {
		return tidegate.Decision{}, fmt.Errorf("redis: Take(n=%d): want at least 1", n)
	}
	pending, _, err := s.prepare(checks)
	if err != nil {
		return tidegate.Decision{}, err
	}
	if len(pending) == 0 {
		return tidegate.Decision{OK: true, Granted: int64(n), Receipt: tidegate.Receipt{At: s.clock.redis() * algo.Micro}}, nil
	}
	o := takeParams{copies: int64(n), handle: newSlotHandle(pending)}
	d, _, err := s.decide(ctx, pending, o)
	if err = s.failure("take", err); err != nil && !errors.Is(err, tidegate.ErrCannotAsk) {
		s.abandon(ctx, pending, o)
	}
	return d, err
}

// takeWithRest is Take that also says, when some of the copies were granted and not all, what
// the next copy is refused with: rest, from the same read of the counters. Otherwise rest
// has no Limit. Over several subjects that live apart it is about those that were asked for
// that copy.
//
// o.handle names slots; zero means a new one.
func (s *Store) takeWithRest(ctx context.Context, checks []tidegate.Check, o takeParams) (granted, rest tidegate.Decision, err error) {
	n := int(o.copies)
	if n < 1 {
		return granted, rest, fmt.Errorf("redis: Take(n=%d): want at least 1", n)
	}
	pending, _, err := s.prepare(checks)
	if err != nil {
		return granted, rest, err
	}
	if len(pending) == 0 {
		granted, err = s.Take(ctx, checks, n)
		return granted, rest, err
	}
	if o.handle.IsZero() {
		o.handle = newSlotHandle(pending)
	}
	for _, p := range pending {
		p.lease = o.lease
	}
	granted, g, err := s.decide(ctx, pending, o)
	if err != nil {
		return granted, rest, s.failure("take", err)
	}
	if granted.Granted > 0 && granted.Granted < int64(n) {
		rest = shortfall(pending, g)
	}
	return granted, rest, nil
}

// takeParams are the parameters of a Take, besides its checks.
type takeParams struct {
	copies  int64
	handle  tidegate.Handle // of the slots, if there are any
	refused bool            // by another subject: grant nothing
	rec     *reservation    // to be stored with the charge, if not nil
	lease   int64           // µs for which what is taken may be used; 0 means it is used at once
	peek    bool            // write nothing, whatever was found; for one check that costs nothing
	at      *endpoint       // that is asked; nil means the one that has the keys
}

func (s *Store) decide(ctx context.Context, pending []*pendingCheck, o takeParams) (tidegate.Decision, grant, error) {
	if s.apart() {
		if subjects := s.withFormer(split(pending)); len(subjects) > 1 {
			return s.decideApart(ctx, pending, subjects, o)
		}
	}
	g, err := s.ask(ctx, pending, o)
	if err != nil {
		return tidegate.Decision{}, g, err
	}
	return decision(pending, g, o.copies), g, nil
}

// grant is what a script granted.
type grant struct {
	copies int64
	at     int64 // the receipt, in ticks
	handle tidegate.Handle
}

// maxMisses is how often dates are sent again. The first miss says what Redis' clock
// shows, so that a second one only happens if a period has just ended.
const maxMisses = 3

// ask sends checks to one script and notes its answers in them.
func (s *Store) ask(ctx context.Context, pending []*pendingCheck, o takeParams) (grant, error) {
	for range maxMoves(len(pending)) {
		r, err := s.request(pending, o)
		if err != nil {
			return grant{}, err
		}
		at := o.at
		if at == nil {
			at = s.home(r.keys[0])
		}
		got, err := at.runNumbers(ctx, r.script(), r.keys, r.args, r.tag)
		if err != nil {
			return grant{}, err
		}
		now, us, ok, err := missed(got, slices.ContainsFunc(pending, (*pendingCheck).calendar))
		if err != nil {
			return grant{}, err
		}
		if ok {
			s.extendDates(pending, now, us)
			continue
		}
		if i, n, ok, err := got.moved(len(pending)); err != nil {
			return grant{}, err
		} else if ok {
			pending[i].move(n)
			continue
		}
		return got.grant(pending, o)
	}
	return grant{}, errMissed
}

// grant returns what a reply says about checks, and notes the answers in them.
func (r reply) grant(pending []*pendingCheck, o takeParams) (grant, error) {
	switch {
	case len(r) < 2:
		return grant{}, invalidReply("%d numbers about %d checks: want 2 before them", len(r), len(pending))
	case r[1] < 0:
		return grant{}, invalidReply("checks decided at %d µs: want 0 or more", r[1])
	}
	g := grant{copies: r[0], at: r[1] * algo.Micro}
	if slices.ContainsFunc(pending, (*pendingCheck).leased) {
		g.handle = o.handle
	}
	each := 6
	if g.copies > 0 && g.copies < min(o.copies, maxCopies) {
		each = 8
	}
	if want := 2 + each*len(pending); len(r) != want {
		return grant{}, invalidReply("%d numbers about %d checks: want %d", len(r), len(pending), want)
	}
	for i, p := range pending {
		p.at, p.handle, p.answer = g.at, g.handle, answerOf(r[2+each*i:][:each])
	}
	return g, g.validate(pending, o)
}

func answerOf(a reply) answer {
	reported := answer{got: a[0], left: a[1], reset: a[2]*algo.Micro + a[3], delay: a[4]*algo.Micro + a[5], later: -1}
	if len(a) > 6 {
		reported.later = a[6]*algo.Micro + a[7]
	}
	return reported
}

// extendDates makes dates that a script did not find.
func (s *Store) extendDates(pending []*pendingCheck, now, us int64) {
	s.clock.sync(now)
	for _, p := range pending {
		p.lim.extendDates(now, us)
	}
}

// duration rounds ticks up to a µs, the resolution of Redis' clock: a moment earlier the
// answer would still be the same.
func duration(ticks int64) time.Duration {
	return algo.Duration((ticks + algo.Micro - 1) / algo.Micro * algo.Micro)
}

// decision returns the decision about checks, of which n copies were asked.
func decision(pending []*pendingCheck, g grant, n int64) tidegate.Decision {
	if g.copies == 0 {
		return refusal(pending, g)
	}
	if g.copies == maxCopies { // peeks, all of them
		g.copies = n
	}
	var reported tidegate.Decision
	var wait int64
	for _, p := range pending {
		if p.advisory {
			p.check.Over = p.check.Over || p.answer.got < min(g.copies, maxCopies)
			continue
		}
		wait = max(wait, p.answer.delay)
		d := tidegate.Decision{OK: true, Limit: p.lim.limit, Remaining: p.answer.left, ResetAfter: duration(p.answer.reset)}
		if reported.Limit == nil || d.Outranks(&reported) {
			reported = d
		}
	}
	reported.OK, reported.Granted, reported.Wait, reported.Receipt = true, g.copies, duration(wait), tidegate.Receipt{At: g.at, Handle: g.handle}
	return reported
}

// refusal returns the decision when nothing was granted. It reports a limit that can never admit the
// checks or else, of those that refuse, the one with the longest retry-after.
func refusal(pending []*pendingCheck, g grant) tidegate.Decision {
	var reported tidegate.Decision
	for _, p := range pending {
		if p.advisory || p.answer.got > 0 {
			continue
		}
		d := tidegate.Decision{Limit: p.lim.limit, Never: p.never(), Remaining: p.answer.left, ResetAfter: duration(p.answer.reset), Receipt: tidegate.Receipt{At: g.at}}
		if !d.Never {
			d.RetryAfter = duration(p.answer.delay)
		}
		if reported.Limit == nil || d.Outranks(&reported) {
			reported = d
		}
	}
	return reported
}

// shortfall returns what the copy after those granted is refused with, by the limits that
// had no room for it.
func shortfall(pending []*pendingCheck, g grant) tidegate.Decision {
	var reported tidegate.Decision
	for _, p := range pending {
		if p.advisory || p.answer.later < 0 || p.answer.got > g.copies {
			continue
		}
		d := tidegate.Decision{
			Limit: p.lim.limit, Remaining: p.answer.left, ResetAfter: duration(p.answer.reset),
			RetryAfter: duration(p.answer.later), Receipt: tidegate.Receipt{At: g.at},
		}
		if reported.Limit == nil || d.Outranks(&reported) {
			reported = d
		}
	}
	return reported
}
