package storetest

import (
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// testIdentityShared: limits that differ in their numbers alone are counted
// together, as tiers of one rule are.
func testIdentityShared(s *subject) {
	s.each(func(s *subject, k kind) {
		free, paid := k.slow("plan", 3), k.slow("plan", 10)
		s.admitTimes(2, check(paid, "ann", 1))
		s.wantLeft(1, check(free, "ann", 1))
		if d := s.admit(check(free, "ann", 1)); d.Limit != free {
			s.Errorf("Take = %s, want the limit asked for, not the one counted under before", show(d))
		}
		s.refuse(check(free, "ann", 1))
		s.wantLeft(7, check(paid, "ann", 1))
	})
}

// testIdentityApart: what differs in name, algorithm, period or key never
// shares a counter, even where the parts joined read the same.
func testIdentityApart(s *subject) {
	algorithm := tidegate.SlidingLog
	if !s.asked.has(algorithm.String()) {
		algorithm = tidegate.TokenBucket
	}
	log := func(name string, period time.Duration) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: name, Events: 1, Period: period, Algorithm: algorithm})
	}
	window := tidegate.MustLimit(tidegate.Spec{Name: "a", Events: 1, Period: ages, Algorithm: tidegate.FixedWindow})
	for _, c := range []tidegate.Check{
		check(log("a", time.Hour), "b_X", 1),
		check(log("a_b", time.Hour), "X", 1),
		check(log("a", time.Hour), "X", 1),
		check(log("a", 2*time.Hour), "X", 1),
		check(log("", time.Hour), "a/X", 1),
		check(log("a/X", time.Hour), "", 1),
		check(log("a:", time.Hour), "X", 1),
		check(log("a", time.Hour), ":X", 1),
		check(log("a\x00", time.Hour), "X", 1),
		check(log("a", time.Hour), "\x00X", 1),
		check(log("a", time.Hour), tidegate.Key("a", "bc"), 1),
		check(log("a", time.Hour), tidegate.Key("ab", "c"), 1),
		check(log("a", time.Hour), tidegate.Key("abc"), 1),
		check(window, "X", 1),
	} {
		s.admit(c)
		s.refuse(c)
	}
}

// testOddKeys: a key is bytes. Any length and any value will do.
func testOddKeys(s *subject) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "odd", Events: 1, Period: 24 * time.Hour, Algorithm: tidegate.TokenBucket})
	keys := []string{"", " ", "\x00", "\x00\x00", "\xff\xfe", "é", "e\u0301", "{a}", "{a}b", "a\nb", "*", "%s"}
	for _, n := range []int{7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 10_000} {
		long := strings.Repeat("k", n)
		keys = append(keys, long, long[:n-1]+"j", "j"+long[1:])
	}
	for _, key := range keys {
		s.admit(check(l, key, 1))
	}
	for _, key := range keys {
		s.refuse(check(l, key, 1))
	}
}
