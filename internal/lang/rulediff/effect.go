package rulediff

import (
	"cmp"
	"math/bits"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// effect returns the word for whether the change of a field lets callers do less or more. No limits are
// as good as unlimited.
func effect(was, now field) string {
	if was.limits != nil || now.limits != nil {
		before, after := all(was.limits), all(now.limits)
		return direction(within(after, before), within(before, after))
	}
	return direction(amountWithin(now.spec, was.spec), amountWithin(was.spec, now.spec))
}

// effects is effect where a field is one of several on either side: it is known if it is the same
// with all of them.
func effects(was, now []field) string {
	told := ""
	for i, a := range was {
		for j, b := range now {
			e := effect(a, b)
			if i+j > 0 && e != told {
				return ""
			}
			told = e
		}
	}
	return told
}

func direction(less, more bool) string {
	switch {
	case less == more: // it is the same, or cannot be said
		return ""
	case less:
		return Lowered
	}
	return Raised
}

// within reports whether callers that keep to the limits a keep to b as well: for each of b there
// is one of a that is neither faster nor holds more.
func within(a, b []rulefile.Limit) bool {
	for i := range b {
		kept := false
		for j := range a {
			kept = kept || limitWithin(&a[j], &b[i])
		}
		if !kept {
			return false
		}
	}
	return true
}

func limitWithin(a, b *rulefile.Limit) bool {
	if (a.From == nil) != (b.From == nil) {
		return false
	}
	if a.From != nil && (a.From.Source.Text != b.From.Source.Text || a.From.Max > b.From.Max) {
		return false
	}
	return rate(a, b) <= 0 && capacity(a) <= capacity(b)
}

func all(l *rulefile.Limits) []rulefile.Limit {
	if l == nil || l.Unlimited {
		return nil
	}
	return l.All
}

// rate compares events per time, exactly.
func rate(a, b *rulefile.Limit) int {
	ah, al := bits.Mul64(uint64(a.Spec.Events), uint64(b.Spec.Period))
	bh, bl := bits.Mul64(uint64(b.Spec.Events), uint64(a.Spec.Period))
	return cmp.Or(cmp.Compare(ah, bh), cmp.Compare(al, bl))
}

// capacity returns what may pass at once.
func capacity(l *rulefile.Limit) int64 {
	made, err := tidegate.NewLimit(l.Spec)
	if err != nil {
		return l.Spec.Events
	}
	return made.Capacity()
}

// days are how long the periods of a quota are on average.
var days = [...]float64{tidegate.NoCalendar: 1, tidegate.Day: 1, tidegate.Week: 7, tidegate.Month: 365.2425 / 12, tidegate.Year: 365.2425}

// amountWithin is within for a quota or for slots; nil has no bound.
func amountWithin(a, b *tidegate.Spec) bool {
	if a == nil || b == nil {
		return b == nil
	}
	return a.Events <= b.Events && float64(a.Events)*days[b.Calendar] <= float64(b.Events)*days[a.Calendar]
}
