package offenders

import (
	"math"
	"math/bits"
	"strings"

	"tidegate.dev/tidegate"
)

// kind is what a list ranks keys by.
type kind uint8

const (
	refused kind = iota
	wouldRefuse
	requests
	nearest
	kinds = nearest + 1
)

// join adds two counts, or returns the larger of two peaks.
func (k kind) join(a, b uint32) uint32 {
	if k == nearest {
		return max(a, b)
	}
	if a > math.MaxUint32-b {
		return math.MaxUint32
	}
	return a + b
}

// list has the keys of one rule with the highest counts, or the highest use of their limit. There
// may be thousands of lists, so it is small.
type list struct {
	kind  kind
	count uint16 // number of entries
	hand  uint16 // an entry: where pool.least continues
	salt  uint32 // distinguishes equal keys of different lists
	at    slice  // the newest slice that is counted
	low   uint32 // a lower bound of all ranks
	// floor is an upper bound of what an unlisted key has, by minute.
	floor [minutes]uint32
	// weight is the largest weight that was counted, by minute, as a power of two: 0 if nothing was
	// sampled.
	weight [minutes]uint8
}

// idle reports whether nothing that was counted is left.
func (l *list) idle() bool { return l.count == 0 && l.floor == [minutes]uint32{} }

// missed returns how much more e may have in a minute than was counted, because it was not listed
// all the time.
func (l *list) missed(e *entry, minute int32) uint32 {
	switch listed := e.since.minute(); {
	case minute < listed:
		return l.floor[cellOf(minute)]
	case minute == listed:
		return e.missed
	}
	return 0
}

// note adds an observation of a key to a list: its weight if the list has counts, or the used part
// of the limit if it has peaks.
func (p *pool) note(l *list, hash uint64, limit *tidegate.Limit, key string, value, weight uint32) {
	m := cellOf(l.at.minute())
	l.weight[m] = max(l.weight[m], uint8(bits.Len32(weight-1)))
	slot, ok := p.find(l, hash, limit, key)
	if !ok {
		if slot, ok = p.slot(l, value); !ok {
			l.floor[m] = l.kind.join(l.floor[m], value)
			return
		}
		p.insert(l, slot, hash, limit, key)
	}
	e := p.at(slot)
	e.limit = limit
	e.fine[l.at.cell()] = l.kind.join(e.fine[l.at.cell()], value)
	e.coarse[m] = l.kind.join(e.coarse[m], value)
	p.ranks[slot] = l.kind.join(p.ranks[slot], value)
}

// advance moves a list to the slice now, and forgets what is too old.
func (p *pool) advance(l *list, now slice) {
	if l.at == now {
		return
	}
	was := l.at
	l.at = now
	first := max(was+1, now-(slices10s-1)) // older slices would only be cleared twice
	for s := first; s <= now; s++ {
		p.each(l, func(_ uint16, e *entry) { e.fine[s.cell()] = 0 })
	}
	if was.minute() == now.minute() {
		return
	}
	for m := max(was.minute()+1, now.minute()-(minutes-1)); m <= now.minute(); m++ {
		c := cellOf(m)
		l.floor[c], l.weight[c] = 0, 0
		p.each(l, func(_ uint16, e *entry) { e.coarse[c] = 0 })
	}
	l.low = 0
	p.each(l, func(slot uint16, e *entry) {
		if e.coarse == [minutes]uint32{} {
			p.remove(l, slot)
			return
		}
		p.ranks[slot] = l.rank(e)
	})
}

// rank returns the value by which entries are compared: an upper bound of their count, so that a
// newly listed key is not the next to be dropped. A peak needs no such bound.
func (l *list) rank(e *entry) (sum uint32) {
	now := l.at.minute()
	for m := now - (minutes - 1); m <= now; m++ {
		sum = l.kind.join(sum, e.coarse[cellOf(m)])
		if l.kind != nearest {
			sum = l.kind.join(sum, l.missed(e, m))
		}
	}
	return sum
}

// scopeOf returns what a limit counts by. The limits of a rule that mark, try or block have the
// same callers as the one that decides.
func scopeOf(l *tidegate.Limit) string {
	scope := l.Scope
	if i := strings.LastIndexByte(scope, '#'); i >= 0 {
		switch scope[i:] {
		case "#block", "#nominal", "#candidate":
			return scope[:i]
		}
	}
	return scope
}
