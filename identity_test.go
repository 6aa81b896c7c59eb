package tidegate_test

import (
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// identified is what makes the counters of two limits different.
type identified struct {
	name      string
	scope     string
	algorithm tidegate.Algorithm
	period    time.Duration
	parts     int
	calendar  tidegate.Calendar
	zone      string
	anchor    int
}

func identify(l *tidegate.Limit) identified {
	return identified{l.Name, l.Scope, l.Algorithm, l.Period, l.Parts, l.Calendar, l.Zone, l.Anchor}
}

// A limit's numbers are not part of who is counted where: a change of tier, or
// a raised limit, keeps what was used.
func TestIdentityLeavesTheNumbersOut(t *testing.T) {
	f := func(a, b tidegate.Spec, same bool) {
		t.Helper()
		one, two := tidegate.MustLimit(a), tidegate.MustLimit(b)
		if (one.Identity() == two.Identity()) != same {
			t.Errorf("%s is %q, %s is %q; want the same: %v", one, one.Identity(), two, two.Identity(), same)
		}
	}
	type S = tidegate.Spec
	const m, token = time.Minute, tidegate.TokenBucket
	f(S{Events: 5, Period: m}, S{Events: 6, Period: m}, true)
	f(S{Events: 5, Period: m, Algorithm: token}, S{Events: 6, Period: m, Burst: 9, Algorithm: token}, true)
	f(S{Events: 5, Period: m, Algorithm: token, RawTime: true}, S{Events: 6, Period: 7 * m, Algorithm: token, RawTime: true}, true)
	f(S{Events: 5, Period: m, Algorithm: token, RawTime: true}, S{Events: 5, Period: m, Algorithm: token}, false)
	f(S{Events: 5, Period: m, Algorithm: token, RawTime: true}, S{Events: 5, Period: m, Algorithm: token, RawTime: true, Name: "a"}, false)
	f(S{Events: 5, Period: m}, S{Events: 5, Period: m, OnFull: tidegate.RefuseNew}, true)
	f(S{Events: 100, Period: m}, S{Events: 100, Period: m, Algorithm: tidegate.SubWindows, Ceiling: true}, true)
	f(S{Events: 5, Period: m}, S{Events: 5, Period: m, CountRejected: true}, true)
	f(S{Events: 5, Period: m}, S{Events: 5, Period: m, Terms: &tidegate.Terms{Rule: "a"}}, true)
	for a := token; a < tidegate.Deny; a++ {
		spec := S{Events: 5, Period: m, Algorithm: a}
		if a == tidegate.Quota {
			spec.Period, spec.Calendar = 0, tidegate.Month
		}
		shared := func(c tidegate.Consistency) S {
			s := spec
			s.Terms = &tidegate.Terms{Handling: tidegate.Handling{Consistency: c}}
			return s
		}
		f(spec, shared(tidegate.Leased), true)
		f(spec, shared(tidegate.Split), !tidegate.Split.Suits(a)) // counted by each instance
		f(spec, shared(tidegate.Eventual), !tidegate.Eventual.Suits(a))
	}
	f(S{Events: 5, Period: m}, S{Events: 5, Period: m, Name: "a"}, false)
	f(S{Events: 5, Period: m, Name: "a"}, S{Events: 5, Period: m, Name: "a", Scope: "ip"}, false)
	f(S{Events: 5, Period: m, Name: "a", Scope: "user"}, S{Events: 5, Period: m, Name: "a", Scope: "ip"}, false)
	f(S{Events: 5, Period: m}, S{Events: 5, Period: m + time.Microsecond}, false)
	f(S{Events: 5, Period: m}, S{Events: 5, Period: m, Algorithm: token}, false)
	f(S{Events: 100, Period: m}, S{Events: 100, Period: m, Parts: 6}, true)
	f(S{Events: 60, Period: m}, S{Events: 100, Period: m}, true)
	month := S{Events: 5, Algorithm: tidegate.Quota, Calendar: tidegate.Month}
	other := month
	f(month, other, true)
	other.Anchor = 2
	f(month, other, false)
	other = month
	other.Zone = "Asia/Seoul"
	f(month, other, false)
	other = month
	other.Calendar = tidegate.Year
	f(month, other, false)
}

// FuzzIdentity: two limits have the same identity when, and only when, all that
// makes their counters different is the same.
func FuzzIdentity(f *testing.F) {
	f.Add("a", uint8(1), int64(60_000_000), 0, "", 0, "a", uint8(1), int64(60_000_000), 0, "", 0)
	f.Add("a/token_bucket", uint8(1), int64(1000), 0, "", 0, "a", uint8(1), int64(1000), 0, "", 0)
	f.Add("1:a", uint8(6), int64(60_000_000), 6, "", 0, "a", uint8(6), int64(60_000_000), 60, "", 0)
	f.Add("a", uint8(8), int64(3), 0, "UTC", 1, "a", uint8(8), int64(3), 0, "", 1)
	f.Add("a", uint8(8), int64(3), 0, "", 11, "a", uint8(8), int64(3), 0, "", 1)
	f.Add("ip|a", uint8(1), int64(1000), 0, "", 0, "2:ip@1:a", uint8(1), int64(1000), 0, "", 0)
	f.Add("i|pa", uint8(1), int64(1000), 0, "", 0, "ip|a", uint8(1), int64(1000), 0, "", 0)
	f.Fuzz(func(t *testing.T, nameA string, algA uint8, microsA int64, partsA int, zoneA string, anchorA int,
		nameB string, algB uint8, microsB int64, partsB int, zoneB string, anchorB int,
	) {
		a, okA := anyLimit(nameA, algA, microsA, partsA, zoneA, anchorA)
		b, okB := anyLimit(nameB, algB, microsB, partsB, zoneB, anchorB)
		if !okA || !okB {
			return
		}
		if (a.Identity() == b.Identity()) != (identify(a) == identify(b)) {
			t.Errorf("%+v has identity %q, %+v has %q", identify(a), a.Identity(), identify(b), b.Identity())
		}
	})
}

// anyLimit makes of what the fuzzer says a limit, where it can be one. Before a
// bar in the name is the scope.
func anyLimit(name string, alg uint8, micros int64, parts int, zone string, anchor int) (*tidegate.Limit, bool) {
	scope, named, scoped := strings.Cut(name, "|")
	if !scoped {
		scope, named = "", name
	}
	s := tidegate.Spec{Name: named, Scope: scope, Events: 9, Algorithm: tidegate.Algorithm(alg)}
	switch s.Algorithm {
	case tidegate.Quota:
		s.Calendar, s.Zone, s.Anchor = tidegate.Calendar(micros&3+1), zone, anchor
	case tidegate.SubWindows:
		s.Parts = parts
		fallthrough
	default:
		s.Period = time.Duration(micros) * time.Microsecond
	}
	l, err := tidegate.NewLimit(s)
	return l, err == nil
}

// A limit made of what a store writes down has the same counters, and tells nothing else of
// the rule.
func TestCounterSpec(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.Quota} {
		for _, c := range []tidegate.Consistency{tidegate.Strict, tidegate.Leased, tidegate.Split, tidegate.Eventual} {
			spec := tidegate.Spec{Name: "a", Scope: "ip", Algorithm: a, Events: 5, Period: time.Minute}
			if a == tidegate.Quota {
				spec.Period, spec.Calendar = 0, tidegate.Day
			}
			spec.Terms = &tidegate.Terms{Rule: "r", Role: tidegate.Marks, Handling: tidegate.Handling{Consistency: c, NoCoalesce: true}}
			l := tidegate.MustLimit(spec)
			again := tidegate.MustLimit(l.CounterSpec())
			if again.Identity() != l.Identity() || again.Terms != nil && (again.Terms.Rule != "" || again.Terms.Handling.NoCoalesce) {
				t.Errorf("%s, %s: %q became %q with %+v", a, c, l.Identity(), again.Identity(), again.Terms)
			}
		}
	}
}
