package redis

import (
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Every reply is checked against the request: one that the law cannot give is a failed
// call, not a decision.

// mostTicks returns the longest time in any answer of lim, in ticks. The state of a bucket may be
// one of another limit, which this process need not know: no bucket takes longer than
// MaxRefill, but for events that are rounded up to ticks; a debt twice that, and a clock
// set back once more.
func (lim *compiledLimit) mostTicks() int64 {
	switch lim.kind {
	case buckets:
		return 3 * (algo.Ticks(tidegate.MaxRefill) + tidegate.MaxCount + 1)
	case counters:
		if lim.limit.Algorithm == tidegate.Quota {
			return 3 * algo.Ticks(tidegate.MaxPeriod)
		}
	}
	return 3 * algo.Ticks(lim.limit.Period) // a window, the one before, and a clock set back
}

// maxHold is for longer than any events are out on leases; a bucket holds some back until then.
const maxHold = time.Minute

// validate reports what is wrong with the answer a to p, of which n copies were asked.
func (p *pendingCheck) validate(a *answer, n int64) error {
	most := p.lim.mostTicks()
	ahead := most + min(p.wait, p.lim.longest)
	if p.lim.kind == buckets {
		ahead += algo.Ticks(maxHold)
	}
	switch {
	case a.got < 0 || a.got > n:
		return invalidReply("%d copies of %d for %s", a.got, n, p.lim.limit)
	case a.left < 0 || a.left > p.lim.capacity:
		return invalidReply("%d left for %s", a.left, p.lim.limit)
	case a.reset < 0 || a.reset > most:
		return invalidReply("%s is to be as good as new in %d µs: want 0 to %d", p.lim.limit, a.reset/algo.Micro, most/algo.Micro)
	case a.delay < 0 || a.delay > ahead:
		return invalidReply("%s is to admit it in %d µs: want 0 to %d", p.lim.limit, a.delay/algo.Micro, ahead/algo.Micro)
	case a.later < -algo.Micro || a.later > ahead:
		return invalidReply("%s is to admit the next in %d µs: want 0 to %d", p.lim.limit, a.later/algo.Micro, ahead/algo.Micro)
	case a.got > 0 && p.never():
		return invalidReply("a grant of %d for %s", p.cost, p.lim.limit)
	}
	return nil
}

// validate reports what is wrong with the answers to checks.
func (g *grant) validate(pending []*pendingCheck, o takeParams) error {
	n := min(o.copies, maxCopies)
	if g.copies < 0 || g.copies > n || g.copies > 0 && o.refused {
		return invalidReply("%d copies of %d", g.copies, n)
	}
	refused := o.refused
	for _, p := range pending {
		if err := p.validate(&p.answer, n); err != nil {
			return err
		}
		switch {
		case p.advisory:
		case g.copies > 0 && p.answer.got != g.copies:
			return invalidReply("%d copies, of which %s has %d", g.copies, p.lim.limit, p.answer.got)
		case p.answer.got == 0:
			refused = true
		}
	}
	if g.copies == 0 && !refused && len(pending) > 0 && !allAdvise(pending) {
		return invalidReply("a refusal by no limit")
	}
	return nil
}

func allAdvise(pending []*pendingCheck) bool {
	for _, p := range pending {
		if !p.advisory {
			return false
		}
	}
	return true
}

// validate reports what is wrong with the reply to changes.
func (r reply) validate(changes []change, record bool) error {
	switch {
	case len(r) != 3:
		return invalidReply("%d numbers about %d changes: want 3", len(r), len(changes))
	case r[0] != 1 && (r[0] != 0 || !record):
		return invalidReply("whether %d changes were made is %d: want 1, or 0 where there is a record", len(changes), r[0])
	case r[2] < 0 || r[2] > int64(len(changes)):
		return invalidReply("%d of %d leases lost", r[2], len(changes))
	}
	return nil
}

// missed reports whether the reply says that dates were missing, and which. Such a reply is
// invalid if no dates were sent.
func missed(got reply, calendar bool) (now, us int64, ok bool, err error) {
	now, us, ok = got.missed()
	if ok && (!calendar || now < 0) {
		err = invalidReply("calendar dates are missed that were not asked for, or that cannot be: %d", got)
	}
	return now, us, ok, err
}

func (p *pendingCheck) calendar() bool { return p.lim.limit.Algorithm == tidegate.Quota }

func (c change) calendar() bool { return c.lim.limit.Algorithm == tidegate.Quota }
