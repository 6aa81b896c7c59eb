package rules

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
)

// sendAccount makes login requests with an account: as JSON, as a form, in parts, by a
// header and named by whoever asks.
func sendAccount(account string) []*tidegate.Request {
	var parts bytes.Buffer
	w := multipart.NewWriter(&parts)
	_ = w.WriteField("email", account)
	_ = w.Close()
	var all []*tidegate.Request
	for kind, body := range map[string]string{
		"application/json":                  `{"email":` + strconv.QuoteToASCII(account) + `}`,
		"application/x-www-form-urlencoded": url.Values{"email": {account}}.Encode(),
		w.FormDataContentType():             parts.String(),
	} {
		r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		all = append(all, httplimit.Options{}.Request(r))
	}
	return append(all, as("POST /login", "account", account))
}

// An account has one counter, however it is spelled and sent.
func TestOneCounterForAnAccount(t *testing.T) {
	set := parse(t, `
identify: { account: lower trim body.email }
rules: [{ name: login, match: POST /login, per: account, limits: 5/15m }]
`, Config{})
	for _, account := range []string{"ANN", "Ann ", "ann", " aNn\t", "\u00a0ann\u2003"} {
		for i, r := range sendAccount(account) {
			if got := show(set.Match(r, nil)); got != "login: 5/15m0s sliding_log per account ann\n" {
				t.Errorf("%q, way %d: held to %s", account, i, got)
			}
		}
	}
}

// The order of the words does not matter, nor do they where the place is the same.
func TestSpellingsOfSources(t *testing.T) {
	set := parse(t, `
identify:
  a: lower trim body.email
  b: trim   lower body.email
  c: [trim lower body.email, client header X-User]
  d: body.email
  e: lower path {name}
rules:
  - { name: a, match: "/{name}", per: a, limits: 5/15m }
  - { name: b, match: "/{name}", per: b, limits: 5/15m }
  - { name: c, match: "/{name}", per: c, limits: 5/15m }
  - { name: d, match: "/{name}", per: d, limits: 5/15m }
  - { name: e, match: "/{name}", per: e, limits: 5/15m }
`, Config{})
	heldTo(t, set)(request("POST /Bob", "body.email", " ANN "),
		"a: 5/15m0s sliding_log per a ann", "b: 5/15m0s sliding_log per b ann",
		"c: 5/15m0s sliding_log per c/lower trim body.email ann", "d: 5/15m0s sliding_log per d  ANN ",
		"e: 5/15m0s sliding_log per e bob")
	// Nothing but space is nobody.
	heldTo(t, set)(request("POST /Bob", "body.email", " \t", "client header X-User", " U ", "ip", "192.0.2.1"),
		"a: 5/15m0s sliding_log per ip 192.0.2.1", "b: 5/15m0s sliding_log per ip 192.0.2.1",
		"c: 5/15m0s sliding_log per c/client header X-User  U ", "d: 5/15m0s sliding_log per d  \t",
		"e: 5/15m0s sliding_log per e bob")
}

// What conditions name is spelled in the same way: a banned account is not let in as ANN,
// and not missed because the list has it as Ann.
func TestConditionsOnSpelledValues(t *testing.T) {
	set := parse(t, `
identify:
  account: lower trim body.email
  mixed: [lower body.name, query name]
lists: { banned: [Eve, "*@Spam.example"] }
rules:
  - { name: no, when: { account: in banned }, deny: true }
  - { name: vip, when: { account: [ANN, "B*"] }, per: account, limits: 9/minute }
  - { name: mixed, when: { mixed: Zoe }, per: mixed, limits: 7/minute }
`+many(), Config{})
	f := heldTo(t, set)
	for _, eve := range []string{"eve", "EVE ", "a@spam.EXAMPLE"} {
		f(request("GET /", "body.email", eve), "no: deny @")
	}
	f(request("GET /", "body.email", " Ann"), "vip: 9/1m0s sliding_log per account ann")
	f(request("GET /", "body.email", "BOB"), "vip: 9/1m0s sliding_log per account bob")
	f(request("GET /", "body.name", "ZOE"), "mixed: 7/1m0s sliding_log per mixed/lower body.name zoe")
	f(request("GET /", "query name", "Zoe"), "mixed: 7/1m0s sliding_log per mixed/query name Zoe")
	f(request("GET /", "query name", "ZOE"))
	f(request("GET /", "body.email", "USER7"), "r7: 3/1m0s sliding_log per account user7") // by its index
}

// many are rules that are found by the value that they wait for.
func many() string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "  - { name: r%d, when: { account: User%d }, per: account, limits: 3/minute }\n", i, i)
	}
	return b.String()
}
