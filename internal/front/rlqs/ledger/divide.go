package ledger

import (
	"cmp"
	"math"
	"slices"
)

// reserve is the part of the rate that is not handed out, so that the fund can pay for changes.
const reserve = 1.0 / 48

// aim is what a node should get.
type aim struct {
	*share
	want   float64 // what it can use, in tokens per interval
	target float64
	lacks  bool // it has less than near of the smaller of want and target

	keep    bool // its assignment should be extended
	prepaid bool // and that is paid
}

// near is the part of a target that is close enough: every change costs a full bucket.
const near = 15.0 / 16

// aims divides the rate among the nodes by their demand, max-min fair. What no node wants is handed
// out as well, unless other instances may want it.
func (l *Ledger) aims() []*aim {
	all := make([]*aim, 0, len(l.shares))
	for _, s := range l.shares {
		if !s.closed {
			all = append(all, &aim{share: s})
		}
	}
	if len(all) == 0 {
		return nil
	}
	whole := float64(l.fill) * (1 - reserve)
	if l.ahead != nil {
		whole *= l.scale.part
	}
	equal, least := whole/float64(len(all)), l.least()
	wanted := 0.0
	for _, a := range all {
		a.want = equal // unknown
		if a.demand.known {
			a.want = a.demand.perSecond*l.interval.Seconds()*17/16 + equal/64 + 1
		}
		a.want = max(a.want, least)
		wanted += a.want
	}
	pour(all, whole)
	if wanted < whole && l.ahead == nil {
		for _, a := range all {
			a.target += (whole - wanted) * a.want / wanted
		}
	}
	for _, a := range all {
		a.target = max(a.target, least)
		a.lacks = float64(a.now.Fill) < min(a.want, a.target)*near
	}
	return all
}

// least returns the least rate that is assigned, in tokens per interval. If it is paid ahead, it is the
// rate that the smallest bucket costs, so that nothing is paid and not assigned.
func (l *Ledger) least() float64 {
	if l.ahead == nil {
		return 1
	}
	return math.Ceil(2 / l.ahead.reach.Seconds() * l.interval.Seconds())
}

// pour sets max-min fair targets: no node gets more than it wants, and none gets less than a node
// that wants no more.
func pour(all []*aim, whole float64) {
	byWant := slices.Clone(all)
	slices.SortFunc(byWant, func(a, b *aim) int { return cmp.Compare(a.want, b.want) })
	for i, a := range byWant {
		a.target = min(a.want, whole/float64(len(byWant)-i))
		whole -= a.target
	}
}

// fits reports whether a node keeps what it has. lack means that some node has too little.
func (l *Ledger) fits(a *aim, lack bool) bool {
	has := float64(a.now.Fill)
	switch {
	case a.lacks:
		return false
	case lack:
		return has*near <= a.target
	case l.ahead != nil: // other instances may use the rest
		return has*near*near <= a.target
	}
	return true
}
