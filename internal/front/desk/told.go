package desk

import "tidegate.dev/tidegate"

// Told is what callers are told of the limit that decided: its rule and, if ok, its number and
// what remains of it. Those of a ceiling or a block are the numbers of the limit below it; an
// access rule has none, nor has a block without such a limit.
func Told(d *tidegate.Decision) (rule string, limit, remaining int64, ok bool) {
	l := d.Limit
	if l == nil {
		return "", 0, 0, false
	}
	rule = l.Name
	if l.Terms != nil && l.Terms.Rule != "" {
		rule = l.Terms.Rule
	}
	shown := shown(l)
	if shown == nil || d.Err != nil {
		return rule, 0, 0, false
	}
	return rule, shown.Capacity(), left(l, shown, d.Remaining), true
}

// shown is the limit whose numbers callers are told for l; nil if there is none.
func shown(l *tidegate.Limit) *tidegate.Limit {
	switch {
	case l.Algorithm == tidegate.Deny:
		return nil
	case l.Terms != nil && l.Terms.Answer.Nominal != nil:
		return l.Terms.Answer.Nominal
	case blocks(l):
		return nil
	}
	return l
}

// left is what remains of shown, where l has remaining: what a ceiling leaves above its limit is
// not told.
func left(l, shown *tidegate.Limit, remaining int64) int64 {
	if blocks(l) {
		return 0
	}
	return max(0, remaining-max(0, l.Capacity()-shown.Capacity()))
}

func blocks(l *tidegate.Limit) bool { return l.Terms != nil && l.Terms.Role == tidegate.Blocks }
