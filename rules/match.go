package rules

import (
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// hit is a class, an exemption or a rule whose pattern matches a request, and its status.
type hit struct {
	ref
	route  int32 // index in state.routes; -1 means that it has no pattern
	status hitStatus
	try    bool // it applies, but only tries
	scope  int32
	key    string
	// These say why: the condition that failed, the part that is missing, or the entry of the
	// exemption or the rule that takes precedence.
	failed  *condition
	missing *part
	by      int32
}

// hitStatus is whether a rule applies, and if not, why.
type hitStatus uint8

const (
	open     hitStatus = iota // not looked at yet
	looking                   // being evaluated: seen only in a cycle of instead_of
	applies                   // the request is held to its limits
	refuses                   // it applies, and refuses because an identity is missing
	notWhen                   // a condition of when does not hold
	unless                    // its unless holds
	exempted                  // an exemption exempts the request
	replaced                  // another rule applies instead
	skipped                   // the identity it counts by is missing
)

// Match appends the checks that r is held to. It implements [tidegate.Matcher].
//
// If servers may read a path in several ways, the request is held to the rules in each of them: a
// reading in which a rule does not apply does not cancel it in another.
func (s *Set) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return s.state(r).match(dst)
}

func (st *state) match(dst []tidegate.Check) []tidegate.Check {
	before := len(dst)
	if st.measures != nil {
		dst = st.matchMeasured(dst)
	} else {
		dst = st.matchRules(dst)
	}
	if len(st.shedBy) > 0 {
		st.countShed(dst[before:])
	}
	st.done()
	return dst
}

func (st *state) matchRules(dst []tidegate.Check) []tidegate.Check {
	if len(st.readings) > 1 {
		dst = st.matchEach(dst)
	} else {
		st.collect()
		first := st.resolveAll()
		dst = st.appendShed(dst)
		for i := first; i < len(st.hits); i++ {
			dst = st.append(dst, &st.hits[i])
		}
	}
	return dst
}

// resolveAll finds the class of the request and gives every other hit its status. It returns the
// index of the first hit of a rule.
func (st *state) resolveAll() int {
	first := 0
	exempt := int32(-1)
	st.class = -1
	for ; first < len(st.hits); first++ {
		h := &st.hits[first]
		e := &st.set.entries[h.entry]
		if e.rule != nil {
			break
		}
		// Only the first class that holds and the first exemption matter.
		switch {
		case e.exempt == nil:
			if st.class < 0 && e.conds.holds(st, h) {
				st.class = h.entry
			}
		case exempt < 0 && e.conds.holds(st, h):
			exempt = h.entry
			h.status = applies
		}
	}
	st.exempt = exempt
	for i := first; i < len(st.hits); i++ {
		st.resolve(&st.hits[i], exempt)
	}
	return first
}

// resolve finds whether a rule applies. It resolves the rules that replace it first, so their order
// in the file does not matter.
func (st *state) resolve(h *hit, exempt int32) {
	if h.status != open {
		return
	}
	h.status = looking
	h.status = st.statusOf(h, exempt)
}

func (st *state) statusOf(h *hit, exempt int32) hitStatus {
	e := &st.set.entries[h.entry]
	r := e.rule
	if h.failed = e.conds.when.failing(st, h); h.failed != nil {
		return notWhen
	}
	if len(e.conds.unless) > 0 && e.conds.unless.hold(st, h) {
		return unless
	}
	if exempt >= 0 && !r.deny {
		h.by = exempt
		return exempted
	}
	stands := applies
	key, scope, missing := r.subject.find(st, h)
	if missing != nil {
		if h.missing = missing; missing.missing == rulefile.MissingSkip {
			return skipped
		}
		key, stands = st.ipKey(), refuses
	}
	h.key, h.scope = key, int32(scope)
	h.try = r.mode == rulefile.Shadow || !r.enforcedFor(key)
	for _, other := range r.replacers {
		if st.stands(other, exempt) {
			h.by = other
			return replaced
		}
	}
	return stands
}

// stands reports whether the rule at entry applies and decides, or would if it were not replaced
// itself: a rule that replaces an exception also replaces what the exception replaces. A rule that
// only tries replaces nothing.
func (st *state) stands(entry, exempt int32) bool {
	i, ok := slices.BinarySearchFunc(st.hits, entry, func(h hit, entry int32) int { return int(h.entry - entry) })
	if !ok {
		return false
	}
	h := &st.hits[i]
	st.resolve(h, exempt)
	return (h.status == applies || h.status == refuses || h.status == replaced) && !h.try
}

// ipKey returns the key of a caller of whom only the address is known.
func (st *state) ipKey() string {
	if v, ok := st.find(st.set.ids.ip, nil); ok {
		return v.text
	}
	return noAddress
}

// route returns the pattern that matched; "/" for a rule without patterns.
func (st *state) route(h *hit) string {
	if h == nil || h.route < 0 {
		return "/"
	}
	return st.set.entries[h.entry].patterns[h.pattern]
}

func (st *state) wildcard(h *hit, name string) string {
	if h == nil || h.route < 0 {
		return ""
	}
	text, _ := st.routes[h.route].Value(name)
	return text
}
