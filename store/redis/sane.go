package redis

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// What a script answers is held against what was asked: a reply that its law cannot give
// is a failed call, not a decision.

// mostTicks is the longest time that b can tell of anything, in ticks. The state of a
// bucket may be one of another limit, which this process need not know: no bucket takes
// longer than MaxRefill, a debt twice that, and a clock set back once more.
func (b *bound) mostTicks() int64 {
	switch b.kind {
	case buckets:
		return 3*algo.Ticks(tidegate.MaxRefill) - 1
	case counters:
		if b.limit.Algorithm == tidegate.Quota {
			return 3 * algo.Ticks(tidegate.MaxPeriod)
		}
	}
	return 3 * algo.Ticks(b.limit.Period) // a window, the one before, and a clock set back
}

// sane says what is wrong with the answer a to p, of which n copies were asked.
func (p *plan) sane(a *answer, n int64) error {
	most := p.b.mostTicks()
	ahead := most + min(p.wait, p.b.longest)
	switch {
	case a.got < 0 || a.got > n:
		return nonsense("%d copies of %d for %s", a.got, n, p.b.limit)
	case a.left < 0 || a.left > p.b.capacity:
		return nonsense("%d left for %s", a.left, p.b.limit)
	case a.reset < 0 || a.reset > most:
		return nonsense("%s is as good as new in %s", p.b.limit, algo.Duration(a.reset))
	case a.other < 0 || a.other > ahead:
		return nonsense("%s in %s", p.b.limit, algo.Duration(a.other))
	case a.later < -algo.Micro || a.later > ahead:
		return nonsense("the next of %s in %s", p.b.limit, algo.Duration(a.later))
	case a.got > 0 && p.never():
		return nonsense("a grant of %d for %s", p.cost, p.b.limit)
	}
	return nil
}

// sane says what is wrong with the answer to plans, of which n copies were asked.
func (g *grant) sane(plans []*plan, o order) error {
	n := min(o.copies, maxCopies)
	if g.copies < 0 || g.copies > n || g.copies > 0 && o.refused {
		return nonsense("%d copies of %d", g.copies, n)
	}
	refused := o.refused
	for _, p := range plans {
		if err := p.sane(&p.answer, n); err != nil {
			return err
		}
		switch {
		case p.advisory:
		case g.copies > 0 && p.answer.got != g.copies:
			return nonsense("%d copies, of which %s has %d", g.copies, p.b.limit, p.answer.got)
		case p.answer.got == 0:
			refused = true
		}
	}
	if g.copies == 0 && !refused && len(plans) > 0 && !allAdvise(plans) {
		return nonsense("a refusal by no limit")
	}
	return nil
}

func allAdvise(plans []*plan) bool {
	for _, p := range plans {
		if !p.advisory {
			return false
		}
	}
	return true
}

// sane says what is wrong with what is told of changes.
func (r reply) sane(changes []change, record bool) error {
	switch {
	case len(r) != 3:
		return nonsense("%d numbers about %d changes", len(r), len(changes))
	case r[0] != 1 && (r[0] != 0 || !record):
		return nonsense("%d about %d changes", r[0], len(changes))
	case r[2] < 0 || r[2] > int64(len(changes)):
		return nonsense("%d of %d leases lost", r[2], len(changes))
	}
	return nil
}

// missed reports whether the reply says that calendar bounds were missed, and by how much.
// It is nonsense where there are none.
func missed(got reply, calendar bool) (now, us int64, ok bool, err error) {
	now, us, ok = got.missed()
	if ok && (!calendar || now < 0) {
		err = nonsense("%d", got)
	}
	return now, us, ok, err
}

func (p *plan) calendar() bool { return p.b.limit.Algorithm == tidegate.Quota }

func (c change) calendar() bool { return c.b.limit.Algorithm == tidegate.Quota }
