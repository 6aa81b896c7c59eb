package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// look reads the states as they stand, and reports whether they have room. One
// that is just being written is looked at when it is owned. There are none in
// records: then there is nothing to see before all are owned.
func (v *vector) look(s *Store) (ok bool) {
	v.granted = v.copies
	for i := range v.plans {
		p := &v.plans[i]
		p.next, p.seen, p.plain = cell{}, false, false
		if p.skip {
			continue
		}
		if p.slot != nil {
			if p.old, p.word, p.seen = p.slot.read(p.key); !p.seen {
				continue
			}
			p.next = p.old
		}
		if k := p.fit(s, v.now); !p.advisory {
			v.granted = min(v.granted, k)
		}
	}
	return v.granted > 0
}

// fit is how many copies the state of p has room for.
func (p *plan) fit(s *Store, now int64) int64 {
	if p.b.short(p.next, p.ask) {
		origin := s.origin.Load()
		owed, ok, sure := p.b.bucket.Spend(origin+int64(p.next.fast), now, p.ask.Cost)
		if ok && sure && reaches(origin, now) {
			p.owed, p.plain = owed, true
			return 1
		}
	}
	p.plain = false
	return s.fit(p.b, p.next, now, p.ask)
}

// decide charges as many copies as all enforcing checks have room for. All
// slots are owned. short is a check that memory lacks a record for; nothing is
// charged then.
func (v *vector) decide(s *Store, squeeze bool) (d tidegate.Decision, short *plan) {
	if v.changed {
		v.granted = v.copies
		for i := range v.plans {
			p := &v.plans[i]
			if p.skip {
				continue
			}
			if k := p.fit(s, v.now); !p.advisory {
				v.granted = min(v.granted, k)
			}
		}
		if v.granted == 0 {
			return v.refuse(s), nil
		}
	}
	if v.records {
		if short = v.ensure(s, squeeze); short != nil {
			return d, short
		}
	}
	v.at = v.now
	if v.leases {
		v.at = s.leaseName(v.now, v.granted, v.named)
	}
	return v.charge(s), nil
}

// charge takes what was granted, and tells about the limit with the least left.
// An advisory check without room for all of it is over; one that found no memory
// was left out before, and is not.
func (v *vector) charge(s *Store) (d tidegate.Decision) {
	var least *tidegate.Limit
	var left, whole, reset, wait int64
	for i := range v.plans {
		p := &v.plans[i]
		if p.skip {
			continue
		}
		var remaining, full int64
		p.charged, p.wait = true, 0
		if p.plain {
			p.next.fast = uint64(v.now + p.owed - s.origin.Load())
			remaining, full = p.b.bucket.Left(p.owed), p.owed
		} else {
			p.ask.Copies = v.granted
			verdict := v.take(s, p)
			remaining, full = verdict.Remaining, verdict.Reset
			p.charged, p.wait = verdict.Granted > 0, verdict.Wait()
			if p.advisory {
				v.checks[i].Over = verdict.Granted < v.granted
			} else {
				wait = max(wait, verdict.Wait())
			}
		}
		if p.advisory {
			continue
		}
		if c := p.b.limit.Capacity(); least == nil || remaining*whole < left*c {
			least, left, whole, reset = p.b.limit, remaining, c, full
		}
	}
	told := algo.Verdict{Granted: v.granted, Remaining: left, Reset: reset, Delay: wait}
	answer(&d, least, told, v.at)
	return d
}

func (v *vector) take(s *Store, p *plan) (verdict algo.Verdict) {
	if p.b.kind.inRecord() {
		p.next, verdict, _ = s.takeRecord(p.b, p.b.table.segment(p.key), p.next, v.now, v.at, p.ask, true)
	} else {
		p.next, verdict = s.take(p.b, p.next, v.now, p.ask)
	}
	return verdict
}

// refuse tells about the refusing check with the longest wait. Limits that
// count what is rejected, by themselves or by others, count it.
func (v *vector) refuse(s *Store) (d tidegate.Decision) {
	first := true
	for i := range v.plans {
		p := &v.plans[i]
		if p.skip || p.advisory {
			continue
		}
		if s.fit(p.b, p.next, v.now, p.ask) > 0 {
			p.reject(v.now)
			continue
		}
		verdict := v.take(s, p)
		var next tidegate.Decision
		if answer(&next, p.b.limit, verdict, v.now); first || next.Outranks(&d) {
			d = next
		}
		first = false
	}
	return d
}

// keep writes what a refusal made of states that were written under another
// limit, or before the clock was set back: from now on they are of this limit and
// time. Where somebody was quicker, it is up to the next refusal.
func (v *vector) keep() {
	for i := range v.plans {
		p := &v.plans[i]
		if !p.skip && p.seen && p.next != p.old {
			p.slot.swap(p.word, p.key, p.old, p.next)
		}
	}
}

// reject counts what another limit refused, where rejected events count.
func (p *plan) reject(now int64) {
	if p.b.kind != runs || !p.b.runs.CountsRejected() {
		return
	}
	for {
		r := p.b.record(p.next)
		if p.b.runs.Reject(&r, now, p.ask) {
			return
		}
		var ok bool
		if p.next, ok = p.b.larger(p.b.table.segment(p.key), p.next, now, p.ask, true); !ok {
			return
		}
	}
}

// ensure makes the records large enough for what was granted, so that charging
// them cannot fail. It returns an enforcing check for which there is no memory;
// advisory ones are left out. Those that are over need none.
func (v *vector) ensure(s *Store, squeeze bool) (short *plan) {
	for i := range v.plans {
		p := &v.plans[i]
		if p.skip || p.advisory && s.fit(p.b, p.next, v.now, p.ask) == 0 || p.ensure(v.now, v.granted, squeeze || p.advisory) {
			continue
		}
		if !p.advisory {
			return p
		}
		p.release()
		p.skip = true
		p.b.table.refused.Add(1)
	}
	return nil
}

func (p *plan) ensure(now, k int64, squeeze bool) (ok bool) {
	if !p.b.kind.inRecord() || p.ask.Cost == 0 {
		return true
	}
	grant := algo.Ask{Cost: p.ask.Cost, Copies: k}
	for ok = true; ok && !p.holds(now, grant); {
		p.next, ok = p.b.larger(p.b.table.segment(p.key), p.next, now, grant, squeeze)
	}
	return ok
}

// holds reports whether the record of p has room to write a.
func (p *plan) holds(now int64, a algo.Ask) bool {
	r := p.b.record(p.next)
	if p.b.kind == runs {
		return p.b.runs.Holds(&r, now)
	}
	return r.Words() >= algo.LeasesHeader+2*(r.Held()+int(a.Copies*a.Cost))
}

// named reports whether a lease of any of the records has a name from from to to.
func (v *vector) named(from, to int64) bool {
	for i := range v.plans {
		p := &v.plans[i]
		if p.skip || p.b.kind != leases {
			continue
		}
		if r := p.b.record(p.next); p.b.lease.Named(&r, from, to) {
			return true
		}
	}
	return false
}
