package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// maxSpends is the longest vector that has a short way.
const maxSpends = 8

// spending is one charge of a vector of token buckets.
type spending struct {
	b    *bound
	slot *slot
	key  keyHash
	word uint64 // as looked at
	owed int64  // once charged
}

// spendAll decides into d a vector of token buckets whose keys are known and have
// room, or reports false and has changed nothing. A counter that comes twice is
// found busy by its second charge.
func (s *Store) spendAll(d *tidegate.Decision, checks []tidegate.Check) bool {
	if len(checks) == 0 || len(checks) > maxSpends {
		return false
	}
	var room [maxSpends]spending
	all := room[:len(checks)]
	var b *bound
	for i := range checks {
		c := &checks[i]
		if b == nil || b.limit != c.Limit {
			var err error
			if b, err = s.bind(c.Limit); err != nil || !b.plain {
				return false
			}
		}
		if c.Advisory || c.Cost <= 0 || c.MaxWait > 0 || c.Floor != 0 {
			return false
		}
		p := &all[i]
		p.b, p.key = b, s.hash.sum(c.Key, b.table.salt)
		b.table.touch(p.key)
	}
	origin, now := s.origin.Load(), s.clock.now()
	if !reaches(origin, now) {
		return false
	}
	for i := range all {
		p := &all[i]
		var old cell
		p.slot, old, p.word = p.b.table.look(p.key)
		if p.slot == nil || old.slow != uint64(p.b.bucket.Em) {
			return false
		}
		owed, ok, sure := p.b.bucket.Spend(origin+int64(old.fast), now, checks[i].Cost)
		if !ok || !sure {
			return false
		}
		p.owed = owed
	}
	for i := range all {
		p := &all[i]
		if !p.slot.word.CompareAndSwap(p.word, p.word|busyBit) {
			for j := range i {
				all[j].slot.word.Store(all[j].word)
			}
			return false
		}
	}
	tell(d, all, now)
	for i := range all {
		p := &all[i]
		p.slot.word.Store(p.word&genMask | uint64(now+p.owed-origin))
	}
	return true
}

// tell describes the limit with the least left, the first of equals.
func tell(d *tidegate.Decision, all []spending, now int64) {
	var least *spending
	var left, whole int64
	for i := range all {
		p := &all[i]
		if least != nil && p.b == least.b && p.owed <= least.owed {
			continue
		}
		l, w := p.b.bucket.Left(p.owed), p.b.limit.Capacity()
		if least == nil || l*whole < left*w {
			least, left, whole = p, l, w
		}
	}
	d.OK, d.Granted = true, 1
	d.Limit, d.Receipt.At = least.b.limit, now
	d.Remaining = left
	d.ResetAfter = algo.Duration(least.owed)
}
