package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/lang/apikey"
)

// keyFile is a file of keys: a name and a plan for each, which is also "key-NAME".
func keyFile(pairs ...string) string {
	text := "sha256,name,created,plan,rpm\n"
	for i := 0; i < len(pairs); i += 2 {
		text += apikey.Sum("key-"+pairs[i]) + "," + pairs[i] + ",," + pairs[i+1] + ",50\n"
	}
	return text
}

// knowing trusts the keys of text, found in from.
func knowing(from, text string) Config {
	return Config{
		Trust: Trust{APIKeys: &APIKeys{From: from, File: "keys.csv"}},
		ReadFile: func(name string) ([]byte, error) {
			if name != "keys.csv" {
				return nil, fs.ErrNotExist
			}
			return []byte(text), nil
		},
	}
}

const keyRules = `
identify: { customer: api_key, plan: api_key.plan }
rules:
  - { name: api, per: customer, limits: 10/minute, for: [{ when: { plan: pro }, limits: 50/minute }] }
`

// Only a key that the file has says who is asking, and what they may, wherever it is sent.
func TestTrapUnknownAPIKey(t *testing.T) {
	const stranger = "api: 10/1m0s sliding_log per ip 192.0.2.1"
	for from, at := range map[string]string{
		"": "client header X-Api-Key", "client header X-Key": "client header X-Key", "header X-Key": "header X-Key",
		"query key": "query key", "cookie key": "cookie key", "basic.user": "basic.user", "bearer": "client header Authorization",
	} {
		set := parse(t, keyRules, knowing(from, keyFile("acme", "pro", "beta", "free", "odd", "")))
		f := func(key, want string) {
			t.Helper()
			if from == "bearer" {
				key = "Bearer " + key
			}
			heldTo(t, set)(request("GET /", "ip", "192.0.2.1", at, key), want)
		}
		f("key-acme", "api: 50/1m0s sliding_log per customer acme")
		f("key-beta", "api: 10/1m0s sliding_log per customer beta")
		f("key-odd", "api: 10/1m0s sliding_log per customer odd")
		for _, key := range []string{"", "acme", "key-none", "KEY-acme", "key-acme ", apikey.Sum("key-acme"), strings.Repeat("k", 100_000)} {
			f(key, stranger)
		}
		// What it asks for elsewhere counts for nothing.
		heldTo(t, set)(request("GET /", "ip", "192.0.2.1", "client header X-Other", "key-acme", "customer", "acme", "api_key", "acme", "plan", "pro"), stranger)
		got := rejected(set)
		if want := "api_key unknown 5, api_key too_long 1"; got != want {
			t.Errorf("%s: rejected %s, want %s", from, got, want)
		}
	}
}

// rejected is what was counted, but for what was not.
func rejected(set *Set) string {
	var all []string
	for _, r := range set.Rejected() {
		if r.Requests > 0 {
			all = append(all, fmt.Sprintf("%s %s %d", r.Kind, r.Reason, r.Requests))
		}
	}
	return strings.Join(all, ", ")
}

// A key is revoked, and another plan takes effect, from the next request on: in the Set that is
// in force, and in all that were loaded with the same trust.
func TestAPIKeysAreSwapped(t *testing.T) {
	c := knowing("", keyFile("acme", "pro", "beta", "pro"))
	set := parse(t, keyRules, c)
	again := parse(t, keyRules, c)
	held := func(name, want string) {
		t.Helper()
		for _, s := range []*Set{set, again} {
			heldTo(t, s)(request("GET /", "ip", "192.0.2.1", "client header X-Api-Key", "key-"+name), want)
		}
	}
	held("acme", "api: 50/1m0s sliding_log per customer acme")
	swap := func(text string) KeyChange {
		t.Helper()
		table, err := c.Trust.APIKeys.Read(func(string) ([]byte, error) { return []byte(text), nil })
		if err != nil {
			t.Fatal(err)
		}
		return c.Trust.APIKeys.Swap(table)
	}
	change := swap(keyFile("beta", "free", "gamma", "pro"))
	if got, want := fmt.Sprint(change), "{[gamma] [acme] [beta: plan free, was pro]}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	held("acme", "api: 10/1m0s sliding_log per ip 192.0.2.1")
	held("beta", "api: 10/1m0s sliding_log per customer beta")
	held("gamma", "api: 50/1m0s sliding_log per customer gamma")

	// What is wrong leaves the keys in force as they are.
	for _, text := range []string{"", "x", "sha256,name\nx,y\n"} {
		_, err := c.Trust.APIKeys.Read(func(string) ([]byte, error) { return []byte(text), nil })
		var bad *LoadError
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "load API keys keys.csv:\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
	held("gamma", "api: 50/1m0s sliding_log per customer gamma")
	if c.Trust.APIKeys.Len() != 2 {
		t.Errorf("%d keys", c.Trust.APIKeys.Len())
	}
}

// Numbers may come from a key as they come from a token.
func TestNumberOfAPIKey(t *testing.T) {
	set := parse(t, `
identify: { customer: api_key }
rules:
  - { name: api, per: customer, limits: { from: api_key.rpm, per: minute, max: 10000, else: 7 } }
`, knowing("", keyFile("acme", "pro")))
	heldTo(t, set)(request("GET /", "ip", "192.0.2.1", "client header X-Api-Key", "key-acme"), "api: 50/1m0s sub_windows per customer acme")
	heldTo(t, set)(request("GET /", "ip", "192.0.2.1", "client header X-Api-Key", "key-x"), "api: 7/1m0s sub_windows per ip 192.0.2.1")
	heldTo(t, set)(as("GET /", "ip", "192.0.2.1", "customer", "acme", "api_key.rpm", "9"), "api: 9/1m0s sub_windows per customer acme")
}

// Without a file, a key is never there, and loading says so; so does it for a column that is not there.
func TestAPIKeysWithoutAFile(t *testing.T) {
	set := parse(t, keyRules, Config{})
	heldTo(t, set)(request("GET /", "ip", "192.0.2.1", "client header X-Api-Key", "key-acme"), "api: 10/1m0s sliding_log per ip 192.0.2.1")
	for _, want := range []string{"rules.yaml:3:23: warning: `customer` is read from API keys, and no file of keys is configured", "set trust.api_keys"} {
		if got := set.Warnings().Error(); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	set = parse(t, keyRules, knowing("", "sha256,name,region\n"+apikey.Sum("key-acme")+",acme,eu\n"))
	if got := set.Warnings().Error(); !strings.Contains(got, "`plan` is read from API keys, and keys.csv has no column `plan`") || !strings.Contains(got, "its attributes are `region`") {
		t.Errorf("warnings:\n%s", got)
	}
	if got := parse(t, keyRules, knowing("", keyFile("acme", "pro"))).Warnings(); len(got) > 0 {
		t.Errorf("warnings: %v", got)
	}
	for text, want := range map[string]string{
		"sha256,name\nx,y\n": "keys.csv:2:1: error: this is not a SHA-256",
		"":                   "keys.csv: error: the file is empty",
	} {
		if _, err := Parse("rules.yaml", []byte("version: 1\n"+keyRules), knowing("", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	c := knowing("", "")
	c.ReadFile = func(string) ([]byte, error) { return nil, fs.ErrNotExist }
	if _, err := Parse("rules.yaml", []byte("version: 1\n"+keyRules), c); err == nil || !strings.Contains(err.Error(), "keys.csv: error: the API keys cannot be read") {
		t.Errorf("%v", err)
	}
	if _, err := Parse("rules.yaml", []byte("version: 1\n"+keyRules), knowing("X-Api-Key", keyFile())); err == nil || !strings.Contains(err.Error(), "`X-Api-Key` is not a place where API keys are") {
		t.Errorf("%v", err)
	}
	if _, err := Parse("rules.yaml", []byte("version: 1\nidentify: { hash: api_key.sha256 }\nrules: [{ name: a, per: hash, limits: 1/hour }]"), Config{}); err == nil || !strings.Contains(err.Error(), "not an attribute") {
		t.Errorf("%v", err)
	}
}

func TestExplainAPIKey(t *testing.T) {
	set := parse(t, keyRules, knowing("", keyFile("acme", "pro", "odd", "")))
	f := func(set *Set, key, want string) {
		t.Helper()
		var got []string
		for _, id := range set.Explain(request("GET /", "client header X-Api-Key", key)).Identities {
			if id.Name == "customer" || id.Name == "plan" {
				got = append(got, strings.TrimSpace(id.Value+" "+id.Note))
			}
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%q: got %q, want %q", key, text, want)
		}
	}
	f(set, "key-acme", "acme; pro")
	f(set, "key-odd", "odd; the API key `odd` has no plan")
	const unknown = "there is an API key, and it is not in the file: it was revoked, or never made"
	f(set, "key-none", unknown+"; "+unknown)
	f(set, "", "; ")
	f(parse(t, keyRules, Config{}), "key-acme", "no file of API keys is configured; no file of API keys is configured")
	if got := rejected(set); got != "" {
		t.Errorf("explaining counts: %s", got)
	}
	for _, m := range set.MissingIdentities() {
		if m.Requests != 0 {
			t.Errorf("explaining counts: %+v", m)
		}
	}
}

// A key may be sent where tokens are. Neither is taken for a bad one of the other kind.
func TestKeysAndTokensAsBearer(t *testing.T) {
	c := trusting(nil)
	c.Trust.APIKeys = &APIKeys{From: "bearer", File: "keys.csv"}
	read := c.ReadFile
	c.ReadFile = func(name string) ([]byte, error) {
		if name == "keys.csv" {
			return []byte(keyFile("acme", "pro")), nil
		}
		return read(name)
	}
	set := parse(t, "identify: { who: [jwt.sub, api_key] }\nrules: [{ name: api, per: who, limits: 10/minute }]", c)
	f := func(bearer, want string) {
		t.Helper()
		heldTo(t, set)(request("GET /", "ip", "192.0.2.1", "client header Authorization", "Bearer "+bearer), "api: 10/1m0s sliding_log per "+want)
	}
	f("key-acme", "who/api_key acme")
	f(token(secret, `{"iss":"https://id.example.com","sub":"42"}`), "who/jwt.sub 42")
	if got := rejected(set); got != "" {
		t.Errorf("rejected %s", got)
	}
	f("nonsense", "ip 192.0.2.1")
	if got, want := rejected(set), "token malformed 1, api_key unknown 1"; got != want {
		t.Errorf("rejected %s, want %s", got, want)
	}
}

// Identities that are missing are counted by name, over reloads.
func TestMissingIdentities(t *testing.T) {
	const src = `
identify: { customer: api_key, who: [client header X-Who, api_key], order: "path {id}", unused: jwt.sub }
rules:
  - { name: api, match: ["/a/{id}", /b], per: [customer, order], limits: 10/minute }
  - { name: who, match: /a/, per: who, limits: 10/minute, unless: { customer: vip } }
`
	c := knowing("", keyFile("acme", "pro"))
	live := NewLive(parse(t, src, c))
	ask := func(n int, pairs ...string) {
		for range n {
			live.Match(request("GET /a/4711", append(pairs, "ip", "192.0.2.1")...), nil)
		}
	}
	wants := func(customer, who int64) {
		t.Helper()
		want := []MissingIdentity{{"customer", "api_key", customer}, {"ip", "ip", 0}, {"unused", "jwt.sub", 0}, {"who", "client header X-Who, api_key", who}}
		if got := live.Set().MissingIdentities(); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	ask(3)
	ask(2, "client header X-Who", "me")
	ask(4, "client header X-Api-Key", "key-acme")
	ask(1, "client header X-Api-Key", "key-none")
	wants(6, 4)
	live.Swap(parse(t, src, c))
	wants(6, 4)
	ask(1)
	wants(7, 5)
	old := live.Swap(parse(t, keyRules, c))
	live.Swap(old)
	wants(7, 5)
	if got, want := rejected(live.Set()), "api_key unknown 1"; got != want {
		t.Errorf("rejected %s, want %s", got, want)
	}
}

// Tokens that do not hold are counted by why.
func TestRejectedTokens(t *testing.T) {
	set := parse(t, "identify: { user: jwt.sub, role: jwt.role }\nrules: [{ name: api, per: user, limits: 10/minute, unless: { role: admin } }]", trusting(nil))
	f := func(token, want string) {
		t.Helper()
		before := set.Rejected()
		set.Match(request("GET /", "ip", "192.0.2.1", "client header Authorization", "Bearer "+token), nil)
		var got []string
		for i, r := range set.Rejected() {
			if n := r.Requests - before[i].Requests; n != 0 {
				got = append(got, fmt.Sprintf("%s %s %d", r.Kind, r.Reason, n))
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%.60s: %s, want %s", token, text, want)
		}
	}
	for range 2 { // also when it is remembered
		f(token(secret, `{"iss":"https://id.example.com","sub":"42"}`), "")
		f(token(secret, `{"iss":"https://id.example.com","sub":"42","exp":1700000000}`), "token expired 1")
		f(token(secret, `{"iss":"https://id.example.com","sub":"42","nbf":99999999999}`), "token not_yet_valid 1")
		f(token(secret, `{"iss":"https://evil.example.com","sub":"42"}`), "token wrong_issuer 1")
		f(token("another secret that is as long as it must be", `{"iss":"https://id.example.com"}`), "token bad_signature 1")
		f(token(secret, `{"iss":"https://id.example.com","exp":"soon"}`), "token invalid 1")
		f(token(secret, `[]`), "token malformed 1")
		f("a.b", "token malformed 1")
		f(strings.Repeat("a", 20_000), "token too_long 1")
	}
}

// What happens to those whose key is gone is told, rule by rule.
func TestWithoutAPIKey(t *testing.T) {
	set := parse(t, `
identify: { customer: api_key, plan: api_key.plan, either: [api_key, client header X-Who] }
exempt: [{ when: { plan: internal } }]
rules:
  - { name: api, match: /a, per: customer, limits: 10/minute, for: [{ when: { plan: pro }, limits: 50/minute }] }
  - { name: partners, match: /b, per: customer, missing: refuse, limits: 10/minute }
  - { name: extra, match: /c, per: [customer, route], missing: skip, limits: 10/minute }
  - { name: both, match: /d, per: either, limits: 10/minute }
  - { name: paid, match: /e, unless: { plan: [pro, team] }, deny: true }
  - { name: other, match: /f, per: ip, limits: 10/minute }
  - { name: off, match: /g, per: customer, limits: 10/minute, mode: disabled }
`, knowing("", keyFile("acme", "pro")))
	want := []string{
		"the exemption at rules.yaml:4:10 takes them for requests without plan",
		"rule api counts them by address, and takes them for requests without plan",
		"rule partners refuses them with 400",
		"rule extra does not apply to them",
		"rule both counts them by another source of either, if they have one",
		"rule paid takes them for requests without plan",
	}
	if got := set.WithoutAPIKey(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The gateway holds back trailers by the names of headers that rules read.
func TestReadsHeaderOfAPIKeys(t *testing.T) {
	for from, want := range map[string]string{"": "X-Api-Key", "client header x-key": "X-Key", "bearer": "Authorization", "cookie k": "Cookie"} {
		if set := parse(t, keyRules, knowing(from, keyFile())); !set.ReadsHeader(want) {
			t.Errorf("%q: %s is not read", from, want)
		}
	}
}

// keyed is a front end that allocates nothing.
type keyed struct{}

func (keyed) Value(name string) (string, bool) {
	switch name {
	case "ip", "addr":
		return "203.0.113.7", true
	case "client header X-Api-Key":
		return "key-acme", true
	}
	return "", false
}

func TestAllocAPIKey(t *testing.T) {
	live := NewLive(parse(t, keyRules, knowing("", keyFile("acme", "pro"))))
	r := new(tidegate.Request)
	v := keyed{}
	dst := make([]tidegate.Check, 0, 8)
	match := func() {
		r.Reset()
		r.Method, r.Host, r.Path, r.Values = "GET", "shop.example.com", "/api/", v
		dst = live.Match(r, dst[:0])
	}
	match()
	if got := show(dst); got != "api: 50/1m0s sliding_log per customer acme\n" {
		t.Fatal(got)
	}
	testdep.SkipUnderRace(t)
	if n := testing.AllocsPerRun(1000, match); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
