package rules

import (
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// A header that is left out must not be a way around the limit.
func TestTrapHeaderLeftOut(t *testing.T) {
	d := newDesk(t, `
identify: { key: client header X-Api-Key }
rules: [{ name: api, per: key, limits: 3/minute }]
`)
	d.passes(3, request("GET /", "ip", "192.0.2.1", "client header X-Api-Key", "k"))
	d.passes(3, request("GET /", "ip", "192.0.2.1"))
	d.refuses(request("GET /", "ip", "192.0.2.1", "client header X-Api-Key", ""))
	d.passes(3, request("GET /", "ip", "192.0.2.2"))
	// Nor is sending somebody's address as the key.
	d.passes(3, request("GET /", "ip", "192.0.2.3", "client header X-Api-Key", "192.0.2.1"))
	d.passes(3, request("GET /", "client header X-Api-Key", "@"))
	d.passes(3, request("GET /"))
}

// One customer with a whole /64 is one customer.
func TestTrapIPv6(t *testing.T) {
	d := newDesk(t, "rules: [{ name: api, per: ip, limits: 3/minute }]")
	for i := range 3 {
		// A front end that only knows the address, and one that knows networks.
		d.admits(1, request("GET /", "addr", fmt.Sprintf("2001:db8:1:2::%x", i)))
	}
	d.refuses(request("GET /", "ip", "2001:db8:1:2::/64"))
	d.refuses(as("GET /", "ip", "2001:db8:1:2:ffff::1"))
	d.passes(3, request("GET /", "ip", "2001:db8:1:3::/64"))
}

// A reload keeps what was used; its numbers take effect at once.
func TestTrapReloadKeepsCounters(t *testing.T) {
	const head = "identify: { user: jwt.sub }\nrules:\n"
	d := newDesk(t, head+"  - { name: api, match: /api/, per: user, limits: 10/minute }\n")
	r := as("GET /api/", "user", "42")
	d.passes(10, r)
	d.reload(head + "  - { name: api, match: /api/, per: user, limits: 10/minute }\n")
	d.refuses(r)
	// Raised: what is above what was used is there at once.
	d.reload(head + "  - { name: api, match: [/api/, /v2/], per: user, limits: 15/minute, over: hard }\n")
	d.passes(5, r)
	// Lowered.
	d.reload(head + "  - { name: api, match: /api/, per: user, limits: 12/minute, mode: enforce }\n")
	d.refuses(r)
	// Rules around it, and another order, change nothing.
	d.reload(head + "  - { name: other, per: user, limits: 99/minute }\n  - { name: api, match: /api/, per: user, limits: 15/minute }\n")
	d.refuses(r)
	// Taken out, and back.
	d.reload(head + "  - { name: other, per: user, limits: 99/minute }\n")
	d.admits(1, r)
	d.reload(head + "  - { name: api, match: /api/, per: user, limits: 15/minute }\n")
	d.refuses(r)
	d.wait(time.Minute)
	d.passes(15, r)
}

// What was counted is still known when a soft limit becomes a hard one.
func TestTrapSoftKeepsCounters(t *testing.T) {
	d := newDesk(t, "rules: [{ name: api, per: ip, limits: 10/minute, over: { soft: 50% } }]")
	r := request("GET /", "ip", "192.0.2.1")
	for i := range 15 {
		if a := d.ask(r); !a.OK || a.Soft != (i >= 10) {
			t.Fatalf("number %d: %+v", i+1, a)
		}
	}
	d.refuses(r)
	d.reload("rules: [{ name: api, per: ip, limits: 15/minute }]")
	d.refuses(r)
}

// Nothing of the file but the name of a rule, who it counts and over what time
// is part of its counters: not its place, not how often it was loaded.
func TestTrapNoVersionInTheKey(t *testing.T) {
	a := parse(t, "identify: { user: jwt.sub }\nrules: [{ name: api, match: /api/, per: user, limits: [5/minute, 100/hour], quota: 9/day, concurrency: { slots: 3, lease: 1m } }]", Config{})
	b := parse(t, `
identify: { role: jwt.role, user: jwt.sub }
lists: { x: [y] }
exempt: [{ match: /healthz }]
rules:
  - { name: first, match: /, per: ip, limits: 1/second }
  - name: api
    match: [/api/, /v2/]
    when: { role: absent }
    per: user
    limits: [50/minute, 60/hour]
    quota: 4/day
    concurrency: { slots: 8, lease: 1m }
    on_store_failure: deny
    for: [{ when: { role: x }, limits: unlimited }]
`, Config{})
	r := as("GET /api/", "user", "42")
	one, two := a.Match(r, nil), b.Match(r, nil)[1:]
	if len(one) != 4 || len(two) != 4 {
		t.Fatalf("%s and %s", show(one), show(two))
	}
	for i := range one {
		x, y := one[i], two[i]
		if x.Key != y.Key || x.Limit.Identity() != y.Limit.Identity() {
			t.Errorf("%s %q is not %s %q", x.Limit.Identity(), x.Key, y.Limit.Identity(), y.Key)
		}
	}
}

// A shadow rule and a candidate must not touch those in force.
func TestTrapTriesNeverDecide(t *testing.T) {
	d := newDesk(t, `
rules:
  - { name: api, per: ip, limits: 10/minute, candidate: 2/minute }
  - { name: idea, per: ip, limits: 1/minute, mode: shadow }
  - { name: no, deny: true, mode: shadow }
`)
	var over map[string]int
	d.gate = d.gate.Observe(func(_ *tidegate.Request, checks []tidegate.Check, _ tidegate.Decision) {
		over = make(map[string]int)
		for _, c := range checks {
			if c.Over {
				over[c.Limit.Terms.Rule]++
			}
		}
	})
	r := request("GET /", "ip", "192.0.2.1")
	d.admits(1, r)
	if fmt.Sprint(over) != "map[no:1]" {
		t.Errorf("over after one: %v", over)
	}
	d.passes(9, r)
	d.wait(time.Minute)
	d.admits(3, r)
	if fmt.Sprint(over) != "map[api:1 idea:1 no:1]" {
		t.Errorf("over after three: %v", over)
	}
}
