package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// maxFastVector is the longest vector that spendAll decides.
const maxFastVector = 8

// bucketCharge is one charge of a vector of token buckets.
type bucketCharge struct {
	lim   *compiledLimit
	slot  *slot
	key   keyHash
	word  uint64 // as looked at
	level int64  // once charged
}

// spendAll decides into d a vector of token buckets whose keys are known and have room,
// or changes nothing and reports false, as for a counter that comes twice: its second
// charge finds the slot busy.
func (s *Store) spendAll(d *tidegate.Decision, checks []tidegate.Check) bool {
	if len(checks) == 0 || len(checks) > maxFastVector {
		return false
	}
	var room [maxFastVector]bucketCharge
	all := room[:len(checks)]
	var lim *compiledLimit
	for i := range checks {
		c := &checks[i]
		if lim == nil || lim.limit != c.Limit {
			var err error
			if lim, err = s.compile(c.Limit); err != nil || !lim.isTokenBucket {
				return false
			}
		}
		if c.Advisory || c.Cost <= 0 || c.MaxWait > 0 || c.Floor != 0 {
			return false
		}
		p := &all[i]
		p.lim, p.key = lim, s.hash.sum(c.Key, lim.table.salt)
		lim.table.touch(p.key)
	}
	origin, now := s.origin.Load(), s.clock.now()
	if !inReach(origin, now) {
		return false
	}
	for i := range all {
		p := &all[i]
		var old cell
		p.slot, old, p.word = p.lim.table.findAndRead(p.key)
		if p.slot == nil || old.slow != uint64(p.lim.bucket.Em) {
			return false
		}
		level, ok, sure := p.lim.bucket.Spend(origin+int64(old.fast), now, checks[i].Cost)
		if !ok || !sure {
			return false
		}
		p.level = level
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
	reportLeast(d, all, now)
	for i := range all {
		p := &all[i]
		p.slot.word.Store(p.word&genMask | uint64(now+p.level-origin))
	}
	return true
}

// reportLeast fills in the limit with the least left, the first of equals.
func reportLeast(d *tidegate.Decision, all []bucketCharge, now int64) {
	var least *bucketCharge
	var left, whole int64
	for i := range all {
		p := &all[i]
		if least != nil && p.lim == least.lim && p.level <= least.level {
			continue
		}
		l, w := p.lim.bucket.Left(p.level), p.lim.limit.Capacity()
		if least == nil || l*whole < left*w {
			least, left, whole = p, l, w
		}
	}
	d.OK, d.Granted = true, 1
	d.Limit, d.Receipt.At = least.lim.limit, now
	d.Remaining = left
	d.ResetAfter = algo.Duration(least.level)
}
