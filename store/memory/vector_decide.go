package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// look reads the states without owning them. One that is just being written is read once it is
// owned. It is not for vectors with records, which can only be read by the owner of their slot.
func (v *vector) look() {
	for i := range v.pending {
		p := &v.pending[i]
		p.next, p.seen = cell{}, false
		if p.skip || p.slot == nil {
			continue
		}
		if p.old, p.word, p.seen = p.slot.read(p.key); p.seen {
			p.next = p.old
		}
	}
}

// hasRoom reports whether there is room for a copy by the states that were looked at.
func (v *vector) hasRoom(s *Store) bool {
	v.granted = v.fit(s)
	return v.granted > 0
}

// decide charges as many copies as all enforcing checks have room for. All slots
// are owned. If there is no memory for the record of a check, it charges nothing and
// returns that check as short.
func (v *vector) decide(s *Store, squeeze bool) (d tidegate.Decision, short *pendingCheck) {
	if v.changed {
		if v.granted = v.fit(s); v.granted == 0 {
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
	d = v.charge(s)
	if v.leases {
		d.Receipt.Instance = s.instance
	}
	return d, nil
}

// fit returns how many copies all enforcing checks have room for.
func (v *vector) fit(s *Store) int64 {
	fits := v.copies
	for i := range v.pending {
		p := &v.pending[i]
		if p.skip {
			continue
		}
		if k := s.fit(p.lim, p.next, v.now, p.ask); !p.advisory {
			fits = min(fits, k)
		}
	}
	return fits
}

// charge takes what was granted. Limits that count rejected requests count the copies that were
// not granted as well. An advisory check without room for all of it is over; one without memory was
// left out before, and is not.
func (v *vector) charge(s *Store) tidegate.Decision {
	for i := range v.pending {
		p := &v.pending[i]
		if p.skip {
			continue
		}
		p.ask.Copies = v.granted
		p.verdict = v.take(s, p)
		if p.advisory {
			v.checks[i].Over = p.verdict.Granted < v.granted
			continue
		}
		if rest := v.copies - v.granted; rest > 0 && p.countsRejected() {
			p.ask.Copies = rest
			p.reject(v.now)
			p.verdict.Remaining = s.fit(p.lim, p.next, v.now, algo.Ask{Cost: 1, Copies: tidegate.MaxCount})
		}
	}
	if v.follows {
		v.follow(s)
	}
	return v.reportLeast()
}

// reportLeast reports the limit with the least left.
func (v *vector) reportLeast() (d tidegate.Decision) {
	var least *tidegate.Limit
	var whole int64
	total := algo.Verdict{Granted: v.granted}
	for i := range v.pending {
		p := &v.pending[i]
		if p.skip || p.advisory {
			continue
		}
		total.Delay = max(total.Delay, p.verdict.Wait())
		if c := p.lim.limit.Capacity(); least == nil || p.verdict.Remaining*whole < total.Remaining*c {
			least, whole = p.lim.limit, c
			total.Remaining, total.Reset = p.verdict.Remaining, p.verdict.Reset
		}
	}
	answer(&d, least, total, v.at)
	return d
}

// follow leaves at least as many events of a successor used as of the buckets before it. A request that costs
// nothing changes nothing.
func (v *vector) follow(s *Store) {
	for i := range v.pending {
		before := &v.pending[i]
		if before.skip || before.verdict.Granted == 0 || before.lim.successor == nil {
			continue
		}
		for j := range v.pending {
			p := &v.pending[j]
			if p.skip || p.verdict.Granted == 0 || p.ask.Cost == 0 || p.lim.limit != before.lim.successor || v.checks[j].Key != v.checks[i].Key {
				continue
			}
			law, old := p.lim.law(), before.lim.law()
			p.next = s.bucketCell(law.Follow(s.bucket(p.next), v.now, &old, s.bucket(before.next)))
			_, now := s.take(p.lim, p.next, v.now, algo.Ask{Copies: 1, MaxWait: p.ask.MaxWait})
			p.verdict.Remaining, p.verdict.Reset = now.Remaining, now.Reset
		}
	}
}

func (v *vector) take(s *Store, p *pendingCheck) (verdict algo.Verdict) {
	if p.lim.kind.inRecord() {
		var ok bool
		p.next, verdict, ok = s.takeRecord(p.lim, p.lim.table.segment(p.key), p.next, v.now, v.at, p.ask, true)
		if !ok { // what was granted has room, so it is refused, and there is none to count that
			verdict = p.refusal(v.now)
		}
	} else {
		p.next, verdict = s.take(p.lim, p.next, v.now, p.ask)
	}
	return verdict
}

// refusal returns the verdict of a record that refuses, without counting what is refused.
func (p *pendingCheck) refusal(now int64) algo.Verdict {
	var room entryRoom
	r := p.lim.record(p.next, &room)
	law := p.lim.runs.WithoutRejected()
	verdict, _ := law.Take(&r, now, p.ask)
	return verdict
}

// refuse reports the refusing check with the longest wait. Limits that count rejected
// requests count this one, whichever limit refused it, and refuse it as well if that leaves
// no room for it.
func (v *vector) refuse(s *Store) (d tidegate.Decision) {
	first := true
	for i := range v.pending {
		p := &v.pending[i]
		if p.skip || p.advisory {
			continue
		}
		var verdict algo.Verdict
		if p.refused = s.fit(p.lim, p.next, v.now, p.ask) == 0; p.refused {
			verdict = v.take(s, p)
		} else if p.reject(v.now); s.fit(p.lim, p.next, v.now, p.ask) == 0 {
			verdict = p.refusal(v.now)
		} else {
			continue
		}
		var next tidegate.Decision
		if answer(&next, p.lim.limit, verdict, v.now); first || next.Outranks(&d) {
			d = next
		}
		first = false
	}
	return d
}

// confirmed reports whether the states that refused are still as they were looked at. What was looked at may
// be half of one state and half of the next.
func (v *vector) confirmed() bool {
	for i := range v.pending {
		p := &v.pending[i]
		if p.refused && p.seen && p.slot.word.Load() != p.word {
			return false
		}
	}
	return true
}

// writeRefused writes back states that a refusal converted, because they were written under
// another limit or before the clock was set back. If somebody else wrote first, the
// next refusal does it.
func (v *vector) writeRefused() {
	for i := range v.pending {
		p := &v.pending[i]
		if !p.skip && p.seen && p.next != p.old {
			p.slot.swap(p.word, p.key, p.old, p.next)
		}
	}
}

func (p *pendingCheck) countsRejected() bool {
	return p.lim.kind == runs && p.lim.runs.CountsRejected()
}

// reject counts what another limit refused, where rejected events count.
func (p *pendingCheck) reject(now int64) {
	if !p.countsRejected() {
		return
	}
	for {
		var room entryRoom
		r := p.lim.record(p.next, &room)
		if p.lim.runs.Reject(&r, now, p.ask) {
			p.next = p.lim.keep(p.next, &r)
			return
		}
		var ok bool
		if p.next, ok = p.lim.growRecord(p.lim.table.segment(p.key), p.next, now, p.ask, true); !ok {
			return
		}
	}
}

// ensure makes the records large enough for what was granted, so that charging
// them cannot fail. It returns an enforcing check for which there is no memory;
// advisory checks without memory are left out, and those that are over need none.
func (v *vector) ensure(s *Store, squeeze bool) (short *pendingCheck) {
	for i := range v.pending {
		p := &v.pending[i]
		if p.skip || p.advisory && s.fit(p.lim, p.next, v.now, p.ask) == 0 || p.ensure(v.now, v.granted, squeeze || p.advisory) {
			continue
		}
		if !p.advisory {
			return p
		}
		p.release()
		p.skip = true
		p.lim.table.refused.Add(1)
	}
	return nil
}

func (p *pendingCheck) ensure(now, k int64, squeeze bool) (ok bool) {
	if !p.lim.kind.inRecord() || p.ask.Cost == 0 {
		return true
	}
	grant := algo.Ask{Cost: p.ask.Cost, Copies: k}
	for ok = true; ok && !p.holds(now, grant); {
		p.next, ok = p.lim.growRecord(p.lim.table.segment(p.key), p.next, now, grant, squeeze)
	}
	return ok
}

// holds reports whether the record of p has room to write a.
func (p *pendingCheck) holds(now int64, a algo.Ask) bool {
	var room entryRoom
	r := p.lim.record(p.next, &room)
	if p.lim.kind == runs {
		return p.lim.runs.Holds(&r, now)
	}
	return r.Words() >= algo.LeasesHeader+2*(r.Held()+int(a.Copies*a.Cost))
}

// named reports whether a lease of any of the records has a name between from and to, both included.
func (v *vector) named(from, to int64) bool {
	for i := range v.pending {
		p := &v.pending[i]
		if p.skip || p.lim.kind != leases {
			continue
		}
		var room entryRoom
		if r := p.lim.record(p.next, &room); p.lim.lease.HasName(&r, from, to) {
			return true
		}
	}
	return false
}
