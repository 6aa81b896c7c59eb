package rules

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

var update = flag.Bool("update", false, "write the golden files")

func TestExplainWhy(t *testing.T) {
	set := parse(t, `
identify: { user: header X-User, role: header X-Role, key: client header X-Api-Key }
lists: { partners: [203.0.113.0/24] }
exempt: [{ match: /healthz }]
rules:
  - { name: path, match: [/api/, /v2/], per: ip, limits: 1/second }
  - { name: method, match: [POST /a/, "PUT /a/{id}"], per: ip, limits: 1/second }
  - { name: host, match: shop.example.com/a/, per: ip, limits: 1/second }
  - { name: when, when: { role: [admin, "*-ops"], user: acme }, per: ip, limits: 1/second }
  - { name: network, when: { ip: in partners }, per: ip, limits: 1/second }
  - { name: unless, unless: { role: user, ip: 192.0.2.0/24 }, per: ip, limits: 1/second }
  - { name: nobody, unless: { user: absent }, per: ip, limits: 1/second }
  - { name: replaced, per: ip, limits: 1/second }
  - { name: better, per: ip, limits: 1/second, instead_of: replaced }
  - { name: off, match: /a/, per: ip, limits: 1/second, mode: disabled }
  - { name: skip, per: user, missing: skip, limits: 1/second }
  - { name: refuse, match: /a/, per: key, missing: refuse, limits: 1/second }
  - { name: free, per: ip, limits: unlimited }
  - { name: u1, when: { user: u1 }, per: ip, limits: 1/second }
  - { name: u2, when: { user: u2 }, per: ip, limits: 1/second }
  - { name: u3, when: { user: u3 }, per: ip, limits: 1/second }
  - { name: u4, when: { user: u4 }, per: ip, limits: 1/second }
  - { name: u5, match: /a/, when: { user: u5 }, per: ip, limits: 1/second }
  - { name: u6, when: { user: u6 }, per: ip, limits: 1/second }
`, Config{})
	f := func(r *tidegate.Request, rule string, applies bool, why string) {
		t.Helper()
		for _, x := range set.Explain(r).Rules {
			if x.Name == rule && (x.Applies != applies || x.Why != why) {
				t.Errorf("%s %s: applies %v, because %q; want %v, %q", r.Path, rule, x.Applies, x.Why, applies, why)
			}
		}
	}
	r := request("GET /a/7", "ip", "192.0.2.1", "header X-Role", "user")
	f(r, "path", false, "the path does not match /api/ or /v2/")
	f(r, "method", false, "the method is not POST or PUT")
	f(r, "host", false, "the host is not shop.example.com")
	f(r, "when", false, `when role: "user" is not "admin" or *-ops`)
	f(r, "network", false, `when ip: "192.0.2.1" is not in partners`)
	f(r, "unless", false, `unless role: "user" is "user" and ip: "192.0.2.1" is 192.0.2.0/24`)
	f(r, "nobody", false, "unless user: it is missing")
	f(r, "replaced", false, "better applies instead of it")
	f(r, "better", true, "")
	f(r, "off", false, "it is disabled")
	f(r, "skip", false, "user is missing, and the rule skips requests without it")
	f(r, "refuse", true, "key is missing, and the rule refuses requests without it")
	f(r, "u1", false, `when user: it is missing, not "u1"`)
	f(r, "u5", false, `when user: it is missing, not "u5"`)
	r = request("GET /", "header X-User", "globex", "header X-Role", "admin")
	f(r, "when", false, `when user: "globex" is not "acme"`)
	f(r, "u3", false, `when user: "globex" is not "u3"`)
	f(r, "u5", false, "the path does not match /a/")
	f(request("GET /healthz"), "better", false, "exempt by rules.yaml:5:10")
	f(request("GET /healthz"), "when", false, `when role: it is missing, not "admin" or *-ops`)
}

// A header that is sent and not believed would look as if it had not been sent.
func TestExplainDisbelievedHeader(t *testing.T) {
	set := parse(t, `
identify: { user: header X-User }
rules: [{ name: api, per: user, limits: 1/minute }]
`, Config{})
	f := func(r *tidegate.Request, want string) {
		t.Helper()
		if got := set.Explain(r).Identities[0]; got.Name != "user" || got.Note != want {
			t.Errorf("got %+v, want the note %q", got, want)
		}
	}
	f(request("GET /"), "")
	f(request("GET /", "client header X-User", "acme"), "there is a header X-User, which is believed only from a trusted peer")
	f(request("GET /", "header X-User", "acme", "client header X-User", "acme"), "")
}

// The whole of it, as the command prints it.
func TestExplainJSON(t *testing.T) {
	set := parse(t, `
identify: { user: [header X-User, client header X-Api-Key], tenant: jwt.tenant }
exempt: [{ match: /healthz }]
rules:
  - name: api
    match: /api/
    per: [user, route]
    limits: [100/minute, { rate: 10/second, burst: 20, algorithm: token_bucket }]
    cost: { reserve: body.size, else: 3, max: 50 }
    queue: { places: 5, max_wait: 2s }
    over: { soft: 10% }
    block: 1m
    for: [{ when: { user: acme }, quota: 1000/month, reason: "ticket 4711" }]
  - { name: feed, match: /api/, per: everyone, limits: 300/minute, over: { elastic: { while: cpu < 80%, up_to: 2x } } }
  - { name: idea, match: GET /api/beta, per: ip, limits: 5/minute, mode: shadow }
  - { name: quarter, per: ip, limits: 5/minute, enforce: 2.5% }
`, Config{Signals: signals{"cpu": 0.9}})
	r := request("GET Example.com:8080//api/beta/", "ip", "192.0.2.1", "client header X-Api-Key", "acme",
		"client header Authorization", "Bearer "+token(secret, `{"tenant":"x"}`))
	got, err := json.MarshalIndent(set.Explain(r), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/explain.json"
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("got\n%s\nwant (-update writes it)\n%s", got, want)
	}
}

// A limit that gives way for a while is explained with the time.
func TestExplainMaxOver(t *testing.T) {
	set := parse(t, "rules:\n  - { name: api, per: everyone, limits: 60/minute, over: { soft: 10%, max_time: 90s } }\n", Config{})
	checks := set.Explain(request("GET /")).Rules[0].Checks
	if len(checks) != 2 || checks[0].MaxOver != "1m30s" || checks[0].Role != "decides" || checks[1].MaxOver != "" {
		t.Errorf("%+v", checks)
	}
}

// agree wants Explain to list the checks that Match returns, and a reason for
// every rule that has none. It is what fuzzing and the other tests hold it to.
func agree(t *testing.T, set *Set, r *tidegate.Request) {
	t.Helper()
	checks := set.Match(r, nil)
	e := set.Explain(r)
	var listed []tidegate.Check
	for _, x := range e.Rules {
		for _, c := range x.Checks {
			listed = append(listed, c.Check)
		}
		if !x.Applies && (x.Why == "" || len(x.Checks) > 0) {
			t.Errorf("%s %s: %s does not apply, with %d checks, because %q", r.Method, r.Path, x.Name, len(x.Checks), x.Why)
		}
	}
	if len(listed) != len(checks) {
		t.Fatalf("%s %s is held to\n%sexplained as\n%s", r.Method, r.Path, show(checks), show(listed))
	}
	for i := range checks {
		if checks[i] != listed[i] {
			t.Errorf("%s %s is held to\n%sexplained as\n%s", r.Method, r.Path, show(checks[i:i+1]), show(listed[i:i+1]))
		}
	}
}

func TestExplainAgreesWithMatch(t *testing.T) {
	set := parse(t, wideRules, Config{Signals: signals{}})
	for _, method := range []string{"GET", "POST", ""} {
		for _, path := range []string{"/", "/healthz", "/api/orders/4711", "/api", "/api//orders/../orders/1/", "*"} {
			for _, who := range []string{"", "header X-User=u", "header X-User=user-123456789 header X-Plan=free-1", "ip=198.51.100.3", "ip=192.0.2.3 header X-Rpm=0"} {
				agree(t, set, requestOf(method, path, who))
			}
		}
	}
}

// requestOf reads "header X-User=u ip=192.0.2.1".
func requestOf(method, path, who string) *tidegate.Request {
	v := values{}
	words := strings.Split(who, " ")
	for i := 0; i < len(words); i++ {
		name, value, ok := strings.Cut(words[i], "=")
		for !ok && i+1 < len(words) {
			i++
			var more string
			more, value, ok = strings.Cut(words[i], "=")
			name += " " + more
		}
		if ok {
			v[name] = value
		}
	}
	return &tidegate.Request{Method: method, Path: path, Values: v}
}
