package rulefile

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// UnderOrder is Under for a request that o is about. It also returns the errors in that combination.
// A limit of a period that the rule also has uses the same counter, so that nobody gets a fresh
// allowance and used events still count. o must be from ReadOrder for r, without errors.
func (r *Rule) UnderOrder(b *Branch, o *Order) (Terms, diag.List) {
	t := r.Under(b)
	if o.Unlimited {
		t.Limits, t.Quota, t.Concurrency = &Limits{Unlimited: true}, nil, nil
		return t, nil
	}
	if o.Limits != nil {
		t.Limits = &Limits{}
		own := r.Under(b).Limits
		for _, l := range o.Limits {
			t.Limits.All = append(t.Limits.All, r.ordered(l, own, t))
		}
	}
	if o.Amount > 0 {
		of := func(t Terms) *Quota { return t.quotaPer(o.Calendar) }
		q := *firstOf(r, of(t), of)
		q.Spec.Events = o.Amount
		t.Quota = &q
	}
	if o.Slots > 0 {
		c := *firstOf(r, t.Concurrency, func(t Terms) *Concurrency { return t.Concurrency })
		c.Spec.Events = o.Slots
		t.Concurrency = &c
	}
	d := newDecoder("limits", Options{})
	d.checkTerms(t)
	var wrong diag.List
	for _, p := range d.problems.List() {
		if p.Severity == diag.Error {
			wrong.Add(p)
		}
	}
	return t, wrong
}

// ordered completes l, a limit of an order that names no algorithm, like the limit that it replaces:
// that of the same period in own, or else anywhere in the rule. t are the terms beside it.
func (r *Rule) ordered(l Limit, own *Limits, t Terms) Limit {
	l.setLine(t.Queue)
	if l.Spec.Algorithm != tidegate.Auto {
		return l
	}
	period := l.Spec.Period
	like := firstOf(r, own.ofPeriod(period), func(t Terms) *Limit { return t.Limits.ofPeriod(period) })
	if like == nil {
		l.Auto, l.Spec.Algorithm = true, r.auto(l.most() > tidegate.AutoLogEvents, !l.canBeBucket())
		return l
	}
	events := l.Spec.Events
	l.Auto, l.Spec = like.Auto, like.Spec
	l.Spec.Events = events
	if l.Spec.Algorithm == tidegate.TokenBucket && l.Spec.Burst > 0 {
		l.Spec.Burst = proportional(l.Spec.Burst, events, like.Spec.Events)
	}
	top := events
	if t.Over != nil && (t.Over.Soft > 0 || t.Over.Elastic != nil) {
		top = t.Over.Ceiling(l.Spec).Events
	}
	switch {
	case l.Spec.Algorithm != tidegate.SlidingLog:
	case like.Auto && events > tidegate.AutoLogEvents: // the same counter, with less memory
		l.Spec.Algorithm, l.Spec.CountRejected = tidegate.SubWindows, false
	case top > tidegate.MaxLogEvents: // the same counter, read just as strictly
		l.Spec.Algorithm, l.Spec.Ceiling, l.Spec.CountRejected = tidegate.SubWindows, true, false
	}
	l.setLine(t.Queue)
	return l
}

// proportional returns burst·events/of, rounded up: the burst for events if that for of is burst.
func proportional(burst, events, of int64) int64 {
	hi, lo := bits.Mul64(uint64(burst), uint64(events))
	if of <= 0 || hi >= uint64(of) {
		return tidegate.MaxCount
	}
	n, rest := bits.Div64(hi, lo, uint64(of))
	if rest > 0 {
		n++
	}
	return int64(min(n, math.MaxInt64))
}

// firstOf returns found or, if that is nil, what of returns for the terms of the rule itself or, if
// that is nil too, for those of the first branch for which it is not nil.
func firstOf[T any](r *Rule, found *T, of func(Terms) *T) *T {
	if found == nil {
		found = of(r.Terms)
	}
	for i := 0; found == nil && i < len(r.For); i++ {
		found = of(r.For[i].Terms)
	}
	return found
}

// quotaPer returns the quota if it has that calendar, else nil.
func (t *Terms) quotaPer(c tidegate.Calendar) *Quota {
	if t.Quota == nil || t.Quota.Spec.Calendar != c {
		return nil
	}
	return t.Quota
}

// KindUnder returns a text that is equal for branches under which the same orders are possible:
// their terms without the numbers of the limits.
func (r *Rule) KindUnder(b *Branch) string {
	t := r.Under(b)
	var text strings.Builder
	if t.Limits != nil {
		for i := range t.Limits.All {
			s := t.Limits.All[i].Spec
			if s.Burst == 0 {
				s.Events = 0
			}
			fmt.Fprintf(&text, "%+v\n", s)
		}
	}
	if t.Quota != nil {
		s := t.Quota.Spec
		s.Events = 0
		fmt.Fprintf(&text, "%+v\n", s)
	}
	if t.Concurrency != nil {
		fmt.Fprintf(&text, "%s\n", t.Concurrency.Spec.Period)
	}
	if o := t.Over; o != nil {
		fmt.Fprintf(&text, "over %d %s", o.Soft, o.MaxTime)
		if o.Elastic != nil {
			fmt.Fprintf(&text, " %g", o.Elastic.UpTo)
		}
	}
	if c := t.Cost; c != nil {
		fmt.Fprintf(&text, " cost %d %d %d", c.Fixed, c.Min, c.Else)
	}
	if q := t.Queue; q != nil {
		fmt.Fprintf(&text, " queue %d %s", q.Places, q.MaxWait)
	}
	return text.String()
}
