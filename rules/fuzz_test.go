package rules

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// everything is a file that uses every word of the language.
const everything = `version: 1
identify:
  user: header X-User
  role: [header X-Role, jwt.role, unverified jwt.role]
  api_key: client header X-Api-Key
  net: ip /24 /48
  tenant: descriptor
  session: cookie session
  doc: "path {id}"
lists:
  partners: [203.0.113.0/24, "2001:db8::/32"]
  bots: ["*-bot", spider]
exempt:
  - { match: /healthz }
  - { when: { ip: in partners } }
defaults: { on_store_failure: local }
respond: { status: 429, message: "slow down" }
headers: { dialect: [draft11, x], reset: delta, retry_jitter: 10% }
rules:
  - name: api
    match: /api/
    per: user
    limits: [100/minute, 1000/hour]
    for:
      - { when: { role: admin }, limits: unlimited }
      - { when: { role: premium }, limits: [1000/minute, 20000/hour] }
      - { when: { user: acme }, limits: 5000/minute, until: 2030-12-01T00:00:00Z, reason: "ticket 4711" }
  - { name: events, match: POST /api/events, per: user, limits: 1000/minute, instead_of: api }
  - { name: posts, match: [POST /posts, PUT /posts/], per: [user, route], limits: 2/second }
  - { name: site, per: everyone, limits: { rate: 10000/second, burst: 12000, algorithm: token_bucket } }
  - { name: login, match: POST /login, per: [ip], limits: 5/15m, count: { status: [401, 403] }, block: 15m }
  - { name: chat, match: POST /v1/chat, per: user, limits: 100000/minute, cost: { reserve: body.max_tokens, else: 1000, min: 1, max: 32000, settle: response.body.usage.total_tokens } }
  - { name: search, match: GET /search, per: api_key, limits: 60/minute, over: { soft: 10% }, missing: refuse }
  - { name: feed, match: GET /feed, per: net, limits: 300/minute, over: { elastic: { while: upstream_p99 < 200ms, up_to: 2x } } }
  - { name: reports, match: "POST /reports/{id}/render", per: doc, concurrency: { slots: 20, lease: 30s }, missing: skip }
  - { name: checkout, match: POST /orders, per: everyone, limits: { rate: 50/second, algorithm: leaky_bucket }, queue: { places: 100, max_wait: 2s } }
  - { name: plan, match: /api/, per: tenant, quota: { amount: 1000000/month, zone: Asia/Seoul, anchor: 15 } }
  - { name: rpm, match: /api/, per: session, limits: { from: header X-Rpm, per: minute, max: 10000, else: 100 } }
  - { name: members-only, match: /premium/, unless: { role: [premium, admin] }, deny: true, respond: { status: 403, message: "for subscribers only" } }
  - { name: bots, when: { user: in bots }, deny: true }
  - { name: new-idea, match: GET /beta/, per: ip, limits: 30/minute, mode: shadow }
  - { name: some, per: user, limits: 30/minute, enforce: 25%, candidate: 20/minute }
`

// Whatever is written and whatever is asked: nothing panics, a file that has no
// errors is a Set, and Explain says what Match does.
func FuzzMatch(f *testing.F) {
	f.Add(everything, "POST", "/api/events", "", "header X-User=acme ip=192.0.2.1")
	f.Add(everything, "GET", "/search", "/a%2Fb", "header X-Role=premium addr=2001:db8::1")
	f.Add(everything, "POST", "/reports/7/render", "", "ip=203.0.113.7")
	f.Add("version: 1\n"+wideRules, "POST", "/api/orders/7", "/api/orders%2f7", "header X-User=u header X-Rpm=9")
	f.Add("version: 1\nrules: [{ name: a, per: ip, limits: 5/minute }]", "GET", "*", "", "")
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	config := Config{
		Now:      func() time.Time { return now },
		ReadFile: func(string) ([]byte, error) { return nil, errors.New("there are no files") },
		Signals:  signals{"cpu": 0.5},
	}
	f.Fuzz(func(t *testing.T, src, method, path, rawPath, who string) {
		file, problems := rulefile.Parse("rules.yaml", []byte(src), config.options())
		if file == nil || problems.HasErrors() {
			return
		}
		set, more := compile(file, config)
		if set == nil {
			if strings.Contains(more.Error(), "more than 256 ways") {
				return
			}
			t.Fatalf("the file has no errors, and\n%v", more)
		}
		r := requestOf(method, path, who)
		r.RawPath = rawPath
		agree(t, set, r)
		for _, c := range set.Match(r, nil) {
			if len(c.Key) > tidegate.MaxKey+1 || c.Cost < 0 || c.Limit.Terms == nil {
				t.Errorf("%+v", c)
			}
		}
		_ = set.Needs()
	})
}

// The words of the seed are really used: every rule of it applies somewhere.
func TestEverythingIsUsed(t *testing.T) {
	set := parse(t, everything, Config{})
	left := make(map[string]bool)
	for _, name := range set.Rules() {
		left[name] = true
	}
	for _, ask := range []string{"POST /api/events", "GET /api/", "POST /posts", "POST /login", "POST /v1/chat", "GET /search", "GET /feed", "POST /reports/7/render", "POST /orders", "GET /premium/", "GET /beta/"} {
		for _, who := range []string{"", "header X-User=spider tenant=acme"} {
			method, path, _ := strings.Cut(ask, " ")
			r := requestOf(method, path, who)
			agree(t, set, r)
			for _, c := range set.Match(r, nil) {
				delete(left, c.Limit.Terms.Rule)
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("no request is held to %v", left)
	}
}
