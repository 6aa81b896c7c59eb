package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// charge is one charge of a vector that is decided by the fast path.
type charge struct {
	lim     *compiledLimit
	slot    *slot
	key     keyHash
	slow    uint64 // of the slot, as word
	word    uint64 // of the slot, as it was read
	left    int64  // events left after the charge
	reset   int64  // ticks until reset after the charge; for a bucket its level
	owned   bool   // the slot is busy until word is stored
	refused bool
}

func (p *charge) old() cell { return cell{p.slow, p.word & fastMask} }

// spendAll decides a vector of checks into d by the fast path, or changes nothing and reports
// false, for example if a counter comes twice: its second charge finds the slot busy. Clearing an
// array for many charges takes as long as a decision, so there are arrays of three sizes.
func (s *Store) spendAll(d *tidegate.Decision, checks []tidegate.Check) bool {
	var few [4]charge
	switch n := len(checks); {
	case n == 0 || n > maxShort:
		return false
	case n <= len(few):
		return s.spendInto(d, few[:n], checks)
	case n <= 8:
		return s.spendSome(d, checks)
	default:
		return s.spendMany(d, checks)
	}
}

const maxShort = 16

func (s *Store) spendSome(d *tidegate.Decision, checks []tidegate.Check) bool {
	var some [8]charge
	return s.spendInto(d, some[:len(checks)], checks)
}

func (s *Store) spendMany(d *tidegate.Decision, checks []tidegate.Check) bool {
	var many [maxShort]charge
	return s.spendInto(d, many[:len(checks)], checks)
}

func (s *Store) spendInto(d *tidegate.Decision, all []charge, checks []tidegate.Check) bool {
	var lim *compiledLimit
	for i := range checks {
		c := &checks[i]
		if lim == nil || lim.limit != c.Limit {
			var err error
			if lim, err = s.compile(c.Limit); err != nil {
				return false
			}
		}
		if lim.short == longWay || c.Advisory || c.Cost <= 0 || c.MaxWait > 0 || c.Floor != 0 {
			return false
		}
		p := &all[i]
		p.lim, p.key = lim, s.hash.sum(c.Key, lim.salt)
		lim.table.touch(p.key)
	}
	origin, now := s.origin.Load(), s.clock.now()
	if !originCovers(origin, now) {
		return false
	}
	ok, sure := s.priceAll(all, checks, origin, now)
	if ok && ownAll(all) {
		reportLeast(d, all, now)
		chargeAll(all, checks, origin, now)
		return true
	}
	refused := sure && !ok && s.refuseAll(d, all, checks, now)
	for i := range all {
		if all[i].owned {
			all[i].slot.word.Store(all[i].word)
		}
	}
	return refused
}

// priceAll computes all states after the charge, and reports whether they have room.
func (s *Store) priceAll(all []charge, checks []tidegate.Check, origin, now int64) (ok, sure bool) {
	ok = true
	for i := range all {
		p := &all[i]
		var old cell
		if p.slot, old, p.word = p.lim.table.findAndRead(p.key); p.slot == nil {
			return false, false
		}
		p.slow = old.slow
		room, sure := p.price(s, origin, now, checks[i].Cost)
		if !sure {
			return false, false
		}
		p.refused = !room
		ok = ok && room
	}
	return ok, true
}

// ownAll takes ownership of the slots that price does not own already.
func ownAll(all []charge) bool {
	for i := range all {
		p := &all[i]
		if p.owned {
			continue
		}
		if p.owned = p.slot.word.CompareAndSwap(p.word, p.word|busyBit); !p.owned {
			return false
		}
	}
	return true
}

// chargeAll charges, and gives the slots back.
func chargeAll(all []charge, checks []tidegate.Check, origin, now int64) {
	for i := range all {
		p := &all[i]
		word := p.word
		switch p.lim.short {
		case shortBucket:
			word = word&genMask | uint64(now+p.reset-origin)
		case shortRuns:
			var room entryRoom
			r := p.lim.record(p.old(), &room)
			p.lim.runs.Spend(&r, now, checks[i].Cost, true)
			word = word&genMask | p.lim.keep(p.old(), &r).fast
		default:
			word += uint64(checks[i].Cost)
		}
		p.slot.word.Store(word)
	}
}

// price computes the state of p after cost is charged. sure is false if the fast path cannot decide.
func (p *charge) price(s *Store, origin, now, cost int64) (ok, sure bool) {
	lim := p.lim
	switch lim.short {
	case shortBucket:
		if p.slow != uint64(lim.bucket.Em) {
			return false, false
		}
		p.reset, p.left, ok, sure = lim.bucket.Spend(origin+int64(p.word&fastMask), now, cost)
		return ok, sure
	case shortCounter:
		wall, span := s.clock.wall(now), lim.spans.Load()
		if span == nil || p.slow != uint64(span.Start) || !span.Holds(wall/algo.Micro) {
			return false, false
		}
		p.left, ok = lim.counter.Spend(int64(p.word&fastMask), cost)
		p.reset = span.End*algo.Micro - wall
	case shortSliding:
		p.left, p.reset, ok = lim.sliding.Spend(sliding(p.old()), now, cost)
	default:
		return p.priceRuns(now, cost)
	}
	return ok, true
}

// priceRuns is price of an entry or a record, whose slot has to be owned to be read.
func (p *charge) priceRuns(now, cost int64) (ok, sure bool) {
	old, word, ok := p.slot.lock(p.key)
	if !ok {
		return false, false
	}
	p.slow, p.word, p.owned = old.slow, word, true
	var room entryRoom
	r := p.lim.record(old, &room)
	left, reset, at, spending := p.lim.runs.Spend(&r, now, cost, false)
	switch p.left, p.reset = left, reset; spending {
	case algo.Spent:
		return true, at == now
	case algo.TooFull:
		return false, false
	}
	return false, !p.lim.runs.Behind(&r, now)
}

// refuseAll reports the refusing check with the longest wait. Where that is not sure, since the clock was
// read before the states, it reads the clock again. It reports false if there may be room after all.
func (s *Store) refuseAll(d *tidegate.Decision, all []charge, checks []tidegate.Check, now int64) bool {
	first := true
	for i := range all {
		p := &all[i]
		for j := range i {
			if all[j].slot == p.slot { // its costs add up
				return false
			}
		}
		if !p.refused {
			continue
		}
		v, ok := p.refusal(s, now, ask(checks[i].Cost, 0, 1))
		if ok && !surelyRefused(v) {
			var failed any
			if now, failed = s.clock.tryNow(); failed != nil {
				return false // the long way reads it once more
			}
			v, ok = p.refusal(s, now, ask(checks[i].Cost, 0, 1))
		}
		if !ok || v.Granted > 0 || v.Never() || !p.confirmed() {
			return false
		}
		var other tidegate.Decision
		if answer(&other, p.lim.limit, v, now); first || other.Outranks(d) {
			*d = other
		}
		first = false
	}
	return true
}

// refusal returns the verdict about a charge that has no room. It reports false if it would change
// the state.
func (p *charge) refusal(s *Store, now int64, a algo.Ask) (v algo.Verdict, ok bool) {
	if p.lim.short == shortRuns {
		var room entryRoom
		r := p.lim.record(p.old(), &room)
		if p.lim.runs.Fit(&r, now, a) > 0 {
			return v, false
		}
		return p.lim.runs.Take(&r, now, a)
	}
	next, v := s.take(p.lim, p.old(), now, a)
	return v, next == p.old()
}

// confirmed reports whether the state is still as it was read. What was read may be half of one state and half of the
// next.
func (p *charge) confirmed() bool { return p.owned || p.slot.word.Load() == p.word }

// reportLeast fills in the limit with the least left, the first of equals.
func reportLeast(d *tidegate.Decision, all []charge, now int64) {
	var least *charge
	var left, whole int64
	for i := range all {
		p := &all[i]
		if w := p.lim.limit.Capacity(); least == nil || p.left*whole < left*w {
			least, left, whole = p, p.left, w
		}
	}
	d.OK, d.Granted = true, 1
	d.Limit, d.Receipt.At = least.lim.limit, now
	d.Remaining = left
	d.ResetAfter = algo.Duration(least.reset)
}
