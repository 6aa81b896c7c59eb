package rules

import (
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// hit is a rule or an exemption that a request may fall under, and what became
// of it.
type hit struct {
	ref
	route  int32 // in state.routes; -1 means it has no pattern
	status hitStatus
	try    bool // it applies and does not decide
	scope  int32
	key    string
	// why: the condition that failed, the part that is missing, or the entry of
	// the rule or exemption that stands above.
	failed  *condition
	missing *part
	by      int32
}

// hitStatus is whether a rule applies, and if not, why.
type hitStatus uint8

const (
	open     hitStatus = iota // not looked at yet
	looking                   // being looked at: seen only in a ring of instead_of
	applies                   // it holds the request to its limits
	refuses                   // it applies, and refuses who does not say who they are
	notWhen                   // a condition of when does not hold
	unless                    // what unless says holds
	exempted                  // an exemption takes the request out
	replaced                  // another rule applies in its stead
	skipped                   // the identity it counts by is missing
)

// Match appends what r is held to. It implements [tidegate.Matcher].
//
// A path that servers may read in several ways is held to what the rules say of each
// of them: what takes a rule away in one reading does not in another.
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

// resolveAll finds the class of the request and gives every other hit its status. It returns where
// the hits of rules begin.
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
		// Only the first class that holds, and the first exemption, are of interest.
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

// resolve finds whether a rule applies. A rule that another replaces asks about
// that one first, so the order in the file does not matter.
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

// stands reports whether the rule at entry applies and decides, or would if it were
// not replaced itself: so that what replaces an exception replaces the rule as well.
// One that is only tried takes nothing away from those in force.
func (st *state) stands(entry, exempt int32) bool {
	i, ok := slices.BinarySearchFunc(st.hits, entry, func(h hit, entry int32) int { return int(h.entry - entry) })
	if !ok {
		return false
	}
	h := &st.hits[i]
	st.resolve(h, exempt)
	return (h.status == applies || h.status == refuses || h.status == replaced) && !h.try
}

// ipKey returns the key of a caller who is known by address only.
func (st *state) ipKey() string {
	if v, ok := st.find(st.set.ids.ip, nil); ok {
		return v.text
	}
	return noAddress
}

// route is the pattern by which the rule was found; a rule without one is found
// as if by "/".
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
