package rules

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"tidegate.dev/tidegate/httplimit"
)

// Callers are known by what they bring along wherever they ask, and by their address without it.
func TestWho(t *testing.T) {
	live := NewLive(parse(t, `
identify:
  user: client header X-User
  session: cookie session
  plan: client header X-Plan
  model: query model
rules:
  - { name: a, per: user, limits: 5/minute, when: { plan: free } }
  - { name: b, per: [session, model], limits: 5/minute }
  - { name: c, per: everyone, limits: 5/minute }
`, Config{}))
	f := func(want string, headers ...string) {
		t.Helper()
		r := httptest.NewRequest("GET", "/?model=large", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		if got := fmt.Sprint(live.Who(httplimit.Options{}.Request(r))); got != want {
			t.Errorf("%v: %s, want %s", headers, got, want)
		}
	}
	f("map[ip:192.0.2.1]")
	f("map[ip:192.0.2.1]", "X-Plan", "free") // which nobody is counted by
	f("map[user:ann]", "X-User", "ann")
	f("map[session:s1 user:ann]", "X-User", "ann", "Cookie", "session=s1")
}

// Asking who sends a request counts nothing: its credentials are counted when it is matched, once, also
// if a measure has looked at them first.
func TestWhoCountsNoRejectedCredentials(t *testing.T) {
	for _, measured := range []bool{false, true} {
		c := trusting(nil)
		c.Trust.APIKeys = &APIKeys{File: "keys.csv"}
		c.ReadFile = func(name string) ([]byte, error) {
			if name == "keys.csv" {
				return []byte(keyFile("acme", "pro")), nil
			}
			return []byte(secret), nil
		}
		live := NewLive(parse(t, `
identify: { user: jwt.sub, customer: api_key }
rules: [{ name: a, per: user, limits: 5/minute }, { name: b, per: customer, limits: 5/minute }]
`, c))
		if measured {
			live.SetMeasures([]Measure{ban("b-1", "user=eve", ""), ban("b-2", "customer=evil", "")})
		}
		r := request("GET /", "ip", "192.0.2.1", "client header Authorization", "Bearer a.b", "client header X-Api-Key", "unknown")
		count := func() (n int64) {
			for _, is := range live.Set().Rejected() {
				n += is.Requests
			}
			return n
		}
		for range 2 {
			if got := fmt.Sprint(live.Who(r)); got != "map[ip:192.0.2.1]" || count() != 0 {
				t.Errorf("measured %v: %s, and %d credentials are counted as rejected", measured, got, count())
			}
		}
		live.Match(r, nil)
		if n := count(); n != 2 {
			t.Errorf("measured %v: a request with two bad credentials counts %d", measured, n)
		}
	}
}
