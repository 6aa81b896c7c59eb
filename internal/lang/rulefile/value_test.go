package rulefile

import (
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/lang/yamltree"
)

func TestValue(t *testing.T) {
	f := func(text string, kind TestKind, prefix string) {
		t.Helper()
		got, wrong := parseValue(Word{Text: text})
		if wrong != (mistake{}) || got.Kind != kind || got.Text != text || prefix != "" && got.Prefix.String() != prefix {
			t.Errorf("%q: %+v %v", text, got, wrong)
		}
	}
	f("acme", TestLiteral, "")
	f("a/b", TestLiteral, "")
	f("007", TestLiteral, "")
	f("*-bot", TestGlob, "")
	f("192.0.2.1", TestPrefix, "192.0.2.1/32")
	f("::ffff:192.0.2.1", TestPrefix, "192.0.2.1/32")
	f("2001:db8::/32", TestPrefix, "2001:db8::/32")
	f("0.0.0.0/0", TestPrefix, "0.0.0.0/0")

	bad := func(text, hint string) {
		t.Helper()
		if _, wrong := parseValue(Word{Text: text}); wrong.message == "" || !strings.Contains(wrong.hint, hint) {
			t.Errorf("%q: %v, want a hint with %q", text, wrong, hint)
		}
	}
	bad("192.0.2.0/33", "`192.0.2.0/24`")
	bad("192.0.2.0/", "`192.0.2.0/24`")
	bad("2001:db8::/129", "`2001:db8::/64`")
	bad("192.0.2.1/24", "`192.0.2.0/24` for the network, or `192.0.2.1`")
	bad("fe80::1%eth0", "`fe80::1`")
	bad("::ffff:192.0.2.0/120", "`192.0.2.0/24`")
	bad("**", "`present`")
	bad("^a*$", "`\"a*\"`")
}

// An address is a network for ip, and text for everything else.
func TestAddressIsText(t *testing.T) {
	src := "version: 1\nidentify: { app: client header X-App }\nrules:\n  - { name: a, per: ip, limits: 5/minute, when: { app: [10.1.2.3, 10.0.0.0/8], ip: 10.1.2.3 } }"
	f, problems := Parse("rules.yaml", []byte(src), Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	when := f.Rules[0].When
	want(t, "kinds", []TestKind{when[0].Any[0].Kind, when[0].Any[1].Kind, when[1].Any[0].Kind}, []TestKind{TestLiteral, TestPrefix, TestPrefix})
}

func TestSource(t *testing.T) {
	f := func(text string, kind SourceKind, arg string) {
		t.Helper()
		if s, wrong := parseSource(text, "me"); wrong != (mistake{}) || s.Kind != kind || s.Arg != arg {
			t.Errorf("%q: %+v %v", text, s, wrong)
		}
	}
	f("ip", SourceIP, "")
	f("ip  /16   /40", SourceIP, "")
	f("jwt.realm.roles", SourceJWT, "realm.roles")
	f("unverified jwt.sub", SourceJWTUnverified, "sub")
	f("header X-User", SourceHeader, "X-User")
	f("client header X-User", SourceClientHeader, "X-User")
	f("path {id...}", SourcePathWildcard, "id")
	f("path", SourcePath, "")
	f("body.a.b", SourceBody, "a.b")
	f("descriptor", SourceDescriptor, "me")
	f("descriptor you", SourceDescriptor, "you")
	f("metadata x-user-id", SourceMetadata, "x-user-id")

	bad := func(text, hint string) {
		t.Helper()
		if s, wrong := parseSource(text, "me"); s.Kind != SourceNone || !strings.Contains(wrong.hint, hint) {
			t.Errorf("%q: %+v %v, want a hint with %q", text, s, wrong, hint)
		}
	}
	bad("ip /33 /64", "`ip /24 /48`")
	bad("ip 24 48", "`ip /24 /48`")
	bad("jwt", "`jwt.sub`")
	bad("jwt.a..b", "jwt")
	bad("Header X-User", "`header X-User`")
	bad("headr X-User", "`header X-User`")
	bad("header", "`header X-User`")
	bad("body max_tokens", "`body.max_tokens`")
	bad("client cookie session", "`cookie session`")
	bad("path id", "`path {id}`")
	bad("unverified header X", "`unverified jwt.X`")
	bad("client header X User", "`client header User`")
	bad("header X:Y", "the bare name")
	bad("request_id", "`client header NAME`")
	bad("X-Request-Id", "`client header X-Request-Id`")
}

func TestPeriodOfRate(t *testing.T) {
	f := func(text string, events int64, period time.Duration) {
		t.Helper()
		d := newDecoder("rules.yaml", Options{})
		l, ok := d.plainLimit(&yamltree.Node{Kind: yamltree.Scalar, Value: text})
		if !ok || len(d.problems.List()) > 0 || l.Spec.Events != events || l.Spec.Period != period {
			t.Errorf("%q: %+v %v", text, l.Spec, d.problems)
		}
	}
	f("1/second", 1, time.Second)
	f("100 / minute", 100, time.Minute)
	f("5/15m", 5, 15*time.Minute)
	f("10/1h30m", 10, 90*time.Minute)
	f("10/day", 10, 24*time.Hour)
	f("10/week", 10, 7*24*time.Hour)
	f("1/1ms", 1, time.Millisecond)
	f("1000000/second", 1_000_000, time.Second)
	f("268435455/day", 268435455, 24*time.Hour)
}

// A number that is too far from zero is told so on its own side.
func TestNumbersBeyondCounting(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, why, _ := wholeNumber(text); why != want {
			t.Errorf("%s: %q, want %q", text, why, want)
		}
	}
	f("9223372036854775807", "")
	f("-9223372036854775808", "")
	f("99999999999999999999", "is larger than any number that can be counted: `99999999999999999999`")
	f("-99999999999999999999", "is smaller than any number that can be counted: `-99999999999999999999`")
}
