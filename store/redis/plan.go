package redis

import (
	"fmt"
	"math"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// plan is a check on its way to Redis.
type plan struct {
	b        *bound
	check    *tidegate.Check
	key      string // in Redis
	cost     int64  // of a copy; with those merged into it
	floor    int64  // events that have to remain
	wait     int64  // ticks
	advisory bool
	answer   answer          // about it
	at       int64           // the receipt of its subject, in ticks
	handle   tidegate.Handle // of its slots
}

// leased reports whether it takes slots.
func (p *plan) leased() bool { return p.b.kind == leases && p.cost > 0 }

// answer is what a law tells of one check, times in ticks.
type answer struct {
	got   int64 // copies
	left  int64 // events
	reset int64
	other int64 // until the refused would pass, or the admitted may go ahead
	later int64 // until the next copy would pass, where it did not; less than 0: it would
}

// never reports whether the cost is above what can ever fit.
func (p *plan) never() bool { return max(p.cost, 1) > p.b.capacity-p.floor }

// maxCopies is what a double can count.
const maxCopies = 1 << 52

// plan readies checks, and joins those of one counter. index says of each check which
// plan it became part of; -1 of one that is left out.
func (s *Store) plan(checks []tidegate.Check) (plans []*plan, index []int, err error) {
	all := make([]plan, len(checks))
	plans, index = make([]*plan, 0, len(checks)), make([]int, len(checks))
	for i := range checks {
		c := &checks[i]
		b, err := s.bind(c.Limit)
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
		b = b.guess()
		p := &all[i]
		*p = plan{b: b, check: c, key: b.name(c.Key), cost: c.Cost, floor: min(c.Floor, b.capacity), wait: algo.Ticks(c.MaxWait), advisory: c.Advisory}
		index[i] = len(plans)
		if j := same(plans, p); j < 0 {
			plans = append(plans, p)
		} else {
			merge(plans[j], p, index[:i+1], j)
		}
	}
	return plans, index, nil
}

// same is the plan of the same counter as p; -1: there is none.
func same(plans []*plan, p *plan) int {
	for j, q := range plans {
		if q.b.family == p.b.family && q.check.Key == p.check.Key {
			return j
		}
	}
	return -1
}

// merge joins p, the last check in index, with q, the plan j of the same counter: their
// costs add up under the tighter limit. A check that only advises on a counter that
// another one decides on is left out.
func merge(q, p *plan, index []int, j int) {
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
	if p.b.capacity-p.floor < q.b.capacity-q.floor {
		q.b, q.key, q.floor = p.b, p.key, p.floor
	}
	if q.cost += p.cost; q.cost < 0 {
		q.cost = math.MaxInt64
	}
	q.wait = min(q.wait, p.wait)
}

// name is the key that is counted under in Redis.
func (b *bound) name(value string) string {
	var room [160]byte
	name := append(room[:0], b.start...)
	name = appendTag(name, b.limit.Scope, value)
	return string(append(name, b.end...))
}

// request is what a script is sent.
type request struct {
	form       form
	kinds      kindSet
	keys, args []string
	tag        tag
}

// key is the number of a key in KEYS.
func (r *request) key(name string) uint16 {
	for i, k := range r.keys {
		if k == name {
			return uint16(i + 1)
		}
	}
	r.keys = append(r.keys, name)
	return uint16(len(r.keys))
}

// ask puts a plan's check into a request.
func (r *request) ask(p *plan, c *clock) {
	var room [160]byte
	a := packer(room[:0])
	var twin uint16
	if p.b.inRuns() {
		twin = r.key(p.b.twin(p.key))
	}
	p.pack(&a, r.key(p.key), twin, c)
	r.kinds.add(p.b.kind)
	r.args = append(r.args, string(a))
}

// pack appends what a script is told of a check; key and twin are the numbers of its
// keys in KEYS.
func (p *plan) pack(a *packer, key, twin uint16, c *clock) {
	a.byte(byte(p.b.kind))
	flags := flag(p.advisory)
	if p.floor > 0 {
		flags |= 2
	}
	a.byte(flags)
	a.uint16(key)
	a.text(p.b.id)
	a.int(min(p.cost, p.b.capacity+1))
	if p.floor > 0 {
		a.int(p.floor)
	}
	p.b.law(a, p.wait, p.b.around(c), twin)
}

// request puts an order into one.
func (s *Store) request(plans []*plan, o order) (request, error) {
	r := request{form: several, tag: s.tag(), keys: make([]string, 0, len(plans)+1), args: make([]string, 1, len(plans)+2)}
	if len(plans) == 1 && !plans[0].advisory && !o.refused && o.rec == nil {
		r.form = one
	}
	var room [48]byte
	head := packer(room[:0])
	head.number(float64(r.tag))
	head.number(s.clock.pretended())
	head.int(min(o.copies, maxCopies))
	if o.rec != nil {
		head.int(o.rec.ttl.Microseconds())
	} else {
		head.int(0)
	}
	head.byte(flag(o.refused))
	for _, p := range plans {
		r.ask(p, &s.clock)
	}
	if r.kinds.has(leases) {
		head.handle(o.handle)
	}
	r.args[0] = string(head)
	if o.rec == nil {
		return r, nil
	}
	text, err := o.rec.text(plans)
	r.keys = append(r.keys, s.recordKey(s.recordID(o.rec.handle, s.placeOf(plans))))
	r.args = append(r.args, text)
	return r, err
}
