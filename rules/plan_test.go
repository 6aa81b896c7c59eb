package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

func TestBranches(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	set := parse(t, `
identify: { user: header X-User, role: header X-Role }
rules:
  - name: api
    per: user
    limits: [100/minute, 1000/hour]
    quota: 5000/day
    cost: 2
    for:
      - { when: { role: admin }, limits: unlimited }
      - { when: { role: premium }, limits: [1000/minute, 20000/hour], quota: 100000/day }
      - { when: { user: acme }, limits: 5000/minute, until: 2026-11-20T00:00:00Z, reason: "ticket 4711" }
      - { when: { user: present }, unless: { role: guest }, cost: 1 }
`, Config{Now: func() time.Time { return now }})
	f := heldTo(t, set)
	f(request("GET /", "ip", "192.0.2.1"),
		"api: 100/1m0s sub_windows per ip 192.0.2.1 cost 2", "api: 1000/1h0m0s sub_windows per ip 192.0.2.1 cost 2", "api: 5000/day quota per ip 192.0.2.1 cost 2")
	f(request("GET /", "header X-User", "u", "header X-Role", "admin"), "api: 5000/day quota per user u cost 2")
	f(request("GET /", "header X-User", "u", "header X-Role", "premium"),
		"api: 1000/1m0s sub_windows per user u cost 2", "api: 20000/1h0m0s sub_windows per user u cost 2", "api: 100000/day quota per user u cost 2")
	f(request("GET /", "header X-User", "acme"), "api: 5000/1m0s sub_windows per user acme cost 2", "api: 5000/day quota per user acme cost 2")
	f(request("GET /", "header X-User", "u"), "api: 100/1m0s sub_windows per user u", "api: 1000/1h0m0s sub_windows per user u", "api: 5000/day quota per user u")
	f(request("GET /", "header X-User", "u", "header X-Role", "guest"),
		"api: 100/1m0s sub_windows per user u cost 2", "api: 1000/1h0m0s sub_windows per user u cost 2", "api: 5000/day quota per user u cost 2")

	now = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	f(request("GET /", "header X-User", "acme"),
		"api: 100/1m0s sub_windows per user acme", "api: 1000/1h0m0s sub_windows per user acme", "api: 5000/day quota per user acme")
}

// A branch replaces what it names, whatever that is, and keeps the rest.
func TestBranchesReplaceWhatTheyName(t *testing.T) {
	f := heldTo(t, parse(t, `
identify: { role: header X-Role }
rules:
  - name: api
    per: everyone
    limits: { rate: 5/second, algorithm: leaky_bucket }
    concurrency: { slots: 2, lease: 30s }
    queue: { places: 10, max_wait: 1s }
    over: { soft: 20% }
    for:
      - { when: { role: slots }, concurrency: { slots: 4, lease: 30s } }
      - { when: { role: hard }, over: hard }
      - { when: { role: queue }, queue: { places: 20, max_wait: 2s } }
`, Config{}))
	const nominal, slots = "api: 5/1s leaky_bucket burst 10 per everyone#nominal advisory marks", "api: 2 slots, lease 30s per everyone"
	f(request("GET /"), nominal, "api: 6/1s leaky_bucket burst 10 per everyone wait 1s", slots)
	f(request("GET /", "header X-Role", "slots"), nominal, "api: 6/1s leaky_bucket burst 10 per everyone wait 1s", "api: 4 slots, lease 30s per everyone")
	f(request("GET /", "header X-Role", "hard"), "api: 5/1s leaky_bucket burst 10 per everyone wait 1s", slots)
	f(request("GET /", "header X-Role", "queue"), "api: 5/1s leaky_bucket burst 20 per everyone#nominal advisory marks",
		"api: 6/1s leaky_bucket burst 20 per everyone wait 2s", slots)
}

// A branch for each tenant is looked up, and the first that holds still wins.
func TestManyBranches(t *testing.T) {
	var b strings.Builder
	b.WriteString("identify: { user: header X-User, role: header X-Role }\nrules:\n  - name: api\n    per: user\n    limits: 1/minute\n    for:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "      - { when: { user: u%d }, limits: %d/minute }\n", i, 100+i)
	}
	b.WriteString("      - { when: { role: [gold, silver] }, limits: 300/minute }\n")
	b.WriteString("      - { when: { user: \"u9*\" }, limits: 400/minute }\n")
	b.WriteString("      - { when: { role: bronze, user: late }, limits: 500/minute }\n")
	b.WriteString("      - { when: { user: late }, limits: 600/minute }\n")
	f := heldTo(t, parse(t, b.String(), Config{}))
	as := func(user, role string, want int) {
		t.Helper()
		f(request("GET /", "header X-User", user, "header X-Role", role), fmt.Sprintf("api: %d/1m0s sub_windows per user %s", want, user))
	}
	as("u0", "", 100)
	as("u99", "", 199)
	as("u7", "gold", 107)
	as("other", "silver", 300)
	as("u999", "", 400)
	as("u999", "gold", 300)
	as("late", "bronze", 500)
	as("late", "", 600)
	as("nobody", "bronze", 1)
}

func TestTermsOfLimits(t *testing.T) {
	set := parse(t, `
identify: { user: header X-User }
respond: { status: 420, message: "slow down" }
headers: { dialect: x, reset: epoch }
defaults: { on_store_failure: deny, on_full: refuse }
rules:
  - { name: plain, match: /plain, per: ip, limits: 1/second }
  - { name: own, match: /own, per: ip, limits: 1/second, respond: { status: 503, body: "{rule}", type: text/html }, on_store_failure: allow, on_full: evict }
  - { name: quota, match: /quota, per: ip, quota: { amount: 9/month, zone: Asia/Seoul, anchor: 15, status: 402 } }
  - { name: denied, match: /denied, deny: true }
  - { name: login, match: /login, per: ip, limits: 5/15m, concurrency: { slots: 3, lease: 30s }, count: { status: [401, 5xx] }, block: 15m }
  - { name: chat, match: /chat, per: ip, limits: 9/second, concurrency: { slots: 3, lease: 30s }, cost: { else: 5, settle: response.header.X-Cost } }
  - { name: asked, match: /asked, per: ip, limits: 1/second, consistency: { deny_cache: false, coalesce: false } }
`, Config{})
	terms := func(path string) []*tidegate.Limit {
		var all []*tidegate.Limit
		for _, c := range set.Match(request("GET "+path), nil) {
			all = append(all, c.Limit)
		}
		return all
	}
	f := func(path string, n int, want tidegate.Terms, onFull tidegate.OnFull) {
		t.Helper()
		l := terms(path)[n]
		got := *l.Terms
		counts, wantCounts := fmt.Sprint(got.AtEnd.Counts), fmt.Sprint(want.AtEnd.Counts)
		got.AtEnd.Block, got.AtEnd.Counts, want.AtEnd.Counts = nil, nil, nil
		if fmt.Sprint(got) != fmt.Sprint(want) || counts != wantCounts || l.OnFull != onFull {
			t.Errorf("%s: %+v %s %v\nwant %+v %s", path, got, counts, l.OnFull, want, wantCounts)
		}
	}
	headers := tidegate.Answer{Status: 420, Message: "slow down", Dialects: []string{"x"}, Reset: "epoch"}
	closed := tidegate.FailClosed
	f("/plain", 0, tidegate.Terms{Rule: "plain", Answer: headers, Handling: tidegate.Handling{OnStoreFailure: closed}}, tidegate.RefuseNew)
	f("/own", 0, tidegate.Terms{
		Rule:     "own",
		Answer:   tidegate.Answer{Status: 503, Body: "{rule}", ContentType: "text/html", Dialects: []string{"x"}, Reset: "epoch"},
		Handling: tidegate.Handling{OnStoreFailure: tidegate.FailOpen},
	}, tidegate.EvictLeast)
	f("/asked", 0, tidegate.Terms{Rule: "asked", Answer: headers, Handling: tidegate.Handling{OnStoreFailure: closed, NoDenyCache: true, NoCoalesce: true}}, tidegate.RefuseNew)
	paid := headers
	paid.Status = 402
	f("/quota", 0, tidegate.Terms{Rule: "quota", Answer: paid, Handling: tidegate.Handling{OnStoreFailure: closed}}, tidegate.RefuseNew)
	// Who is denied is not told to slow down by the status.
	refused := headers
	refused.Status = 0
	f("/denied", 0, tidegate.Terms{Rule: "denied", Answer: refused, Handling: tidegate.Handling{OnStoreFailure: closed}}, tidegate.RefuseNew)

	counts := []tidegate.StatusRange{{From: 401, To: 401}, {From: 500, To: 599}}
	// A refusal by the block tells of the limit that started it.
	told := headers
	told.Nominal = terms("/login")[1]
	f("/login", 0, tidegate.Terms{Rule: "login", Role: tidegate.Blocks, Answer: told, Handling: tidegate.Handling{OnStoreFailure: closed, Final: true}}, tidegate.RefuseNew)
	f("/login", 1, tidegate.Terms{Rule: "login", Answer: headers, AtEnd: tidegate.AtEnd{Counts: counts}, Handling: tidegate.Handling{OnStoreFailure: closed}}, tidegate.RefuseNew)
	f("/login", 2, tidegate.Terms{Rule: "login", Answer: headers, Handling: tidegate.Handling{OnStoreFailure: closed}}, tidegate.RefuseNew)
	block := func(l *tidegate.Limit) string { return l.Terms.AtEnd.Block.Identity() }
	if login := terms("/login"); block(login[1]) != login[0].Identity() || block(login[2]) != login[0].Identity() || login[0].Terms.AtEnd.Block != nil {
		t.Error("the limits of login do not start its block")
	}
	f("/chat", 0, tidegate.Terms{Rule: "chat", Answer: headers, AtEnd: tidegate.AtEnd{Settle: "response.header.X-Cost"}, Handling: tidegate.Handling{OnStoreFailure: closed}}, tidegate.RefuseNew)
	f("/chat", 1, tidegate.Terms{Rule: "chat", Answer: headers, Handling: tidegate.Handling{OnStoreFailure: closed}}, tidegate.RefuseNew)
	heldTo(t, set)(request("GET /chat"), "chat: 9/1s sliding_log per ip @ cost 5 estimate", "chat: 3 slots, lease 30s per ip @")
	heldTo(t, set)(request("GET /login"), "login: 1/15m0s sliding_log per ip#block @ cost 0 blocks",
		"login: 5/15m0s sliding_log per ip @", "login: 3 slots, lease 30s per ip @")
}

func TestCosts(t *testing.T) {
	set := parse(t, `
rules:
  - { name: plain, match: /plain, per: everyone, limits: 100000/minute }
  - { name: fixed, match: /fixed, per: everyone, limits: 100000/minute, cost: 7 }
  - { name: chat, match: /chat, per: everyone, limits: 100000/minute, cost: { reserve: body.max_tokens, else: 1000, min: 10, max: 32000 } }
`, Config{})
	f := func(path string, cost int64, tokens, want string) {
		t.Helper()
		r := request("POST " + path)
		if tokens != "" {
			r = request("POST "+path, "body.max_tokens", tokens)
		}
		r.Cost = cost
		if got := show(set.Match(r, nil)); got != strings.TrimPrefix(path, "/")+": 100000/1m0s sub_windows per everyone"+want+"\n" {
			t.Errorf("%s at %d with %q: %swant %s", path, cost, tokens, got, want)
		}
	}
	f("/plain", 0, "", "")
	f("/plain", 3, "", " cost 3")
	f("/plain", -3, "", "")
	f("/fixed", 3, "", " cost 7")
	f("/chat", 3, "", " cost 1000 estimate")
	f("/chat", 0, "500", " cost 500 estimate")
	f("/chat", 0, "many", " cost 1000 estimate")
	if n := set.Clamped("chat"); n != 0 {
		t.Errorf("%d clamped", n)
	}
	f("/chat", 0, "0", " cost 10 estimate")
	f("/chat", 0, "-500", " cost 10 estimate")
	f("/chat", 0, "1e18", " cost 32000 estimate")
	if n := set.Clamped("chat"); n != 3 {
		t.Errorf("%d clamped, want 3", n)
	}
	if n := set.Clamped("nobody"); n != 0 {
		t.Errorf("%d clamped by no rule", n)
	}
}

func TestLimitsFromWhoIsAsking(t *testing.T) {
	set := parse(t, `
identify: { user: header X-User }
rules:
  - { name: rpm, match: /rpm, per: user, limits: { from: header X-Rpm, per: minute, max: 10000, else: 100 } }
  - { name: soft, match: /soft, per: user, limits: { from: header X-Rpm, per: minute, max: 10000, else: 100 }, over: { soft: 10% } }
  - { name: plan, match: /plan, per: user, quota: { amount: 5/month, anchor: header X-Day } }
`, Config{})
	rpm := func(value string, want int) {
		t.Helper()
		heldTo(t, set)(request("GET /rpm", "header X-User", "u", "header X-Rpm", value), fmt.Sprintf("rpm: %d/1m0s sub_windows per user u", want))
	}
	rpm("", 100)
	rpm("60", 60)
	rpm("5000", 5000)
	rpm("0", 1)
	rpm("-1", 1)
	rpm("99999999999", 10000)
	rpm("lots", 100)
	heldTo(t, set)(request("GET /soft", "header X-User", "u", "header X-Rpm", "200"),
		"soft: 200/1m0s sub_windows per user#nominal u advisory marks", "soft: 220/1m0s sub_windows per user u")

	day := func(value string, want int) {
		t.Helper()
		checks := set.Match(request("GET /plan", "header X-User", "u", "header X-Day", value), nil)
		if got := checks[0].Limit.Anchor; got != want {
			t.Errorf("the month starts on day %d, want %d", got, want)
		}
	}
	day("15", 15)
	day("31", 31)
	day("", 1)
	day("0", 1)
	day("32", 1)
	day("monday", 1)
}

// However many numbers are invented, few limits are kept, and a number always
// gets a limit that says it.
func TestLimitsFromAreBounded(t *testing.T) {
	set := parse(t, "rules: [{ name: rpm, per: everyone, limits: { from: header X-Rpm, per: minute, max: 100000, else: 100 } }]", Config{})
	for i := range 5000 {
		checks := set.Match(request("GET /", "header X-Rpm", fmt.Sprint(i+1)), nil)
		if got := checks[0].Limit.Events; got != int64(i+1) {
			t.Fatalf("%d became %d", i+1, got)
		}
	}
	v := set.rules[0].plans[0].decides[0][0].vary
	if n := len(*v.made.Load()); n > maxVaried {
		t.Errorf("%d limits are kept", n)
	}
	a, b := set.Match(request("GET /", "header X-Rpm", "7"), nil), set.Match(request("GET /", "header X-Rpm", "7"), nil)
	if a[0].Limit != b[0].Limit {
		t.Error("a limit is made for every request")
	}
}

// The operator who says unlimited lifts a block as well.
func TestUnlimitedIsNotBlocked(t *testing.T) {
	f := heldTo(t, parse(t, `
identify: { user: header X-User }
rules: [{ name: api, per: user, limits: 5/minute, block: 1h, candidate: 9/minute, for: [{ when: { user: acme }, limits: unlimited }] }]
`, Config{}))
	f(request("GET /", "header X-User", "acme"), "api: 9/1m0s sliding_log per user#candidate acme advisory tries")
	f(request("GET /", "header X-User", "u"), "api: 1/1h0m0s sliding_log per user#block u cost 0 blocks",
		"api: 5/1m0s sliding_log per user u", "api: 9/1m0s sliding_log per user#candidate u advisory tries")
	// Whatever else the rule holds them to.
	f = heldTo(t, parse(t, `
identify: { user: header X-User }
rules:
  - name: api
    per: user
    limits: 5/minute
    quota: 100/month
    concurrency: { slots: 2, lease: 30s }
    block: 1h
    for: [{ when: { user: acme }, limits: unlimited }]
`, Config{}))
	f(request("GET /", "header X-User", "acme"), "api: 100/month quota per user acme", "api: 2 slots, lease 30s per user acme")
}

// A caller that was blocked, and is unlimited from now on, is let in at once; the block that a
// limit started is not started by what remains.
func TestUnlimitedLiftsABlock(t *testing.T) {
	d := newDesk(t, `
identify: { user: header X-User }
rules: [{ name: api, per: user, limits: 2/minute, quota: 4/day, block: 1h }]
`)
	acme := request("GET /", "header X-User", "acme")
	d.passes(2, acme)
	d.reload(`
identify: { user: header X-User }
rules: [{ name: api, per: user, limits: 2/minute, quota: 4/day, block: 1h, for: [{ when: { user: acme }, limits: unlimited }] }]
`)
	d.passes(2, acme)
	other := request("GET /", "header X-User", "other")
	d.passes(2, other)
	d.refuses(other)
}

func TestQueue(t *testing.T) {
	heldTo(t, parse(t, `
rules:
  - { name: leaky, match: /leaky, per: everyone, limits: { rate: 50/second, algorithm: leaky_bucket }, queue: { places: 100, max_wait: 2s } }
  - { name: token, match: /leaky, per: everyone, limits: [{ rate: 50/second, algorithm: token_bucket }, 1000/hour], queue: { places: 100, max_wait: 3s } }
`, Config{}))(request("GET /leaky"),
		"leaky: 50/1s leaky_bucket burst 100 per everyone wait 2s",
		"token: 50/1s token_bucket burst 50 per everyone wait 2s",
		"token: 1000/1h0m0s sub_windows per everyone")
}

// Of a list the first that is there counts; a sum is of those that are there, and nobody
// makes it smaller by what is below zero.
func TestReservesOfSeveral(t *testing.T) {
	f := heldTo(t, parse(t, `
rules:
  - { name: first, match: /first, per: everyone, limits: 100000/min, cost: { reserve: [body.a, body.b], else: 50, max: 5000 } }
  - { name: sum, match: /sum, per: everyone, limits: 100000/min, cost: { reserve: { sum: [body.a, body.b, body.c] }, else: 50, max: 5000 } }
`, Config{}))
	ask := func(a, b string, first, sum int) {
		t.Helper()
		if first == 1 { // is not shown
			f(request("POST /first", "body.a", a, "body.b", b), "first: 100000/1m0s sub_windows per everyone estimate")
			return
		}
		f(request("POST /first", "body.a", a, "body.b", b), fmt.Sprintf("first: 100000/1m0s sub_windows per everyone cost %d estimate", first))
		f(request("POST /sum", "body.a", a, "body.b", b), fmt.Sprintf("sum: 100000/1m0s sub_windows per everyone cost %d estimate", sum))
	}
	ask("", "", 50, 50)
	ask("20", "", 20, 20)
	ask("", "30", 30, 30)
	ask("20", "30", 20, 50)
	ask("20", "x", 20, 20)
	ask("x", "30", 50, 30) // there, and not a number
	ask("x", "y", 50, 50)
	ask("2000", "-1999", 2000, 2000)
	ask("-5", "30", 1, 30)
	ask("9e99", "9e99", 5000, 5000)
	ask("9223372036854775807", "9223372036854775807", 5000, 5000)
	ask("1.5", "1.5", 2, 4)
}
