package rules

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// The tests of this file are what operators have asked for, each as the rule
// that says it and the story that it has to come out as.

func TestNeedLoginFailures(t *testing.T) {
	d := newDesk(t, `
rules:
  - { name: login, match: POST /login, per: ip, limits: 5/15m, count: { status: [401, 403] }, block: 15m }
`)
	try := func(ip string, status int) tidegate.Decision {
		a, visit := d.gate.Enter(context.Background(), request("POST /login", "ip", ip))
		if err := visit.End(tidegate.Outcome{Status: status}); err != nil {
			t.Fatal(err)
		}
		return a
	}
	for i := range 50 { // who knows the password is not counted
		if a := try("192.0.2.1", 200); !a.OK {
			t.Fatalf("login %d is refused by %v", i, a.Limit)
		}
	}
	for i := range 5 {
		if a := try("192.0.2.2", 401); !a.OK {
			t.Fatalf("failure %d is refused", i+1)
		}
		d.wait(time.Minute)
	}
	a := try("192.0.2.2", 401)
	if a.OK || a.RetryAfter != 15*time.Minute {
		t.Errorf("the sixth try: %+v, want a block of 15m", a)
	}
	// The first failure has left the window, the block holds.
	d.wait(14 * time.Minute)
	if a := try("192.0.2.2", 200); a.OK || a.RetryAfter != time.Minute {
		t.Errorf("a minute before the end of the block: %+v", a)
	}
	if a := try("192.0.2.3", 401); !a.OK {
		t.Error("somebody else is blocked")
	}
	d.wait(time.Minute)
	if a := try("192.0.2.2", 200); !a.OK {
		t.Errorf("after the block: refused by %v", a.Limit)
	}
}

func TestNeedPlanFromClaim(t *testing.T) {
	d := newDesk(t, `
identify: { tenant: jwt.tenant, plan: jwt.plan }
rules:
  - name: api
    match: /api/
    per: tenant
    limits: 10/minute
    for:
      - { when: { plan: gold }, limits: 40/minute }
      - { when: { plan: silver }, limits: 20/minute }
`)
	d.passes(40, as("GET /api/", "tenant", "a", "plan", "gold"))
	d.passes(20, as("GET /api/", "tenant", "b", "plan", "silver"))
	d.passes(10, as("GET /api/", "tenant", "c", "plan", "tin"))
	// An upgrade keeps what was used.
	d.passes(30, as("GET /api/", "tenant", "c", "plan", "gold"))
	// And so does a downgrade.
	d.refuses(as("GET /api/", "tenant", "b"))
}

func TestNeedOverrideUntilFriday(t *testing.T) {
	d := newDesk(t, `
identify: { tenant: jwt.tenant }
rules:
  - name: api
    per: tenant
    limits: 10/minute
    for: [{ when: { tenant: acme }, limits: 30/minute, until: 2026-11-20T00:00:00Z, reason: "migration, ticket 4711" }]
`)
	acme, other := as("GET /", "tenant", "acme"), as("GET /", "tenant", "globex")
	d.passes(30, acme)
	d.passes(10, other)
	d.clock = time.Date(2026, 11, 19, 23, 59, 59, 0, time.UTC)
	d.passes(30, acme)
	d.wait(time.Second) // it is Friday, and 30 were used
	d.refuses(acme)
	d.wait(time.Minute)
	d.passes(10, acme)
}

func TestNeedPartnersAreExempt(t *testing.T) {
	d := newDesk(t, `
lists: { partners: [203.0.113.0/24, "2001:db8::/32"] }
exempt: [{ when: { ip: in partners } }]
rules: [{ name: api, per: ip, limits: 3/minute }]
`)
	d.admits(100, request("GET /", "ip", "203.0.113.7"))
	d.admits(100, request("GET /", "ip", "2001:db8:5:6::/64", "addr", "2001:db8:5:6::7"))
	d.passes(3, request("GET /", "ip", "203.0.114.7"))
}

func TestNeedHealthChecksAreExempt(t *testing.T) {
	d := newDesk(t, `
exempt: [{ match: [GET /healthz, GET /readyz] }]
rules: [{ name: site, per: everyone, limits: 3/minute }]
`)
	d.admits(100, request("GET /healthz"))
	d.passes(3, request("GET /"))
	d.admits(100, request("GET /readyz"))
	d.refuses(request("POST /healthz"))
}

func TestNeedLooserBelow(t *testing.T) {
	d := newDesk(t, `
rules:
  - { name: api, match: /api/, per: ip, limits: 5/minute }
  - { name: events, match: POST /api/events, per: ip, limits: 50/minute, instead_of: api }
`)
	d.passes(50, request("POST /api/events", "ip", "192.0.2.1"))
	d.passes(5, request("GET /api/events", "ip", "192.0.2.1")) // untouched by the others
	d.refuses(request("GET /api/users", "ip", "192.0.2.1"))
}

func TestNeedOneLimitOverTwoRoutes(t *testing.T) {
	d := newDesk(t, `rules: [{ name: posts, match: [POST /posts, PUT /posts/], per: ip, limits: 4/second }]`)
	post, put := request("POST /posts", "ip", "192.0.2.1"), request("PUT /posts/7", "ip", "192.0.2.1")
	d.admits(2, post)
	d.passes(2, put)
	d.refuses(post)
}

func TestNeedSignedInAndAnonymous(t *testing.T) {
	d := newDesk(t, `
identify: { user: jwt.sub }
rules:
  - { name: members, when: { user: present }, per: user, limits: 20/minute }
  - { name: guests, when: { user: absent }, per: ip, limits: 5/minute }
`)
	d.passes(20, as("GET /", "user", "42", "ip", "192.0.2.1"))
	d.passes(20, as("GET /", "user", "43", "ip", "192.0.2.1"))
	d.passes(5, as("GET /", "ip", "192.0.2.1"))
}

func TestNeedBanList(t *testing.T) {
	d := &desk{t: t}
	files := map[string]string{
		"rules.yaml": "version: 1\nlists: { banned: file banned.txt }\nrules: [{ name: banned, when: { ip: in banned }, deny: true }]\n",
		"banned.txt": "# since Monday\n198.51.100.0/24\n2001:db8:bad::/48\n",
	}
	c := Config{ReadFile: func(name string) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, fmt.Errorf("open %s: no such file", name)
		}
		return []byte(text), nil
	}}
	set, err := Load("rules.yaml", c)
	if err != nil {
		t.Fatal(err)
	}
	d.gate = tidegate.NewGate(set, nil) // no store is asked
	for _, r := range []*tidegate.Request{
		request("GET /", "ip", "198.51.100.9"),
		request("GET /", "ip", "2001:db8:bad:1::/64", "addr", "2001:db8:bad:1::1"),
	} {
		if a := d.refuses(r); !a.Never || a.Limit.Algorithm != tidegate.Deny || a.Limit.Terms.Rule != "banned" {
			t.Errorf("%+v", a)
		}
	}
	d.admits(1, request("GET /", "ip", "198.51.101.9"))
	if got := fmt.Sprint(set.Files()); got != "[rules.yaml banned.txt]" {
		t.Errorf("files to watch: %s", got)
	}
}

func TestNeedTokensOfLLM(t *testing.T) {
	d := newDesk(t, `
identify: { user: jwt.sub }
rules:
  - name: chat
    match: POST /v1/chat
    per: user
    limits: 10000/minute
    cost: { reserve: body.max_tokens, else: 1000, min: 1, max: 4000, settle: response.body.usage.total_tokens }
`)
	chat := func(tokens string) *tidegate.Request {
		r := as("POST /v1/chat", "user", "42")
		if tokens != "" {
			r.Values.(identified).values["body.max_tokens"] = tokens
		}
		return r
	}
	enter := func(tokens string) (tidegate.Decision, *tidegate.Visit) {
		return d.gate.Enter(context.Background(), chat(tokens))
	}
	// Two that may take 4000 each: a third does not fit, though it would once
	// they have told what they took.
	_, first := enter("4000")
	_, second := enter("99999")
	if a, _ := enter("4000"); a.OK {
		t.Error("12,000 are reserved of 10,000")
	}
	first.Found("response.body.usage.total_tokens", 500)
	if err := first.End(tidegate.Outcome{Status: 200}); err != nil {
		t.Fatal(err)
	}
	a, third := enter("")
	if !a.OK || a.Remaining != 4500 { // 10,000 - 500 - 4,000 - 1,000
		t.Errorf("%+v, want 4500 left", a)
	}
	// More than was reserved is charged as well; no word of the cost leaves the
	// reserve charged.
	second.Found("response.body.usage.total_tokens", 6000)
	for _, v := range []*tidegate.Visit{second, third} {
		if err := v.End(tidegate.Outcome{Status: 200}); err != nil {
			t.Fatal(err)
		}
	}
	if a, _ := enter("2500"); !a.OK || a.Remaining != 0 {
		t.Errorf("%+v, want none left of 10,000 - 500 - 6,000 - 1,000 - 2,500", a)
	}
}
