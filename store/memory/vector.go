package memory

import (
	"math"
	"slices"
	"unsafe"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// vector is a vector of checks being decided.
type vector struct {
	checks  []tidegate.Check
	pending []pendingCheck
	copies  int64 // asked for
	granted int64 // that all enforcing states looked at have room for
	now, at int64
	records bool // some state is in a record
	leases  bool
	writes  bool // some cost is not 0
	changed bool // some state is not the one that was looked at
	follows bool // some bucket has a successor
	room    [8]int

	countsRejected bool // some limit counts what is refused, and so needs a slot for it
}

// pendingCheck is a check while its vector is decided.
type pendingCheck struct {
	lim      *compiledLimit
	key      keyHash
	ask      algo.Ask
	advisory bool
	skip     bool // merged into another check of the same counter
	seen     bool // old and word are as looked at
	refused  bool // by the last refusal
	verdict  algo.Verdict

	slot      *slot // nil if the key is not known yet
	word      uint64
	old, next cell
}

func (v *vector) prepare(s *Store, n int) error {
	var lim *compiledLimit
	for i := range v.checks {
		c := &v.checks[i]
		if lim == nil || lim.limit != c.Limit || lim.floor != c.Floor {
			var err error
			if lim, err = s.compileCheck(c); err != nil {
				return err
			}
		}
		if c.Cost < 0 {
			return negativeCost(c.Limit, c.Cost)
		}
		if c.Advisory {
			c.Over = false
		}
		p := &v.pending[i]
		p.lim, p.advisory = lim, c.Advisory
		p.key = s.hash.sum(c.Key, lim.salt)
		p.ask = ask(c.Cost, c.MaxWait, n)
		v.records = v.records || lim.kind.inRecord()
		v.leases = v.leases || lim.kind == leases
		v.countsRejected = v.countsRejected || p.countsRejected()
		v.writes = v.writes || c.Cost > 0
		v.follows = v.follows || lim.successor != nil
		v.merge(i)
	}
	return nil
}

// sharesCounters reports whether lim and o count in the same keys. Their tables need not be
// the same: one may have been dropped between two checks of a vector.
func (lim *compiledLimit) sharesCounters(o *compiledLimit) bool {
	return lim.table == o.table || lim.table.id == o.table.id
}

// merge joins the check i with an earlier one of the same counter: their costs
// add up under the tighter limit. A check that only advises on a counter that
// another check decides on is left out.
func (v *vector) merge(i int) {
	p := &v.pending[i]
	for j := range i {
		q := &v.pending[j]
		if q.key.tag != p.key.tag || q.skip || q.key != p.key || !q.lim.sharesCounters(p.lim) {
			continue
		}
		switch {
		case p.advisory:
			p.skip = true
		case q.advisory:
			q.skip = true
			continue
		default:
			if p.lim.fits < q.lim.fits {
				q.lim = p.lim
			}
			if q.ask.Cost += p.ask.Cost; q.ask.Cost < 0 {
				q.ask.Cost = math.MaxInt64
			}
			q.ask.MaxWait = min(q.ask.MaxWait, p.ask.MaxWait)
			p.skip = true
		}
		return
	}
}

// find looks up all keys. It prefetches their slots first, so that cache misses
// overlap.
func (v *vector) find(s *Store) {
	if len(v.pending) > 1 {
		for i := range v.pending {
			v.pending[i].lim.table.touch(v.pending[i].key)
		}
	}
	for i := range v.pending {
		p := &v.pending[i]
		if !p.skip {
			p.lim = s.current(p.lim)
			p.slot = p.lim.table.find(p.key)
		}
	}
	for i := range v.pending {
		p := &v.pending[i]
		// Keys to be charged that are being moved are found when inserted.
		for !p.skip && p.ask.Cost == 0 && p.slot == nil && p.lim.table.holds(p.key) {
			p.slot = p.lim.table.find(p.key)
		}
	}
}

// unknown reports whether a key that is to be charged has no slot.
func (v *vector) unknown() bool {
	return slices.ContainsFunc(v.pending, func(p pendingCheck) bool { return p.missing() })
}

// missing reports whether p needs a slot and has none: a key that is only peeked at needs none.
func (p *pendingCheck) missing() bool { return p.slot == nil && !p.skip && p.ask.Cost > 0 }

// insertMissing gives every key that is to be charged a slot. It returns the
// limit whose key found no room.
func (v *vector) insertMissing(s *Store) (full *compiledLimit) {
	if !v.writes {
		return nil
	}
	for i := range v.pending {
		p := &v.pending[i]
		for p.missing() {
			p.lim = s.current(p.lim)
			if _, ok := s.insert(p.lim, p.key, cell{}, v.now); ok {
				p.slot, p.seen = p.lim.table.find(p.key), false
				continue
			}
			if !p.advisory {
				return p.lim
			}
			p.lim.table.refused.Add(1)
			p.skip = true
		}
	}
	return nil
}

// lock owns all slots, or none and reports false. Nobody waits for a slot while owning
// another. After contention slots are locked in the order of their addresses, so that
// one of the callers gets through.
func (v *vector) lock(contended bool) bool {
	v.changed = v.records
	order := v.order(contended)
	for n, i := range order {
		p := &v.pending[i]
		if p.skip || p.slot == nil {
			p.next = cell{}
			continue
		}
		ok := p.seen && p.slot.word.CompareAndSwap(p.word, p.word|busyBit)
		if !ok {
			v.changed = true
			p.old, p.word, ok = p.slot.lock(p.key)
		}
		if !ok {
			for _, j := range order[:n] {
				v.pending[j].release()
			}
			return false
		}
		p.next = p.old
	}
	return true
}

// order returns the indices of the checks, sorted by the address of their slots if
// byAddress is set.
func (v *vector) order(byAddress bool) []int {
	order := v.room[:0]
	for i := range v.pending {
		j := len(order)
		order = append(order, i)
		for ; byAddress && j > 0 && after(v.pending[order[j-1]].slot, v.pending[i].slot); j-- {
			order[j] = order[j-1]
		}
		order[j] = i
	}
	return order
}

func after(a, b *slot) bool { return uintptr(unsafe.Pointer(a)) > uintptr(unsafe.Pointer(b)) }

func (p *pendingCheck) release() {
	if !p.skip && p.slot != nil {
		p.slot.release(p.word, p.key, p.old, p.next)
	}
}

func (v *vector) unlock() {
	for i := range v.pending {
		v.pending[i].release()
	}
}
