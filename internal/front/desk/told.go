package desk

import "tidegate.dev/tidegate"

// Told returns what callers are told about the limit that decided: its rule and, if ok, its number
// and what remains. For a ceiling or a block these are the numbers of the nominal limit. ok is false
// for an access rule, for a block without a nominal limit, and if the store could not answer.
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

// shown returns the limit whose numbers callers get for l; nil if there is none.
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

// left returns what remains of shown if remaining is what remains of l: the room above the nominal
// limit is not disclosed.
func left(l, shown *tidegate.Limit, remaining int64) int64 {
	if blocks(l) {
		return 0
	}
	return max(0, remaining-max(0, l.Capacity()-shown.Capacity()))
}

func blocks(l *tidegate.Limit) bool { return l.Terms != nil && l.Terms.Role == tidegate.Blocks }
