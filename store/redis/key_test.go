package redis

import (
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

func nameOf(rule, scope, value string) string {
	l := tidegate.MustLimit(tidegate.Spec{Name: rule, Scope: scope, Events: 1, Period: time.Minute, Algorithm: tidegate.TokenBucket})
	return newCompiledLimit("tg", l).name(value)
}

func TestKeyNames(t *testing.T) {
	f := func(rule, scope, value, want string) {
		t.Helper()
		if got := nameOf(rule, scope, value); got != want {
			t.Errorf("rule %q, scope %q, value %q: %s, want %s", rule, scope, value, got, want)
		}
	}
	f("api", "user", "42", "tg:api:{user=42}")
	f("api", "user", "ann@example.com", "tg:api:{user=ann@example.com}")
	f("api", "everyone", "", "tg:api:{everyone=}")
	f("api", "", "42", "tg:api:{42}")
	f("api", "", "", "tg:api:{=}")
	f("", "user", "42", "tg::{user=42}")
	f("log in", "ip", "::1", "tg:log%20in:{ip=%3A%3A1}")
	f("a:{b}", "x=y", "{z}%", "tg:a%3A%7Bb%7D:{x%3Dy=%7Bz%7D%25}")
	f("api", "user", "é", "tg:api:{user=%C3%A9}")
	f("api", "user,route", tidegate.Key("42", "/orders"), "tg:api:{user=42,route=%2Forders}")
	f("api", "user,route", "42", "tg:api:{user%2Croute=42}")
	f("api", "user,route", tidegate.Key("42", "a", "b"), "tg:api:{user%2Croute=2%3A421%3Aa1%3Ab}")
	f("api", "user", strings.Repeat("x", 65), "tg:api:{user=#lTfF_fEgSC99WNJentWD9SwCtOME6oFNsWM61WWu1-k}")

	l := tidegate.MustLimit(tidegate.Spec{Name: "login", Scope: "ip", Events: 5, Period: 15 * time.Minute, Algorithm: tidegate.SlidingLog})
	if got, want := newCompiledLimit("tg", l).name("10.0.0.1"), "tg:login:{ip=10.0.0.1}:log:15m0s"; got != want {
		t.Errorf("a log is kept under %s, want %s", got, want)
	}
	if got, want := newCompiledLimit("tg", tidegate.Slots(2, 30*time.Second)).name("ann"), "tg::{ann}:slots:30s"; got != want {
		t.Errorf("slots are kept under %s, want %s", got, want)
	}
}

func TestKeyIsTakenApart(t *testing.T) {
	f := func(name string, want Key) {
		t.Helper()
		want.Name = name
		if got, ok := parseKey("tg", name); !ok || got != want {
			t.Errorf("%s: %+v, %t; want %+v", name, got, ok, want)
		}
	}
	f("tg:api:{user=42}", Key{Rule: "api", Subject: "user=42"})
	f("tg:log%20in:{ip=%3A%3A1}:log:15m0s", Key{Rule: "log in", Subject: "ip=%3A%3A1", Kind: "log", Period: "15m0s"})
	f("tg::{=}:slots:30s", Key{Subject: "=", Kind: "slots", Period: "30s"})
	for _, name := range []string{"", "tg", "tg:api", "tgx:api:{a}", "tg:reservation:X{user=42}", "tg:%zz:{a}", "tg:%4:{a}", "tg:api:{a", "tg:api:{a}b", "tg:api:{a}:log"} {
		if k, ok := parseKey("tg", name); ok {
			t.Errorf("%s is taken for a counter: %+v", name, k)
		}
	}
}

// FuzzKeyNames: different subjects never have the same key, whatever they are called,
// and what Redis Cluster reads in braces is the same for all rules of a subject.
func FuzzKeyNames(f *testing.F) {
	f.Add("api", "user", "42", "api", "user", "43")
	f.Add("a", "b=c", "d", "a", "b", "c=d")
	f.Add("a", "", "b=c", "a", "b", "c")
	f.Add("a:{b", "", "c}", "a", "", "{b:c}")
	f.Add("a", "u,v", "1:x1:y", "a", "u,v", "1:x2:yz")
	f.Add("a", "u,v", "1:x1:y", "a", "u", "x,v=y")
	f.Add("a", "u,v", "", "a", "u,v", "0:0:")
	f.Add("", "", "", "", "", "=")
	f.Add("a", "u", strings.Repeat("x", 65), "a", "u", "#lTfF_fEgSC99WNJentWD9SwCtOME6oFNsWM61WWu1-k")
	f.Fuzz(func(t *testing.T, rule, scope, value, rule2, scope2, value2 string) {
		name, name2 := nameOf(rule, scope, value), nameOf(rule2, scope2, value2)
		if same := rule == rule2 && scope == scope2 && value == value2; (name == name2) != same {
			t.Errorf("%q %q %q is %s, %q %q %q is %s", rule, scope, value, name, rule2, scope2, value2, name2)
		}
		if other := nameOf(rule2, scope, value); tagOf(name) != tagOf(other) || tagOf(name) == "" {
			t.Errorf("%s and %s are not of one tag", name, other)
		}
		k, ok := parseKey("tg", name)
		if !ok || k.Subject != tagOf(name) || len(rule) <= maxPart && k.Rule != rule {
			t.Errorf("%s is taken apart as %+v, %t; want rule %q", name, k, ok, rule)
		}
	})
}

// The states of one key are told apart by all that an identity has besides the names.
func TestStateIDs(t *testing.T) {
	seen := map[string]string{}
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Period: time.Minute},
		{Algorithm: tidegate.TokenBucket, Period: time.Minute + time.Microsecond},
		{Algorithm: tidegate.TokenBucket, Period: time.Hour},
		{Algorithm: tidegate.LeakyBucket, Period: time.Minute},
		{Algorithm: tidegate.FixedWindow, Period: time.Minute},
		{Algorithm: tidegate.SlidingWindow, Period: time.Minute},
		{Algorithm: tidegate.SubWindows, Period: time.Minute},
		{Algorithm: tidegate.SubWindows, Period: time.Minute, Parts: 6},
		{Algorithm: tidegate.SubWindows, Period: tidegate.MaxPeriod, Parts: tidegate.MaxParts},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Month},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Month, Anchor: 31},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Year, Anchor: 31},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Month, Zone: "Asia/Seoul"},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Month, Zone: "Asia/Tokyo"},
	} {
		spec.Events = 100
		l := tidegate.MustLimit(spec)
		id := stateID(l)
		if len(id) != 9 {
			t.Errorf("%s: an id of %d bytes, want 9", l, len(id))
		}
		if other := seen[id]; other != "" {
			t.Errorf("%s and %s have the same id", l.Identity(), other)
		}
		seen[id] = l.Identity()
		spec.Events, spec.Name, spec.Scope = 200, "other", "scope"
		if stateID(tidegate.MustLimit(spec)) != id {
			t.Errorf("%s: the id changes with the number or the names", l)
		}
	}
}
