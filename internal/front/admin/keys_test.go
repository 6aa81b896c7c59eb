package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/route"
	"tidegate.dev/tidegate/rules"
)

const shop = `
identify: { user: header X-User, role: header X-Role, order: "path {id}" }
rules:
  - { name: api, match: /api/, per: user, limits: [3/minute, 100/hour], for: [{ when: { role: admin }, limits: unlimited }] }
  - { name: posts, match: [POST /posts, "PUT /posts/{id}"], per: [user, route], limits: 2/minute }
  - { name: login, match: POST /login, per: ip, limits: 2/minute, block: 15m }
  - { name: site, per: everyone, limits: 1000/minute }
  - { name: search, match: GET /search, per: user, limits: 1/minute, over: { soft: 100% } }
  - { name: members, match: /premium/, unless: { role: premium }, deny: true }
  - { name: strict, match: /strict, per: user, missing: refuse, limits: 5/minute }
  - { name: orders, match: "GET /orders/{id}", per: order, limits: 5/minute }
  - { name: renders, match: POST /render, per: user, concurrency: { slots: 4, lease: 30s } }
  - { name: off, match: /off, per: user, limits: 5/minute, mode: disabled }
`

// say writes counters in a line each.
func say(all []Counter) string {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%s %s %s %s: %d of %d", c.Rule, c.Limit, c.Scope, c.Key, c.Remaining, c.Capacity)
		if !c.OK {
			b.WriteString(" full")
		}
		if c.Role != "decides" {
			b.WriteString(" " + c.Role)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func wants(t *testing.T, got []Counter, want ...string) {
	t.Helper()
	if wanted := strings.Join(append(want, ""), "\n"); say(got) != wanted {
		t.Errorf("got\n%swant\n%s", say(got), wanted)
	}
}

func TestKeysOfARequest(t *testing.T) {
	d := newDesk(t, shop, nil)
	d.charge(t, "GET /api/things", "user", "42")
	d.charge(t, "GET /api/things", "user", "42")
	q := Question{Method: "GET", URL: "/api/things?x=1", As: pairs([]string{"user", "42"})}
	for range 3 { // looking costs nothing
		wants(t, d.get(t, q), "api 3/1m0s sliding_log user 42: 1 of 3", "api 100/1h0m0s sub_windows user 42: 98 of 100")
	}
	q.Rule = "site" // what all share is shown to who asks for it
	wants(t, d.get(t, q), "site 1000/1m0s sub_windows everyone : 998 of 1000")
	for range 2 {
		d.charge(t, "GET /api/", "user", "42")
	}
	q.Rule, q.URL = "api", "https://shop.example/api/"
	got := d.get(t, q)
	if got[0].OK || got[0].RetryAfter < 50 || got[0].RetryAfter > 60 || got[0].ResetAfter < 50 || !got[1].OK || got[1].RetryAfter != 0 {
		t.Errorf("got %+v", got)
	}
}

// Without a request: all that counts by who was named, by every pattern.
func TestKeysOfSomebody(t *testing.T) {
	d := newDesk(t, shop, nil)
	d.charge(t, "PUT /posts/7", "user", "42")
	d.charge(t, "GET /search", "user", "42")
	d.charge(t, "GET /search", "user", "42")
	wants(t, d.get(t, Question{As: pairs([]string{"user", "42"})}),
		"api 3/1m0s sliding_log user 42: 3 of 3", "api 100/1h0m0s sub_windows user 42: 100 of 100",
		"posts 2/1m0s sliding_log user,route 2:4211:POST /posts: 2 of 2", "posts 2/1m0s sliding_log user,route 2:4215:PUT /posts/{id}: 1 of 2",
		"search 1/1m0s sliding_log user#nominal 42: 0 of 1 full marks", "search 2/1m0s sliding_log user 42: 0 of 2 full",
		"strict 5/1m0s sliding_log user 42: 5 of 5",
		"renders 4 slots, lease 30s user 42: 4 of 4")
	wants(t, d.get(t, Question{As: pairs([]string{"order", "4711"})}), "orders 5/1m0s sliding_log order 4711: 5 of 5")
	wants(t, d.get(t, Question{URL: "/orders/4711", Rule: "orders"}), "orders 5/1m0s sliding_log order 4711: 5 of 5")
	wants(t, d.get(t, Question{As: pairs([]string{"color", "blue"})}))
}

func TestReset(t *testing.T) {
	d := newDesk(t, shop, nil)
	who := pairs([]string{"ip", "203.0.113.9"})
	try := func() bool { return d.charge(t, "POST /login", "ip", "203.0.113.9") }
	for try() {
	}
	wants(t, d.get(t, Question{As: who, Rule: "login"}),
		"login 1/15m0s sliding_log ip#block 203.0.113.9: 0 of 1 full blocks", "login 2/1m0s sliding_log ip 203.0.113.9: 0 of 2 full")
	wants(t, d.reset(t, Question{As: who, Rule: "login"}),
		"login 1/15m0s sliding_log ip#block 203.0.113.9: 1 of 1 blocks", "login 2/1m0s sliding_log ip 203.0.113.9: 2 of 2")
	if !try() {
		t.Error("still blocked")
	}
	// Whoever resets a user does not reset what all share, nor another user.
	d.charge(t, "GET /api/", "user", "42")
	d.charge(t, "GET /api/", "user", "43")
	before := d.get(t, Question{Rule: "site"})[0].Remaining
	d.reset(t, Question{As: pairs([]string{"user", "42"})})
	wants(t, d.get(t, Question{URL: "/api/", As: pairs([]string{"user", "42"})}), "api 3/1m0s sliding_log user 42: 3 of 3", "api 100/1h0m0s sub_windows user 42: 100 of 100")
	wants(t, d.get(t, Question{URL: "/api/", As: pairs([]string{"user", "43"})}), "api 3/1m0s sliding_log user 43: 2 of 3", "api 100/1h0m0s sub_windows user 43: 99 of 100")
	if after := d.get(t, Question{Rule: "site"})[0].Remaining; after != before {
		t.Errorf("site has %d left, before %d", after, before)
	}
	wants(t, d.reset(t, Question{Rule: "site"}), "site 1000/1m0s sub_windows everyone : 1000 of 1000")
}

// Counters of rules before, which a request is still held to, are shown and reset as well.
func TestResetOfPredecessors(t *testing.T) {
	d := newDesk(t, strings.Replace(shop, "limits: [3/minute, 100/hour]", "limits: { rate: 3/minute, algorithm: token_bucket }", 1), nil)
	who := Question{URL: "/api/", As: pairs([]string{"user", "42"}), Rule: "api"}
	for d.charge(t, "GET /api/", "user", "42") {
	}
	set, err := rules.Parse("rules.yaml", []byte("version: 1\n"+shop), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d.rules.live.Swap(set)
	const log, more, bucket = "api 3/1m0s sliding_log user 42: 3 of 3", "api 100/1h0m0s sub_windows user 42: 100 of 100", "api 3/1m0s token_bucket burst 3 user 42: "
	wants(t, d.get(t, who), log, more, bucket+"0 of 3 full")
	wants(t, d.reset(t, who), log, more, bucket+"3 of 3")
	if !d.charge(t, "GET /api/", "user", "42") {
		t.Error("still refused")
	}
}

func TestKeysThatAreNot(t *testing.T) {
	d := newDesk(t, shop, nil)
	f := func(status int, query, part string) {
		t.Helper()
		problem(t, d.ask("GET", "/keys?"+query, ""), status, part)
	}
	f(400, "", "does not say whose counters")
	f(400, "as=42", "as=42 does not say who")
	f(400, "user=42", `no parameter "user"`)
	f(400, "as=user=42&as=user=43", "nobody is both")
	f(400, "rule=api&method=GET", "a method without a url")
	f(400, "rule=api&url=%00", "is not a URL")
	f(404, "rule=apo&as=user=42", "There is no rule apo; did you mean api?")
	f(404, "rule=api&url=/other&as=user=42", "the path does not match /api/")
	f(404, "rule=api", "it counts by user, and this does not say who that is")
	f(404, "rule=api&as=user=42&as=role=admin", "it does not limit them")
	f(404, "rule=members", "it denies")
	f(404, "rule=strict", "user is missing")
	f(404, "rule=off&as=user=42", "it is disabled")
}

// lesser is a store that can only take, and not even that.
type lesser struct{ err error }

func (s lesser) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	return tidegate.Decision{}, s.err
}
func (s lesser) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error { return s.err }

// answered is a store that somebody else has answered for.
type answered struct{ lesser }

func (s answered) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	return tidegate.Decision{OK: true, Err: s.err}, nil
}

func TestStoreThatSomebodyAnswersFor(t *testing.T) {
	d := newDesk(t, shop, func(o *Options) { o.Store = answered{lesser{errors.New("connection refused")}} })
	problem(t, d.ask("GET", "/keys?rule=site", ""), 503, "connection refused")
}

// standIn is a store in whose place counters of this process answer.
type standIn struct{ lesser }

func (s standIn) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	return tidegate.Decision{OK: true, Remaining: 3, Receipt: tidegate.Receipt{Origin: tidegate.OriginLocal}}, nil
}

func TestLocalCountsAreMarked(t *testing.T) {
	d := newDesk(t, shop, nil)
	if got := d.ask("GET", "/keys?rule=site", "").Body.String(); strings.Contains(got, "local") {
		t.Errorf("the store answers, and %s", got)
	}
	d = newDesk(t, shop, func(o *Options) { o.Store = standIn{} })
	if got := d.ask("GET", "/keys?rule=site", "").Body.String(); !strings.Contains(got, `"local": true`) && !strings.Contains(got, `"local":true`) {
		t.Errorf("counts of this process are shown as the store's: %s", got)
	}
}

func TestStoreThatCannot(t *testing.T) {
	d := newDesk(t, shop, func(o *Options) { o.Store = lesser{errors.New("connection refused")} })
	problem(t, d.ask("GET", "/keys?rule=site", ""), 503, "connection refused")
	problem(t, d.ask("POST", "/keys/reset", `{"rule":"site"}`), 501, "cannot forget")
}

func TestSamplesMatchTheirPatterns(t *testing.T) {
	for _, text := range []string{
		"/", "/a", "/a/", "POST /a/{id}", "/a/{id}/b/{rest...}", "/a/{$}", "example.com/a/{x}", "DELETE example.com/",
		"/{a}/{b}/{$}", "/{all...}", "/%7Ba%7D", "/a%2Fb/{c}", "/a%20b/",
	} {
		p, err := route.Split(text)
		if err != nil {
			t.Fatal(err)
		}
		tree := route.New()
		tree.Add(p, 1)
		r, err := sample(p, nil).Request()
		if err != nil {
			t.Fatal(err)
		}
		var hits []route.Hit
		for _, way := range tree.Readings(r.Path, r.RawPath, nil) {
			hits = tree.Match(r.Method, r.Host, way, hits)
		}
		if len(hits) != 1 {
			t.Errorf("%s: %s %s%s does not match", text, r.Method, r.Host, r.Path)
		}
	}
}

// A counter is full only if one more event would be refused: one that would wait in the queue is not.
func TestKeysOfAQueue(t *testing.T) {
	for _, limits := range []string{"{ rate: 5/minute, algorithm: leaky_bucket }", "{ rate: 5/minute, algorithm: token_bucket, burst: 1 }"} {
		const places = 5
		d := newDesk(t, "rules: [{ name: api, per: ip, limits: "+limits+", queue: { places: 5, max_wait: 2m } }]\n", nil)
		q := Question{Rule: "api", As: pairs([]string{"ip", "192.0.2.1"})}
		for n := range 1 + places {
			if c := d.get(t, q)[0]; !c.OK {
				t.Errorf("%s: after %d requests, with places in the queue: %+v", limits, n, c)
			}
			d.charge(t, "GET /", "ip", "192.0.2.1")
		}
		if c := d.get(t, q)[0]; c.OK {
			t.Errorf("%s: with a full queue: %+v", limits, c)
		}
	}
}
