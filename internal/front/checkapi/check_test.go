package checkapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Every algorithm decides here as everywhere: five pass, the sixth is told when it would,
// and passes then.
func TestCheckEveryAlgorithm(t *testing.T) {
	for _, algorithm := range []string{"token_bucket", "fixed_window", "sliding_window", "sliding_log", "sub_windows"} {
		t.Run(algorithm, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, "rules: [{ name: r, match: /api/, per: ip, limits: { rate: 5/hour, algorithm: "+algorithm+" } }]", nil)
				sixth(t, s)
			})
		})
	}
	t.Run("leaky_bucket", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, "rules: [{ name: r, match: /api/, per: ip, limits: { rate: 1/minute, algorithm: leaky_bucket }, queue: { places: 5, max_wait: 5m } }]", nil)
			if a := post(t, s, "check", `{"path":"/api/x","ip":"192.0.2.1"}`); a.Decision != "allowed" {
				t.Errorf("%+v", a)
			}
			if a := post(t, s, "check", `{"path":"/api/x","ip":"192.0.2.1"}`); a.Decision != "limited" || a.RetryAfter != 60 {
				t.Errorf("%+v", a)
			}
		})
	})
	t.Run("quota", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sixth(t, newServer(t, "rules: [{ name: r, match: /api/, per: ip, quota: 5/day }]", nil))
		})
	})
	t.Run("concurrency", func(t *testing.T) {
		s := newServer(t, "rules: [{ name: r, match: /api/, per: ip, concurrency: { slots: 1, lease: 30s } }]", nil)
		a := post(t, s, "check", `{"path":"/api/x","ip":"192.0.2.1"}`)
		if b := post(t, s, "check", `{"path":"/api/x","ip":"192.0.2.1"}`); a.Decision != "allowed" || a.Ticket == "" || b.Decision != "limited" || b.Ticket != "" {
			t.Fatalf("%+v, then %+v", a, b)
		}
		post(t, s, "release", `{"ticket":"`+a.Ticket+`"}`)
		if b := post(t, s, "check", `{"path":"/api/x","ip":"192.0.2.1"}`); b.Decision != "allowed" {
			t.Errorf("%+v", b)
		}
	})
	t.Run("deny", func(t *testing.T) {
		s := newServer(t, "rules: [{ name: private, match: /private/, deny: true }]", nil)
		if a := post(t, s, "check", `{"path":"/private/x"}`); a.Decision != "denied" || a.Rule != "private" || a.RetryAfter != 0 {
			t.Errorf("%+v", a)
		}
		if a := post(t, s, "check", `{"path":"/public"}`); a.Decision != "allowed" || a.Rule != "" {
			t.Errorf("%+v", a)
		}
	})
}

func sixth(t *testing.T, s http.Handler) {
	t.Helper()
	const question = `{"method":"GET","path":"/api/x","ip":"192.0.2.1"}`
	for i := range int64(5) {
		if a := post(t, s, "check", question); a.Decision != "allowed" || a.Rule != "r" || a.Limit != 5 || a.Remaining != 4-i {
			t.Errorf("number %d: %+v", i+1, a)
		}
	}
	for range 3 { // refusals charge nothing, and neither does peeking
		post(t, s, "peek", question)
		a := post(t, s, "check", question)
		if a.Decision != "limited" || a.Remaining != 0 || a.RetryAfter <= 0 {
			t.Fatalf("the sixth: %+v", a)
		}
	}
	if other := post(t, s, "check", `{"path":"/api/x","ip":"192.0.2.2"}`); other.Decision != "allowed" {
		t.Errorf("another client: %+v", other)
	}
	wait := time.Duration(post(t, s, "check", question).RetryAfter * float64(time.Second))
	time.Sleep(wait - time.Millisecond)
	if a := post(t, s, "check", question); a.Decision != "limited" {
		t.Errorf("before %v are over: %+v", wait, a)
	}
	time.Sleep(time.Millisecond + time.Microsecond)
	if a := post(t, s, "check", question); a.Decision != "allowed" {
		t.Errorf("after %v: %+v", wait, a)
	}
}

// Identities in as go before what would be found, numbers are their digits, and names that
// the rules do not have are told.
func TestCheckAs(t *testing.T) {
	s := newServer(t, `
identify: { user: client header X-User, tenant: descriptor, plan: descriptor }
rules:
  - { name: users, match: /u, per: user, missing: refuse, limits: 2/hour }
  - { name: tenants, match: /t, per: tenant, limits: 2/hour }
  - { name: nets, match: /n, per: ip, limits: 2/hour }
  - { name: big, match: /p, per: ip, limits: 1/hour, for: [{ when: { plan: gold }, limits: 9/hour }] }
`, nil)
	f := func(question, want string) {
		t.Helper()
		a := post(t, s, "check", question)
		if got := fmt.Sprintf("%s %s %d %v", a.Decision, a.Rule, a.Remaining, a.Unknown); got != want {
			t.Errorf("%s: %s, want %s", question, got, want)
		}
	}
	f(`{"path":"/u","as":{"user":42}}`, "allowed users 1 []")
	f(`{"path":"/u","as":{"user":"42"}}`, "allowed users 0 []")
	f(`{"path":"/u","as":{"user":42}}`, "limited users 0 []")
	f(`{"path":"/u","headers":{"x-user":"43"}}`, "allowed users 1 []")
	f(`{"path":"/u","headers":{"X-User":"43"},"as":{"user":"44"}}`, "allowed users 1 []")
	f(`{"path":"/u","headers":{"X-User":["43","44"]}}`, "denied users 0 []") // two that differ are none
	f(`{"path":"/u","headers":{"X-User":"43"},"as":{"user":""}}`, "denied users 0 []")
	f(`{"path":"/u","as":{"user":"45","usr":"x","tenent":1}}`, "allowed users 1 [usr tenent]")
	f(`{"path":"/t","as":{"tenant":"a"}}`, "allowed tenants 1 []")
	f(`{"path":"/t","as":{"tenant":"a"}}`, "allowed tenants 0 []")
	f(`{"path":"/t"}`, "allowed  0 []") // a check that is not about a tenant
	f(`{"path":"/n","ip":"2001:db8::1"}`, "allowed nets 1 []")
	f(`{"path":"/n","as":{"ip":"2001:db8::2"}}`, "allowed nets 0 []")
	f(`{"path":"/n","ip":"2001:db8:0:0:1::2"}`, "limited nets 0 []")
	f(`{"path":"/n","ip":"::ffff:192.0.2.1"}`, "allowed nets 1 []")
	f(`{"path":"/n","ip":"192.0.2.1"}`, "allowed nets 0 []")
	f(`{"path":"/p","ip":"192.0.2.1","as":{"plan":"gold"}}`, "allowed big 8 []")
}

// Values are found where the gateway finds them.
func TestCheckFindsWhatTheGatewayFinds(t *testing.T) {
	s := newServer(t, `
identify: { q: query q, c: cookie c, b: lower trim body.a.b, h: header X-H, basic: basic.user, net: ip /24 /48 }
rules:
  - { name: q, match: /q, per: q, limits: 9/hour }
  - { name: c, match: /c, per: c, limits: 9/hour }
  - { name: b, match: /b, per: b, limits: 9/hour }
  - { name: h, match: /h, per: h, limits: 9/hour }
  - { name: basic, match: /basic, per: basic, limits: 9/hour }
  - { name: net, match: /net, per: net, limits: 9/hour }
  - { name: host, match: a.example/host, per: ip, limits: 9/hour }
`, nil)
	f := func(one, two string, same bool) {
		t.Helper()
		first, second := post(t, s, "check", one), post(t, s, "check", two)
		if first.Rule == "" || first.Decision != "allowed" {
			t.Errorf("%s: %+v", one, first)
		}
		if counted := second.Remaining == first.Remaining-1 && second.Rule == first.Rule; counted != same {
			t.Errorf("%s and %s: the same counter is %t, want %t", one, two, counted, same)
		}
	}
	f(`{"path":"/q?q=1"}`, `{"path":"/q?x&q=%31"}`, true)
	f(`{"path":"/q?q=2"}`, `{"path":"/q?q=3"}`, false)
	f(`{"path":"/c","headers":{"Cookie":"c=1"}}`, `{"path":"/c","headers":{"cookie":"d=2; c=1"}}`, true)
	f(`{"path":"/b","body":{"a":{"b":7}}}`, `{"path":"/b","body":"{\"a\":{\"b\":\"7\"}}"}`, true)
	f(`{"path":"/b","body":{"a":{"b":8}}}`, `{"path":"/b","body":{"a":{"b":9}}}`, false)
	const form = `"headers":{"Content-Type":"application/x-www-form-urlencoded"}`
	f(`{"path":"/b","body":{"a":{"b":"x"}}}`, `{"path":"/b",`+form+`,"body":"a%5Bb%5D=x"}`, true)
	f(`{"path":"/b",`+form+`,"body":"a.b=y"}`, `{"path":"/b",`+form+`,"body":"a.b=z"}`, false)
	f(`{"path":"/b","body":{"a":{"b":"Spelled "}}}`, `{"path":"/b","body":{"a":{"b":"spelled"}}}`, true)
	f(`{"path":"/b","body":{"a":{"b":"named"}}}`, `{"path":"/b","as":{"b":" NAMED"}}`, true)
	f(`{"path":"/h","headers":{"X-H":"1"}}`, `{"path":"/h","headers":{"x-h":"1"}}`, true)
	f(`{"path":"/basic","headers":{"Authorization":"Basic YTpi"}}`, `{"path":"/basic","headers":{"Authorization":"Basic YTpj"}}`, true)
	f(`{"path":"/net","ip":"192.0.2.1"}`, `{"path":"/net","ip":"192.0.2.200"}`, true)
	f(`{"path":"/net","ip":"2001:db8:1::1"}`, `{"path":"/net","ip":"2001:db8:1:ff::2"}`, true)
	f(`{"path":"/host","host":"a.example","ip":"192.0.2.1"}`, `{"path":"/host","headers":{"Host":"A.example:80"},"ip":"192.0.2.1"}`, true)
}

// Several are decided one by one, in one answer.
func TestCheckMany(t *testing.T) {
	s := newServer(t, "rules: [{ name: r, match: /a, per: ip, limits: 2/hour }, { name: d, match: /d, deny: true }]", func(o *Options) { o.Checks = 4 })
	w := ask(t, s, "POST", "/v1/check", `{"checks":[{"path":"/a","ip":"192.0.2.1"},{"path":"/a","ip":"192.0.2.1","as":{"who":1}},{"path":"/a","ip":"192.0.2.1"},{"path":"/b"}]}`)
	var got struct{ Answers []answer }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
		t.Fatalf("%v: %d %s", err, w.Code, w.Body)
	}
	var told []string
	for _, a := range got.Answers {
		told = append(told, a.Decision+fmt.Sprint(a.Unknown))
	}
	if want := "allowed[] allowed[who] limited[] allowed[]"; strings.Join(told, " ") != want || w.Header().Get(decisionHeader) != "limited" {
		t.Errorf("%q, %q", told, w.Header())
	}
	// What is wrong with one keeps all from being charged, and is named.
	w = ask(t, s, "POST", "/v1/check", `{"checks":[{"path":"/a","ip":"192.0.2.9"},{"path":"/a","ip":"nowhere"}]}`)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "checks[1]: the ip is not an address") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if a := post(t, s, "check", `{"path":"/a","ip":"192.0.2.9"}`); a.Remaining != 1 {
		t.Errorf("%+v", a)
	}
	one := `{"path":"/d"}`
	w = ask(t, s, "POST", "/v1/peek", `{"checks":[`+strings.Repeat(one+",", 3)+one+`]}`)
	if w.Code != 200 || w.Header().Get(decisionHeader) != "denied" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = ask(t, s, "POST", "/v1/check", `{"checks":[`+strings.Repeat(one+",", 4)+one+`]}`)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "more than 4") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What is not understood is 400 with a sentence, and charges nothing.
func TestBadInput(t *testing.T) {
	s := newServer(t, "", nil)
	f := func(verb, body, want string) {
		t.Helper()
		w := ask(t, s, "POST", "/v1/"+verb, body)
		var p problem
		_ = json.Unmarshal(w.Body.Bytes(), &p)
		if w.Code != 400 || p.Status != 400 || !strings.Contains(p.Detail, want) || !strings.HasSuffix(p.Detail, ".") {
			t.Errorf("%s %s: %d %s, want %q", verb, body, w.Code, w.Body, want)
		}
	}
	for _, body := range []string{
		``, ` `, `null`, `[]`, `"a"`, `1`, `{`, `{"`, `{"path"`, `{"path":`, `{"path":"/"`, `{"path":"/",}`, `{"path":"/"} x`, `{"path":"/"}{}`, `{path:"/"}`, `{'path':'/'}`,
		`{"path":1}`, `{"path":null}`, `{"path":["/"]}`, "{\"path\":\"/\x01\"}", "{\"path\":\"/\xff\"}", `{"path":"\x"}`, `{"path":"\u12"}`, `{"path":"/" "ip":""}`, `{,}`, `{"path":"/",,"ip":""}`,
		`{"cost":0}`, `{"cost":-1}`, `{"cost":1.5}`, `{"cost":1e3}`, `{"cost":"1"}`, `{"cost":01}`, `{"cost":+1}`, `{"cost":9223372036854775808}`, `{"cost":}`, `{"cost":true}`, `{"cost": 1 2}`,
		`{"ip":"nowhere"}`, `{"ip":"192.0.2.1:80"}`, `{"ip":"fe80::1%eth0"}`, `{"ip":"192.0.2.256"}`, `{"as":{"ip":"x"}}`,
		`{"as":[]}`, `{"as":{"user":null}}`, `{"as":{"user":true}}`, `{"as":{"user":{}}}`, `{"as":{"user":1,"user":2}}`, `{"as":{"user":01}}`, `{"as":{"user":-}}`, `{"as":{"a":1,}}`,
		`{"headers":[]}`, `{"headers":{"a":1}}`, `{"headers":{"a":["b",]}}`, `{"headers":{"a":[1]}}`, `{"headers":{"a":[["b"]]}}`,
		`{"body":}`, `{"body":{}`, `{"body":{a}}`, `{"body":[1,]}`, `{"body":tru}`, `{"body":{"a":1}}}`, `{"body":]}`, `{"body":"`,
	} {
		f("check", body, "")
		f("reserve", body, "")
		f("usage", body, "")
	}
	f("check", `{"pth":"/"}`, `no field "pth"`)
	f("check", `{"Path":"/"}`, `no field "Path"`)
	f("check", `{"path":"/","path":"/"}`, `"path" is there twice`)
	f("check", `{"path":"/","checks":[{}]}`, `stands alone`)
	f("check", `{"checks":[{}],"path":"/"}`, `stands alone`)
	f("check", `{"checks":[{}],"checks":[{}]}`, `twice`)
	f("check", `{"checks":[]}`, `empty`)
	f("check", `{"checks":{}}`, `an array`)
	f("check", `{"checks":[{},{"x":1}]}`, `checks[1]: there is no field "x"`)
	f("check", `{"checks":[{"checks":[{}]}]}`, `no field "checks"`)
	f("reserve", `{"checks":[{}]}`, `one request at a time`)
	f("acquire", `{"checks":[{}]}`, `one request at a time`)
	f("check", `{"body":"`+strings.Repeat("a", 64<<10)+`a"}`, "longer than 65536")
	f("check", `{"headers":{"a":["`+strings.Repeat(`b","`, 128)+`"]}}`, "more than 128")
	f("settle", `{}`, "no ticket")
	f("settle", `{"ticket":""}`, "no ticket")
	f("settle", `{"ticket":"x"}`, "no cost")
	f("settle", `{"ticket":"x","status":200}`, `no field "status"`)
	f("settle", `{"ticket":"x","cost":1}`, "not a ticket")
	f("settle", `{"ticket":"x","cost":-1}`, "cost is not a whole number")
	f("report", `{"ticket":"x"}`, "no status or cost")
	f("report", `{"ticket":"x","status":99}`, "status is not")
	f("report", `{"ticket":"x","status":"200"}`, "status is not")
	f("report", `{"ticket":"x","status":200}`, "not a ticket")
	f("renew", `{"ticket":"x"}`, "not a ticket")
	f("renew", `{"ticket":"x","cost":1}`, `no field "cost"`)
	f("release", `{"ticket":"x"}`, "not a ticket")
	var as strings.Builder
	for i := range 65 {
		fmt.Fprintf(&as, `,"i%d":1`, i)
	}
	f("check", `{"as":{`+as.String()[1:]+`}}`, "more than 64")
	if a := post(t, s, "peek", `{}`); a.Remaining != 100 {
		t.Errorf("something was charged: %+v", a)
	}
}

// A path that the gateway would refuse is denied, whatever the rules say.
func TestCheckIsStrict(t *testing.T) {
	s := newServer(t, "rules: [{ name: r, match: /denied, deny: true }]", nil)
	for _, path := range []string{
		"/a/../denied", "/./denied", "//denied", "/a//denied", "/%2e%2e/denied", "/a%2fdenied", `/a\\denied`, "/%00", "/denied#x", "/a b", "denied", "?x", "/%zz",
		"ftp://h/denied", "http://u@h/denied", "http://h//denied", "http://h/denied", "*", "/a/..;/denied", "/%252e%252e/denied",
	} {
		if a := post(t, s, "check", `{"path":"`+path+`"}`); a.Decision != "denied" || a.Reason == "" || a.Rule != "" {
			t.Errorf("%s: %+v", path, a)
		}
	}
	for _, path := range []string{"/denied", "/denied/", "/%64enied", "/denied;x", "/;x/denied", "/denied?x"} {
		if a := post(t, s, "check", `{"path":"`+path+`"}`); a.Decision != "denied" || a.Rule != "r" {
			t.Errorf("%s: %+v", path, a)
		}
	}
	for _, q := range []string{`"method":"get"`, `"method":"G T"`, `"method":"TRACE"`, `"host":"a b"`, `"host":"u@h"`, `"host":"a","headers":{"Host":"b"}`} {
		if a := post(t, s, "check", `{`+q+`}`); a.Decision != "denied" || a.Reason == "" {
			t.Errorf("%s: %+v", q, a)
		}
	}
	if a := post(t, s, "check", `{"path":"/`+strings.Repeat("a", 9<<10)+`"}`); a.Decision != "denied" {
		t.Errorf("%+v", a)
	}
	open := newServer(t, "rules: [{ name: r, match: /denied, deny: true }]", func(o *Options) { o.EncodedSlash = true })
	for _, path := range []string{"/denied%2f", `/denied\\x/..`, "/x%2f..%2fdenied", `/denied\\`} {
		if a := post(t, open, "check", `{"path":"`+path+`"}`); a.Decision != "denied" {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

// Elsewhere and by other methods there is nothing.
func TestElsewhere(t *testing.T) {
	s := newServer(t, "", nil)
	f := func(method, target string, want int) {
		t.Helper()
		if w := ask(t, s, method, target, "{}"); w.Code != want {
			t.Errorf("%s %s: %d, want %d", method, target, w.Code, want)
		}
	}
	f("GET", "/", 404)
	f("POST", "/v1/", 404)
	f("POST", "/v1/checks", 404)
	f("POST", "/v2/check", 404)
	f("POST", "/check", 404)
	f("POST", "/v1/forward-authx", 404)
	f("GET", "/v1/check", 405)
	f("PUT", "/v1/check", 405)
	f("DELETE", "/v1/usage", 405)
	f("POST", "/v1/openapi.yaml", 405)
}
