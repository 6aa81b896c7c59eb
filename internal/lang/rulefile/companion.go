package rulefile

import (
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// companion is a field, word, that has no effect without one of the fields in of.
type companion struct {
	word string
	of   []string
	hint string
}

var companions = []companion{
	{"over", []string{"limits", "quota"}, "write `limits: 100/minute`, or remove `over`"},
	{"cost", []string{"limits", "quota"}, "write `limits: 100/minute`, or take `cost` out: a slot is one slot"},
	{"count", []string{"limits", "quota"}, "write `limits: 5/15m`, or remove `count`"},
	{"block", []string{"limits"}, "write `limits: 5/15m`, or remove `block`"},
	{"queue", []string{"limits", "concurrency"}, "write `limits: 50/second`, or remove `queue`"},
	{"candidate", []string{"limits"}, "write the limit that is in force as `limits:`, or use `mode: shadow` for a rule that only looks"},
}

// companions reports the fields of o that have no effect, because none of the maps in all has a field
// that they need.
func (d *decoder) companions(o object, all []object) {
	for _, c := range companions {
		if _, ok := o.field(c.word); !ok {
			continue
		}
		found := slices.ContainsFunc(c.of, func(w string) bool {
			return slices.ContainsFunc(all, func(o object) bool { return o.has(w) })
		})
		if !found {
			d.fail(o.key(c.word), diag.Quote(c.word)+" means nothing without "+diag.Choice(c.of), c.hint)
		}
	}
}
