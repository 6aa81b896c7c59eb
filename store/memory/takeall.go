package memory

import (
	"math"
	"time"
	"unsafe"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// plan is what is known of one check while a vector of them is decided.
type plan struct {
	b        *bound
	key      keyHash
	ask      algo.Ask
	advisory bool
	skip     bool // merged into an earlier check of the same counter

	slot      *slot // nil: the key is not known yet
	word      uint64
	old, next cell
}

// takeAll decides a vector: all of it or nothing.
func (s *Store) takeAll(checks []tidegate.Check, n int) (tidegate.Decision, error) {
	var one [1]plan
	var some [8]plan
	switch len(checks) {
	case 0:
		return tidegate.Decision{OK: true, Granted: int64(n), At: s.clock.now()}, nil
	case 1:
		return s.decideAll(one[:], checks, n)
	case 2, 3, 4, 5, 6, 7, 8:
		return s.decideAll(some[:len(checks)], checks, n)
	}
	return s.decideAll(make([]plan, len(checks)), checks, n)
}

func (s *Store) decideAll(plans []plan, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	v := vector{plans: plans, copies: int64(n)}
	if err := v.prepare(s, checks, n); err != nil {
		return tidegate.Decision{}, err
	}
	again := false
	for turn := 0; ; turn++ {
		v.find()
		v.now = s.clock.now()
		if !v.records {
			d, refused := v.refusedAtSight(s)
			if refused && !again && d.RetryAfter < staleAt {
				again = true
				continue
			}
			if refused {
				return d, nil
			}
		}
		if full := v.insertMissing(s); full != nil {
			return s.full(full, v.now), nil
		}
		if !v.lock() {
			pause(turn)
			continue
		}
		if v.records {
			v.now = s.clock.now()
		}
		d, short := v.decide(s)
		v.unlock()
		switch {
		case short == nil && (d.OK || again || d.RetryAfter >= staleAt || v.records):
			return d, nil
		case short == nil:
			again = true
		case turn > 2 || !s.evict(short.b, short.b.table.segment(short.key), v.now):
			return s.full(short.b, v.now), nil
		}
	}
}

// staleAt: who is told to come back this soon may be refused only because the
// clock was read a moment before somebody else's charge. It is read again, once.
// Records are safe from that: the clock is read when they are owned, so that
// what they are stamped with is what the receipt says.
const staleAt = time.Millisecond

// vector is a vector of checks being decided.
type vector struct {
	plans   []plan
	copies  int64
	now, at int64
	records bool // some state is in an arena
	leases  bool
	writes  bool // some cost is not 0
	room    [8]int
}

func (v *vector) prepare(s *Store, checks []tidegate.Check, n int) error {
	for i := range checks {
		c := &checks[i]
		b, err := s.bind(c.Limit)
		if err != nil {
			return err
		}
		if c.Cost < 0 {
			return negativeCost(c.Limit, c.Cost)
		}
		p := &v.plans[i]
		*p = plan{b: b, key: s.hash.sum(c.Key, b.table.salt), ask: ask(c.Cost, c.MaxWait, n), advisory: c.Advisory}
		v.records = v.records || b.kind.inRecord()
		v.leases = v.leases || b.kind == leases
		v.writes = v.writes || c.Cost > 0
		v.merge(i)
	}
	return nil
}

// merge joins the check i with an earlier one of the same counter: their costs
// add up under the tighter limit. A check that only advises on a counter that
// another check decides on is left out.
func (v *vector) merge(i int) {
	p := &v.plans[i]
	for j := range i {
		q := &v.plans[j]
		if q.skip || q.key != p.key || q.b.table != p.b.table {
			continue
		}
		switch {
		case p.advisory:
			p.skip = true
		case q.advisory:
			q.skip = true
			continue
		default:
			if p.b.limit.Capacity() < q.b.limit.Capacity() {
				q.b = p.b
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

// refusedAtSight answers a vector that is refused by a state as it stands,
// without writing anything.
func (v *vector) refusedAtSight(s *Store) (d tidegate.Decision, refused bool) {
	for i := range v.plans {
		p := &v.plans[i]
		if p.skip || p.advisory {
			continue
		}
		var c cell
		if p.slot != nil {
			var ok bool
			if c, _, ok = p.slot.read(p.key); !ok {
				continue // just being written: it is looked at again when owned
			}
		}
		if s.fit(p.b, c, v.now, p.ask) > 0 {
			continue
		}
		_, verdict := s.take(p.b, c, v.now, p.ask)
		if next := decision(p.b.limit, &verdict, v.now); !refused || next.Outranks(&d) {
			d = next
		}
		refused = true
	}
	return d, refused
}

// insertMissing gives every key that is to be charged a slot. It returns the
// limit whose key found no room.
func (v *vector) insertMissing(s *Store) (full *bound) {
	if !v.writes {
		return nil
	}
	for i := range v.plans {
		p := &v.plans[i]
		if p.skip || p.slot != nil {
			continue
		}
		for p.slot == nil {
			if _, ok := s.insert(p.b, p.key, cell{}, v.now); !ok {
				if !p.advisory {
					return p.b
				}
				p.b.table.refused.Add(1)
				p.skip = true
				break
			}
			p.slot = p.b.table.find(p.key)
		}
	}
	return nil
}

// find looks all keys up, in one go, so that what misses the cache does so at
// the same time.
func (v *vector) find() {
	for i := range v.plans {
		p := &v.plans[i]
		if !p.skip {
			p.slot = p.b.table.find(p.key)
		}
	}
	if v.writes {
		return // keys that are being moved are found when inserted
	}
	for i := range v.plans {
		p := &v.plans[i]
		for !p.skip && p.slot == nil && p.b.table.holds(p.key) {
			p.slot = p.b.table.find(p.key)
		}
	}
}

// lock owns all slots, or none and reports false. The order by address keeps
// two vectors from meeting head-on for ever.
func (v *vector) lock() bool {
	order := v.order()
	for n, i := range order {
		p := &v.plans[i]
		p.old, p.next = cell{}, cell{}
		if p.skip || p.slot == nil {
			continue
		}
		var ok bool
		if p.old, p.word, ok = p.slot.lock(p.key); !ok {
			for _, j := range order[:n] {
				v.plans[j].release()
			}
			return false
		}
		p.next = p.old
	}
	return true
}

// order is the plans' indices by the address of their slots.
func (v *vector) order() []int {
	order := v.room[:0]
	for i := range v.plans {
		j := len(order)
		order = append(order, i)
		for ; j > 0 && after(v.plans[order[j-1]].slot, v.plans[i].slot); j-- {
			order[j] = order[j-1]
		}
		order[j] = i
	}
	return order
}

func after(a, b *slot) bool { return uintptr(unsafe.Pointer(a)) > uintptr(unsafe.Pointer(b)) }

func (p *plan) release() {
	if !p.skip && p.slot != nil {
		p.slot.release(p.word, p.key, p.old, p.next)
	}
}

func (v *vector) unlock() {
	for i := range v.plans {
		v.plans[i].release()
	}
}

// decide charges as many copies as all enforcing checks have room for. All
// slots are owned. short is a check that memory lacks a record for; nothing is
// charged then.
func (v *vector) decide(s *Store) (d tidegate.Decision, short *plan) {
	k := v.copies
	for i := range v.plans {
		if p := &v.plans[i]; !p.skip && !p.advisory {
			k = min(k, s.fit(p.b, p.next, v.now, p.ask))
		}
	}
	if k == 0 {
		return v.refuse(s), nil
	}
	for i := range v.plans {
		if p := &v.plans[i]; !p.skip && !p.ensure(v.now, k) {
			if !p.advisory {
				return d, p
			}
			p.release()
			p.skip = true
		}
	}
	v.at = v.now
	if v.leases {
		v.at = s.leaseName(v.now, int(k))
	}
	var least *tidegate.Limit
	var told algo.Verdict
	var wait int64
	for i := range v.plans {
		p := &v.plans[i]
		if p.skip {
			continue
		}
		p.ask.Copies = k
		verdict := v.charge(s, p)
		if p.advisory {
			continue
		}
		wait = max(wait, verdict.Wait)
		if l := p.b.limit; least == nil || verdict.Remaining*least.Capacity() < told.Remaining*l.Capacity() {
			least, told = l, verdict
		}
	}
	told.Granted, told.Wait = k, wait
	return decision(least, &told, v.at), nil
}

func (v *vector) charge(s *Store, p *plan) (verdict algo.Verdict) {
	if p.b.kind.inRecord() {
		p.next, verdict, _ = s.takeRecord(p.b, p.next, v.now, v.at, p.ask)
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
		verdict := v.charge(s, p)
		if next := decision(p.b.limit, &verdict, v.now); first || next.Outranks(&d) {
			d = next
		}
		first = false
	}
	return d
}

func (p *plan) reject(now int64) {
	if p.b.kind != logs || !p.b.log.CountRejected {
		return
	}
	for !p.b.log.Reject(p.b.record(p.next), now, p.ask) {
		var ok bool
		if p.next, ok = p.b.larger(p.next, now, p.ask); !ok {
			return
		}
	}
}

// ensure makes the record of p large enough for k copies, so that charging it
// cannot fail.
func (p *plan) ensure(now, k int64) (ok bool) {
	ok = true
	if !p.b.kind.inRecord() || p.ask.Cost == 0 {
		return ok
	}
	if p.next.slow == 0 {
		p.next, ok = p.b.larger(p.next, now, algo.Ask{Cost: p.ask.Cost, Copies: k})
	}
	if held := p.b.record(p.next); ok && p.b.kind == leases &&
		len(held) < algo.LeasesHeader+2*(algo.Leases(held).Held()+int(k*p.ask.Cost)) {
		p.next, ok = p.b.larger(p.next, now, algo.Ask{Cost: p.ask.Cost, Copies: k})
	}
	return ok
}

// leaseName reserves n names of leases: instants that no other lease has.
func (s *Store) leaseName(now int64, n int) int64 {
	for {
		last := s.lastAt.Load()
		at := max(now, last+1)
		if s.lastAt.CompareAndSwap(last, at+int64(n)-1) {
			return at
		}
	}
}
