package redis

import (
	"fmt"
	"math"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// pendingCheck is a check that is being sent to Redis, and the answer.
type pendingCheck struct {
	lim      *compiledLimit
	check    *tidegate.Check
	key      string // in Redis
	cost     int64  // of a copy; with those merged into it
	floor    int64  // events that have to remain
	wait     int64  // ticks
	lease    int64  // µs for which what is taken may be used; 0 means it is used at once
	befores  []int  // the numbers, from 1, of the checks whose buckets this one follows
	advisory bool
	answer   answer
	at       int64           // the receipt of its subject, in ticks
	handle   tidegate.Handle // of its slots
}

// leased reports whether p takes slots.
func (p *pendingCheck) leased() bool { return p.lim.kind == leases && p.cost > 0 }

// answer is the verdict of a law about one check, times in ticks.
type answer struct {
	got   int64 // copies
	left  int64 // events
	reset int64
	delay int64 // until the refused would pass, or the admitted may go ahead
	later int64 // until this check lets the next copy pass, if only some were granted; below 0 if it does now
}

// never reports whether the cost is above what can ever fit.
func (p *pendingCheck) never() bool { return max(p.cost, 1) > p.lim.capacity-p.floor }

// maxCopies is what a double can count.
const maxCopies = 1 << 52

// prepare prepares checks to be sent, and merges those of one counter. index says which of
// the results each check became part of; -1 means that it is left out.
func (s *Store) prepare(checks []tidegate.Check) (pending []*pendingCheck, index []int, err error) {
	all := make([]pendingCheck, len(checks))
	pending, index = make([]*pendingCheck, 0, len(checks)), make([]int, len(checks))
	for i := range checks {
		c := &checks[i]
		lim, err := s.compile(c.Limit)
		if err != nil {
			return nil, nil, err
		}
		if c.Cost < 0 {
			return nil, nil, fmt.Errorf("redis: Take(%s): cost is %d; use Adjust to return", c.Limit, c.Cost)
		}
		if c.Floor < 0 {
			return nil, nil, fmt.Errorf("redis: Take(%s): floor is %d; want 0 or more", c.Limit, c.Floor)
		}
		if c.Advisory {
			c.Over = false
		}
		lim = lim.asLastSeen()
		p := &all[i]
		*p = pendingCheck{lim: lim, check: c, key: lim.name(c.Key), cost: c.Cost, floor: min(c.Floor, lim.capacity), wait: algo.Ticks(c.MaxWait), advisory: c.Advisory}
		index[i] = len(pending)
		if j := same(pending, p); j < 0 {
			pending = append(pending, p)
		} else {
			merge(pending[j], p, index[:i+1], j)
		}
	}
	return pending, index, nil
}

// same returns the index of the check of the same counter as p, or -1.
func same(pending []*pendingCheck, p *pendingCheck) int {
	for j, q := range pending {
		if q.lim.identity == p.lim.identity && q.check.Key == p.check.Key {
			return j
		}
	}
	return -1
}

// merge joins p, the last check in index, with q, which has the index j and the same
// counter: their costs add up under the tighter limit. A check that only advises on a
// counter that another one decides on is left out.
func merge(q, p *pendingCheck, index []int, j int) {
	last := len(index) - 1
	switch {
	case p.advisory:
		index[last] = -1
		return
	case q.advisory:
		for i := range index {
			if index[i] == j {
				index[i] = -1
			}
		}
		index[last] = j
		*q = *p
		return
	}
	index[last] = j
	if p.lim.capacity-p.floor < q.lim.capacity-q.floor {
		q.lim, q.key, q.floor = p.lim, p.key, p.floor
	}
	if q.cost += p.cost; q.cost < 0 {
		q.cost = math.MaxInt64
	}
	q.wait = min(q.wait, p.wait)
}

// findBefore notes in checks which of the others they follow, and reports whether any does.
func findBefore(pending []*pendingCheck) (some bool) {
	for _, p := range pending {
		p.befores = nil // those of another request, which may have had other checks
	}
	for i, before := range pending {
		if before.lim.successor == nil {
			continue
		}
		for _, p := range pending {
			if p.lim.limit == before.lim.successor && p.check.Key == before.check.Key {
				p.befores, some = append(p.befores, i+1), true
			}
		}
	}
	return some
}

// name returns the key in Redis that value is counted under.
func (lim *compiledLimit) name(value string) string {
	var room [160]byte
	name := append(room[:0], lim.start...)
	name = appendTag(name, lim.limit.Scope, value)
	return string(append(name, lim.end...))
}

// request is the call of a script.
type request struct {
	template   template
	kinds      kindSet
	shape      shape // if it is not 0, it decides which script is called
	keys, args []string
	tag        tag
}

// script returns the script to be called.
func (r *request) script() *script {
	if r.shape != 0 {
		return nestedScript(r.shape)
	}
	return scriptFor(r.template, r.kinds)
}

// key returns the number of a key in KEYS, to which it adds a new key.
func (r *request) key(name string) uint16 {
	for i, k := range r.keys {
		if k == name {
			return uint16(i + 1)
		}
	}
	r.keys = append(r.keys, name)
	return uint16(len(r.keys))
}

// ask adds a check to a request.
func (r *request) ask(p *pendingCheck, c *clock) {
	var room [160]byte
	a := packer(room[:0])
	var altKey uint16
	if p.lim.isRuns() {
		altKey = r.key(p.lim.altKey(p.key))
	}
	p.pack(&a, r.key(p.key), altKey, c)
	r.kinds.add(p.lim.kind)
	r.args = append(r.args, string(a))
}

// pack appends a check as scripts read it; key and altKey are the numbers of its keys in
// KEYS.
func (p *pendingCheck) pack(a *packer, key, altKey uint16, c *clock) {
	a.byte(byte(p.lim.kind))
	flags := flag(p.advisory)
	// What a flag is about is preceded by what those below it are about.
	leased := p.lease > 0 && p.lim.kind == buckets
	switch {
	case len(p.befores) > 0:
		flags |= 2 | 4 | 8
	case leased:
		flags |= 2 | 4
	case p.floor > 0:
		flags |= 2
	}
	a.byte(flags)
	a.uint16(key)
	a.text(p.lim.id)
	a.int(min(p.cost, p.lim.capacity+1))
	if flags&2 != 0 {
		a.int(p.floor)
	}
	if flags&4 != 0 {
		a.int(p.lease)
	}
	if flags&8 != 0 {
		a.int(int64(len(p.befores)))
		for _, before := range p.befores {
			a.int(int64(before))
		}
	}
	p.lim.law(a, p.wait, p.lim.datesAround(c), altKey)
}

// request returns the call of a script that decides about the checks.
func (s *Store) request(pending []*pendingCheck, o takeParams) (request, error) {
	r := request{template: takeMulti, tag: s.tag(), keys: make([]string, 0, len(pending)+1), args: make([]string, 1, len(pending)+2)}
	if len(pending) == 1 && !pending[0].advisory && !o.refused && o.rec == nil {
		r.template = takeOne
		if o.peek {
			r.template = peekOne
		}
	}
	if follows := findBefore(pending); o.rec == nil && !o.refused && !s.onlyMulti && !follows {
		r.shape, _ = shapeOf(pending)
	}
	var room [256]byte
	head := packer(room[:0])
	head.number(float64(r.tag))
	head.number(s.clock.pretended())
	head.int(min(o.copies, maxCopies))
	for _, p := range pending {
		r.ask(p, &s.clock)
	}
	if r.shape != 0 {
		r.args = []string{joinNested(head, r.args[1:])}
		return r, nil
	}
	if o.rec != nil {
		head.int(o.rec.ttl.Microseconds())
	} else {
		head.int(0)
	}
	head.byte(flag(o.refused))
	if r.kinds.has(leases) {
		head.handle(o.handle)
	}
	r.args[0] = string(head)
	if o.rec == nil {
		return r, nil
	}
	text, err := o.rec.text(pending)
	r.keys = append(r.keys, s.recordKey(s.recordID(o.rec.handle, s.recordSlot(pending))))
	r.args = append(r.args, text)
	return r, err
}
