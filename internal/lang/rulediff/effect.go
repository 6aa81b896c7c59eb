package rulediff

import (
	"cmp"
	"math/bits"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// effect is whether the change of a field lets callers do less or more.
func effect(was, now field) string {
	switch {
	case was.amount > 0 && now.amount > 0:
		return sign(cmp.Compare(now.amount, was.amount))
	case now.amount > 0:
		return Lowered // there was none
	case was.amount > 0:
		return Raised
	case was.limits == nil && now.limits == nil:
		return ""
	}
	return limitsEffect(was.limits, now.limits)
}

func sign(n int) string {
	switch {
	case n < 0:
		return Lowered
	case n > 0:
		return Raised
	}
	return ""
}

// limitsEffect compares limits one by one: it is known where all that differ do in the same
// direction. No limits are as good as unlimited.
func limitsEffect(was, now *rulefile.Limits) string {
	before, after := all(was), all(now)
	if len(before) == 0 || len(after) == 0 {
		return sign(cmp.Compare(int64(len(before)), int64(len(after))))
	}
	less, more := false, false
	note := func(n int) { less, more = less || n < 0, more || n > 0 }
	for i := range max(len(before), len(after)) {
		switch {
		case i >= len(after): // one limit less
			note(1)
		case i >= len(before):
			note(-1)
		default:
			b, a := before[i], after[i]
			note(rate(a, b))
			note(cmp.Compare(capacity(a), capacity(b)))
			if a.From != nil && b.From != nil {
				note(cmp.Compare(a.From.Max, b.From.Max))
			} else if (a.From == nil) != (b.From == nil) {
				return ""
			}
		}
	}
	switch {
	case less && !more:
		return Lowered
	case more && !less:
		return Raised
	}
	return ""
}

func all(l *rulefile.Limits) []rulefile.Limit {
	if l == nil || l.Unlimited {
		return nil
	}
	return l.All
}

// rate compares events per time, exactly.
func rate(a, b rulefile.Limit) int {
	ah, al := bits.Mul64(uint64(a.Spec.Events), uint64(b.Spec.Period))
	bh, bl := bits.Mul64(uint64(b.Spec.Events), uint64(a.Spec.Period))
	return cmp.Or(cmp.Compare(ah, bh), cmp.Compare(al, bl))
}

// capacity is what may pass at once.
func capacity(l rulefile.Limit) int64 {
	made, err := tidegate.NewLimit(l.Spec)
	if err != nil {
		return l.Spec.Events
	}
	return made.Capacity()
}
