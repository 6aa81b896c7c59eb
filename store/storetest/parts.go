package storetest

import (
	"fmt"
	"slices"
	"strings"

	"tidegate.dev/tidegate"
)

// Selection is the parts of the suite that a store is held to, see [Only], or how much of
// them is tried, see [Brief].
type Selection struct {
	parts []string
	brief bool
}

// Only selects parts of the suite by name, for a store that does not do everything:
//
//	storetest.Run(t, open, storetest.Only("token_bucket", "returns"))
//
// At least one is an algorithm: token_bucket, leaky_bucket, fixed_window, sliding_log,
// sliding_window, sub_windows, quota, concurrency. The others are
//
//	vectors         several checks in one call, all charged or none
//	copies          several copies in one call, as many as fit
//	advisory        checks that never decide
//	floors          checks that leave something for others
//	waiting         token buckets that are charged ahead; a leaky bucket always is
//	returns         Adjust
//	changes         limits whose numbers change while they are used, as tiers do
//	count_rejected  logs that count what they refuse
//	raw_time        token buckets that keep a bare time
//	clock_steps     a clock that is set back
//	misuse          costs and limits that no caller should send
//	renewals, reservations, resets
//	                the abilities of tidegate.Renewer, Reserver and Resetter
//
// A test that comes to use a part that is not selected is skipped there, and says so. Parts
// that nobody selects are what the store must not be used for: Run logs them. What a store is
// always asked for is that of single checks: to count, to peek, to refuse with an exact
// RetryAfter, to tell keys and limits apart, and all that by many goroutines at once.
func Only(parts ...string) Selection { return Selection{parts: parts} }

// Brief keeps every test of the suite and tries fewer random histories in those that try
// many. It is for a store that passes the whole suite elsewhere and is tested once more in
// another setting: behind a layer, or on another kind of server. With TIDEGATE_LONG=1 in
// the environment it changes nothing.
func Brief() Selection { return Selection{brief: true} }

// isBrief reports whether fewer histories are enough.
func isBrief(all []Selection) bool {
	return !long() && slices.ContainsFunc(all, func(s Selection) bool { return s.brief })
}

// lessIf returns usual, or less if that is enough.
func lessIf[T any](brief bool, usual, less T) T {
	if brief {
		return less
	}
	return usual
}

// features are the parts that are not algorithms.
var features = []string{
	"vectors", "copies", "advisory", "floors", "waiting", "returns", "changes",
	"count_rejected", "raw_time", "clock_steps", "misuse", "renewals", "reservations", "resets",
}

// allParts returns the names that Only takes.
func allParts() (parts []string) {
	for _, k := range kinds {
		parts = append(parts, k.spec.Algorithm.String())
	}
	return append(slices.Compact(parts), features...)
}

// scope is what a store is held to; nil means everything.
type scope map[string]bool

func (a scope) has(part string) bool { return a == nil || a[part] }

func (a scope) hasAll(parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !a.has(p) })
}

// kinds returns the algorithms that the store is held to.
func (a scope) kinds() (some []kind) {
	for _, k := range kinds {
		if a.has(k.spec.Algorithm.String()) {
			some = append(some, k)
		}
	}
	return some
}

// resolve returns what all selections name, and what is left.
func resolve(all []Selection) (a scope, rest []string, err error) {
	all = slices.DeleteFunc(slices.Clone(all), func(s Selection) bool { return s.brief })
	if len(all) == 0 {
		return nil, nil, nil
	}
	a, known := scope{}, allParts()
	for _, s := range all {
		for _, part := range s.parts {
			if !slices.Contains(known, part) {
				return nil, nil, fmt.Errorf("storetest.Only: there is no part %q; there are %s", part, strings.Join(known, ", "))
			}
			a[part] = true
		}
	}
	if len(a.kinds()) == 0 {
		return nil, nil, fmt.Errorf("storetest.Only: no algorithm is selected; there are %s", strings.Join(known[:len(known)-len(features)], ", "))
	}
	for _, part := range known {
		if !a[part] {
			rest = append(rest, part)
		}
	}
	return a, rest, nil
}

// lacks returns an ability that is selected by name and that the store does not have.
func (a scope) lacks(store tidegate.Store) string {
	_, renews := store.(tidegate.Renewer)
	_, reserves := store.(tidegate.Reserver)
	_, resets := store.(tidegate.Resetter)
	switch {
	case a["renewals"] && !renews:
		return "renewals"
	case a["reservations"] && !reserves:
		return "reservations"
	case a["resets"] && !resets:
		return "resets"
	}
	return ""
}

// partsOf returns the parts that a call of Take uses.
func partsOf(checks []tidegate.Check, n int) (parts []string) {
	use := func(part string, used bool) {
		if used {
			parts = append(parts, part)
		}
	}
	use("vectors", len(checks) != 1)
	use("copies", n > 1)
	use("misuse", n < 1)
	for _, c := range checks {
		if c.Limit == nil || c.Limit.Algorithm == tidegate.Deny || c.Cost < 0 {
			parts = append(parts, "misuse")
			continue
		}
		parts = append(parts, c.Limit.Algorithm.String())
		use("advisory", c.Advisory)
		use("floors", c.Floor != 0)
		use("waiting", c.MaxWait != 0 && c.Limit.Algorithm == tidegate.TokenBucket)
		use("count_rejected", c.Limit.CountRejected)
		use("raw_time", c.Limit.RawTime)
	}
	return parts
}
