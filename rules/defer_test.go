package rules

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// All limits that decide say how what they refuse is kept, and explain tells it.
func TestDefer(t *testing.T) {
	set := parse(t, `
rules:
  - name: orders
    match: POST /orders
    per: ip
    limits: [5/minute, 100/hour]
    concurrency: { slots: 3, lease: 30s }
    over: { soft: 10% }
    candidate: 1/minute
    defer: { keep: 2h, places: 500, max_body: 2KB }
  - { name: bulk, match: POST /bulk, per: everyone, limits: 5/minute, defer: { to: stream bulk, max_body: 1KiB } }
  - { name: all, match: PUT /all, per: everyone, limits: 5/minute, defer: { keep: 1m, places: 70 } }
  - { name: plain, match: GET /plain, per: ip, limits: 5/minute }
`, Config{})
	f := func(method, path, told string, want *tidegate.Defer) {
		t.Helper()
		r := &tidegate.Request{Method: method, Path: path}
		decides := 0
		for _, c := range set.Match(r, nil) {
			got := c.Limit.Terms.Handling.Defer
			if c.Limit.Terms.Role != tidegate.Decides {
				if got != nil {
					t.Errorf("%s: a limit that does not decide has %+v", path, got)
				}
				continue
			}
			decides++
			if (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Errorf("%s: %+v, want %+v", path, got, want)
			}
		}
		if decides == 0 {
			t.Errorf("%s: nothing decides", path)
		}
		for _, x := range set.Explain(r).Rules {
			if x.Applies && x.Defer != told {
				t.Errorf("%s: %q, want %q", path, x.Defer, told)
			}
		}
	}
	f("POST", "/orders", "kept for 2h0m0s at most, 500 of them and 50 of a key, with bodies up to 2000 bytes", &tidegate.Defer{Keep: 2 * time.Hour, Places: 500, PerKey: 50, MaxBody: 2000})
	f("POST", "/bulk", "appended to the stream bulk, with bodies up to 1024 bytes", &tidegate.Defer{MaxBody: 1024, Stream: "bulk"})
	f("PUT", "/all", "kept for 1m0s at most, 70 of them and 70 of a key, with bodies up to 1048576 bytes", &tidegate.Defer{Keep: time.Minute, Places: 70, PerKey: 70, MaxBody: 1 << 20})
	f("GET", "/plain", "", nil)
}
