package rules

import (
	"slices"
	"testing"

	"tidegate.dev/tidegate"
)

func TestPatterns(t *testing.T) {
	set := parse(t, `
exempt: [{ match: /healthz }]
rules:
  - { name: posts, match: [POST /posts, "PUT example.com/posts/{id}"], per: ip, limits: 2/second }
  - { name: site, per: everyone, limits: 100/second }
`, Config{})
	f := func(rule string, want ...string) {
		t.Helper()
		if got := set.Patterns(rule); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", rule, got, want)
		}
	}
	f("posts", "POST /posts", "PUT example.com/posts/{id}")
	f("site")
	f("no such rule")
}

// Whatever requests are held to is counted where one of Limits is.
func TestLimitsNameEveryCounter(t *testing.T) {
	set := parse(t, wideRules, Config{Signals: signals{"cpu": 0.5}})
	known := make(map[string]bool)
	for _, l := range set.Limits() {
		if known[l.Identity()] || l.Terms.Rule == "" || l.Algorithm == tidegate.Deny {
			t.Errorf("%s %s: twice, of no rule, or it counts nothing", l, l.Scope)
		}
		known[l.Identity()] = true
	}
	asked := 0
	for _, method := range []string{"GET", "POST"} {
		for _, path := range []string{"/", "/api/orders/4711", "/api"} {
			for _, who := range []string{"", "header X-User=u", "header X-User=user-123456789 header X-Plan=free-1", "ip=198.51.100.3"} {
				for _, c := range set.Match(requestOf(method, path, who), nil) {
					if c.Limit.Algorithm == tidegate.Deny {
						continue
					}
					asked++
					if !known[c.Limit.Identity()] {
						t.Errorf("%s is counted at %s, which is not there", c.Limit, c.Limit.Identity())
					}
				}
			}
		}
	}
	if asked < 20 {
		t.Errorf("held to %d limits: too few to tell", asked)
	}
}

// steady says of every signal that there is room, or not.
type steady struct {
	signals
	room bool
}

func (s steady) Below(string, float64) bool { return s.room }

func TestSteadySignalsDecideThemselves(t *testing.T) {
	f := func(room bool, elastic string, want ...string) {
		t.Helper()
		set := parse(t, `
rules: [{ name: feed, per: everyone, limits: 3/minute, over: { elastic: { while: cpu < 80%, up_to: 2x } } }]
`, Config{Signals: steady{signals{"cpu": 0.8}, room}})
		heldTo(t, set)(request("GET /"), want...)
		if got := set.Explain(request("GET /")).Rules[0].Elastic; got != elastic {
			t.Errorf("explained as %q, want %q", got, elastic)
		}
	}
	const ceiling = "feed: 6/1m0s sliding_log per everyone"
	f(true, "cpu is 0.8, still below 0.8", "feed: 3/1m0s sliding_log per everyone#nominal advisory marks", ceiling)
	f(false, "cpu is 0.8, not below 0.8", "feed: 3/1m0s sliding_log per everyone#nominal", ceiling)
}
