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
