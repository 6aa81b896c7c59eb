package algo

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// leaseOracle lists who holds what until when.
type leaseOracle struct {
	limit *tidegate.Limit
	held  []held
}

type held struct{ name, until int64 }

func (o *leaseOracle) used(now int64) (n int64) {
	for _, h := range o.held {
		if h.until > now {
			n++
		}
	}
	return n
}

func (o *leaseOracle) lease() int64 { return int64(o.limit.Period/time.Microsecond) * 1024 }

func (o *leaseOracle) one(now, at, unit, _ int64, charge bool) (bool, int64) {
	if unit > o.limit.Events-o.used(now) {
		return false, 0
	}
	for i := int64(0); charge && i < unit; i++ {
		o.held = append(o.held, held{at, now + o.lease()})
	}
	return true, 0
}

func (o *leaseOracle) refused(int64, int64, int64)  {}
func (o *leaseOracle) remaining(now, _ int64) int64 { return max(0, o.limit.Events-o.used(now)) }

func (o *leaseOracle) giveBack(now, at, n int64) {
	o.held = slices.DeleteFunc(o.held, func(h held) bool {
		gone := h.name == at && h.until > now && n > 0
		if gone {
			n--
		}
		return gone
	})
}

func (o *leaseOracle) renew(now, at int64) (found bool) {
	for i, h := range o.held {
		if h.name == at && h.until > now {
			o.held[i].until, found = now+o.lease(), true
		}
	}
	return found
}

func (o *leaseOracle) force(int64, int64)       {}
func (o *leaseOracle) clean(now int64) bool     { return o.used(now) == 0 }
func (o *leaseOracle) change(l *tidegate.Limit) { o.limit = l }
func (o *leaseOracle) clone() oracle            { return &leaseOracle{o.limit, slices.Clone(o.held)} }
