package rules

import (
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// signals is one signal and its value.
type signals map[string]float64

func (s signals) Signal(name string) (float64, bool) {
	v, ok := s[name]
	return v, ok
}

func TestOver(t *testing.T) {
	s := signals{}
	set := parse(t, `
rules:
  - { name: hard, match: /hard, per: everyone, limits: 60/minute, over: hard }
  - { name: soft, match: /soft, per: everyone, limits: 60/minute, over: { soft: 10% } }
  - { name: burst, match: /burst, per: everyone, limits: { rate: 10/second, burst: 20, algorithm: token_bucket }, over: { soft: 50% } }
  - { name: timed, match: /timed, per: everyone, limits: 60/minute, over: { soft: 10%, max_time: 30s } }
  - { name: feed, match: /feed, per: everyone, limits: 300/minute, over: { elastic: { while: upstream_p99 < 200ms, up_to: 2x } } }
`, Config{Signals: s})
	f := heldTo(t, set)
	f(request("GET /hard"), "hard: 60/1m0s sliding_log per everyone")
	f(request("GET /soft"), "soft: 60/1m0s sliding_log per everyone#nominal advisory marks", "soft: 66/1m0s sliding_log per everyone")
	f(request("GET /burst"), "burst: 10/1s token_bucket burst 20 per everyone#nominal advisory marks", "burst: 15/1s token_bucket burst 30 per everyone")
	f(request("GET /timed"), "timed: 60/1m0s sliding_log per everyone#nominal", "timed: 66/1m0s sliding_log per everyone")
	nominal, above := "feed: 300/1m0s sub_windows per everyone#nominal", "feed: 600/1m0s sub_windows per everyone"
	f(request("GET /feed"), nominal, above)
	s["upstream_p99"] = 0.2
	f(request("GET /feed"), nominal, above)
	s["upstream_p99"] = 0.199
	f(request("GET /feed"), nominal+" advisory marks", above)
	for _, path := range []string{"/soft", "/feed"} {
		checks := set.Match(request("GET "+path), nil)
		if checks[1].Limit.Terms.Answer.Nominal != checks[0].Limit {
			t.Errorf("%s: clients are not told the nominal limit", path)
		}
	}
	timed := set.Match(request("GET /timed"), nil)
	if timed[0].Limit.Terms.MaxOver != 30*time.Second || timed[1].Limit.Terms.MaxOver != 0 {
		t.Error("the limit does not give way for 30 s, or its ceiling does")
	}
	if told := timed[1].Limit.Terms.Answer.Nominal; told == nil || told.Identity() != timed[0].Limit.Identity() {
		t.Errorf("clients are told of %v, not of the nominal limit", told)
	}
}

func TestModes(t *testing.T) {
	f := heldTo(t, parse(t, `
identify: { user: header X-User }
rules:
  - { name: shadow, match: /shadow, per: user, limits: 60/minute, over: { soft: 10% }, block: 1m, mode: shadow }
  - { name: timed, match: /timed, per: user, limits: 60/minute, over: { soft: 10%, max_time: 30s }, mode: shadow }
  - { name: off, match: /off, per: user, limits: 60/minute, mode: disabled }
  - { name: access, match: /access, deny: true, mode: shadow }
  - { name: next, match: /next, per: user, limits: 100/minute, candidate: 80/minute }
`, Config{}))
	f(request("GET /shadow", "header X-User", "u"),
		"shadow: 60/1m0s sliding_log per user#nominal u advisory tries", "shadow: 66/1m0s sliding_log per user u advisory tries")
	f(request("GET /timed", "header X-User", "u"), // judged by its ceiling
		"timed: 60/1m0s sliding_log per user#nominal u advisory tries", "timed: 66/1m0s sliding_log per user u advisory tries")
	f(request("GET /off"))
	f(request("GET /access", "ip", "192.0.2.1"), "access: deny 192.0.2.1 advisory tries")
	f(request("GET /next", "header X-User", "u"),
		"next: 100/1m0s sub_windows per user u", "next: 80/1m0s sub_windows per user#candidate u advisory tries")
}

// The same quarter of the keys on every node and in every release.
func TestShareOfKeys(t *testing.T) {
	const src = `
identify: { user: header X-User }
rules:
  - { name: api, per: user, limits: 60/minute, block: 1m, enforce: 25% }
  - { name: other, per: user, limits: 60/minute, enforce: 25% }
`
	a, b := parse(t, src, Config{}), parse(t, src, Config{})
	enforced, same := 0, 0
	for i := range 10_000 {
		r := request("GET /", "header X-User", fmt.Sprint("user-", i))
		checks := a.Match(r, nil)
		if show(checks) != show(b.Match(r, nil)) {
			t.Fatal("two nodes disagree")
		}
		if !checks[0].Advisory {
			enforced++
			if checks[0].Limit.Terms.Role != tidegate.Blocks {
				t.Fatal("an enforced key is not blocked")
			}
			checks = checks[1:]
		}
		if checks[0].Advisory == checks[1].Advisory {
			same++
		}
	}
	if enforced < 2300 || enforced > 2700 {
		t.Errorf("%d of 10000 are enforced", enforced)
	}
	// Chosen independently, 1/16 + 9/16 of the keys agree.
	if same < 5800 || same > 6700 {
		t.Errorf("two rules agree on %d of 10000 keys: they choose the same clients", same)
	}
	r := request("GET /", "header X-User", "user-1")
	if got := show(a.Match(r, nil)); got != shareOfUser1 {
		t.Errorf("user-1 is held to\n%swhich is not what other releases do", got)
	}
}

const shareOfUser1 = `api: 1/1m0s sliding_log per user#block user-1 cost 0 blocks
api: 60/1m0s sliding_log per user user-1
other: 60/1m0s sliding_log per user user-1 advisory tries
`
