package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

const classRules = `
identify: { plan: jwt.plan, role: jwt.role }
classes:
  - { name: critical, match: [POST /charges, "PUT /charges/{id}"] }
  - { name: paying, when: { plan: [pro, max] }, unless: { role: robot } }
  - { name: rest }
exempt: [{ match: /healthz }]
rules:
  - { name: site, per: everyone, limits: 1000/minute, set_aside: { critical: 20%, paying: 10% } }
`

// floors are what the checks of a request leave.
func floors(checks []tidegate.Check) string {
	var all []string
	for _, c := range checks {
		all = append(all, fmt.Sprintf("%d of %d", c.Floor, c.Limit.Capacity()))
	}
	return strings.Join(all, ", ")
}

// A request is of the first class whose conditions hold, and leaves what is set aside for those above.
func TestClasses(t *testing.T) {
	set := parse(t, classRules, Config{})
	f := func(r *tidegate.Request, class, want string) {
		t.Helper()
		if got := set.Explain(r).Class; got != class {
			t.Errorf("%s %s %v is of the class %q, want %q", r.Method, r.Path, r.Values, got, class)
		}
		if got := floors(set.Match(r, nil)); got != want {
			t.Errorf("%s %s %v leaves %s, want %s", r.Method, r.Path, r.Values, got, want)
		}
	}
	f(as("POST /charges"), "critical", "0 of 1000")
	f(as("POST /charges", "plan", "pro"), "critical", "0 of 1000")
	f(as("PUT /charges/7"), "critical", "0 of 1000")
	f(as("GET /charges"), "rest", "300 of 1000")
	f(as("GET /charges", "plan", "max"), "paying", "200 of 1000")
	f(as("GET /", "plan", "pro", "role", "robot"), "rest", "300 of 1000")
	f(as("GET /", "plan", "free"), "rest", "300 of 1000")
	f(as("GET /healthz"), "rest", "")
	// What servers may read in several ways is as little important as in any of them.
	encoded := as("PUT /charges/7")
	encoded.RawPath = "/charges%2f7"
	f(encoded, "rest", "300 of 1000")
	if got := set.Explain(as("GET /")).Rules[0].Checks[0].Leaves; got != 300 {
		t.Errorf("explain says that it leaves %d", got)
	}
}

// Without classes there is nothing to leave, and no class to tell.
func TestNoClasses(t *testing.T) {
	set := parse(t, "rules: [{ name: a, per: ip, limits: 10/minute }]", Config{})
	if e := set.Explain(as("GET /")); e.Class != "" || e.Rules[0].Checks[0].Leaves != 0 {
		t.Errorf("%+v", e)
	}
}

// What is left is a share of whichever limit holds: of a branch, a table, the burst, the quota, the
// slots, a ceiling, a candidate.
func TestSetAsideOfEveryLimit(t *testing.T) {
	f := func(rule, want string) {
		t.Helper()
		set := parse(t, `
identify: { role: jwt.role, rpm: jwt.rpm }
classes: [{ name: critical, match: POST / }, { name: rest }]
rules: [{ name: a, per: ip, `+rule+`, set_aside: { critical: 25% } }]
`, Config{Signals: signalOf{"load": 9}})
		if got := floors(set.Match(as("GET /", "role", "big", "ip", "192.0.2.1"), nil)); got != want {
			t.Errorf("%s\nleaves %s, want %s", rule, got, want)
		}
		for _, c := range set.Match(as("POST /", "ip", "192.0.2.1"), nil) {
			if c.Floor != 0 {
				t.Errorf("%s\na critical request leaves %d of %s", rule, c.Floor, c.Limit)
			}
		}
	}
	f("limits: 100/minute", "25 of 100")
	f("limits: [100/minute, 1000/hour]", "25 of 100, 250 of 1000")
	f("limits: { rate: 100/minute, burst: 8, algorithm: token_bucket }", "2 of 8")
	f("limits: { rate: 60/minute, algorithm: leaky_bucket }, queue: { places: 7, max_wait: 10s }", "2 of 8")
	f("quota: 1000/day", "250 of 1000")
	f("concurrency: { slots: 20, lease: 30s }", "5 of 20")
	f("limits: 100/minute, for: [{ when: { role: big }, limits: 1000/minute }]", "250 of 1000")
	f("limits: { by: role, rows: { big: 400/minute }, else: 10/minute }", "100 of 400")
	f("limits: 100/minute, mode: shadow", "25 of 100")
	f("limits: 100/minute, candidate: 40/minute", "25 of 100, 10 of 40")
	// What is above the nominal limit is marked whatever is set aside; the ceiling decides.
	f("limits: 100/minute, over: { soft: 20% }", "0 of 100, 30 of 120")
	// An elastic limit without room decides by both.
	f("limits: 100/minute, over: { elastic: { while: load < 4, up_to: 2x } }", "25 of 100, 50 of 200")
	// Rounded up, and never all.
	f("limits: 10/minute", "3 of 10")
	f("limits: 2/minute", "1 of 2")
}

type signalOf map[string]float64

func (s signalOf) Signal(name string) (float64, bool) {
	v, ok := s[name]
	return v, ok
}

// A class of callers gets what is left to it through a gate, and is told of that.
func TestSetAsideIsTold(t *testing.T) {
	d := newDesk(t, `
classes: [{ name: critical, match: POST / }, { name: rest }]
rules: [{ name: a, per: everyone, limits: 10/minute, set_aside: { critical: 30% } }]
`)
	for i := range int64(7) {
		if got := d.ask(as("GET /")); !got.OK || got.Remaining != 6-i {
			t.Fatalf("request %d: %+v", i, got)
		}
	}
	if got := d.ask(as("GET /")); got.OK || got.Never || got.Remaining != 0 || got.RetryAfter != time.Minute {
		t.Errorf("above what is left: %+v", got)
	}
	if got := d.gate.Peek(t.Context(), as("GET /")); got.OK || got.Remaining != 0 {
		t.Errorf("a peek of the rest: %+v", got)
	}
	if got := d.gate.Peek(t.Context(), as("POST /")); !got.OK || got.Remaining != 3 {
		t.Errorf("a peek of the first class: %+v", got)
	}
	dear := as("POST /")
	dear.Cost = 2
	if got := d.gate.Peek(t.Context(), dear); !got.OK || got.Remaining != 3 {
		t.Errorf("a peek of a cost of 2: %+v", got)
	}
	for i := range int64(3) {
		if got := d.ask(as("POST /")); !got.OK || got.Remaining != 2-i {
			t.Errorf("critical request %d: %+v", i, got)
		}
	}
	if got := d.ask(as("POST /")); got.OK {
		t.Errorf("above the limit: %+v", got)
	}
}

// A peek tells what the class may still have, whatever the request costs.
func TestPeekAboveWhatIsSetAside(t *testing.T) {
	d := newDesk(t, `
classes: [{ name: critical, match: POST / }, { name: rest }]
rules: [{ name: a, per: everyone, limits: 10/minute, set_aside: { critical: 30% } }]
`)
	f := func(cost int64, ok, never bool, remaining int64) {
		t.Helper()
		r := as("GET /")
		r.Cost = cost
		if got := d.gate.Peek(t.Context(), r); got.OK != ok || got.Never != never || got.Remaining != remaining {
			t.Errorf("a cost of %d: %+v; want ok %t, never %t, remaining %d", cost, got, ok, never, remaining)
		}
	}
	f(1, true, false, 7)
	f(3, true, false, 7)
	f(7, true, false, 7)
	f(8, false, true, 7)
	d.ask(as("GET /"))
	d.ask(as("GET /"))
	f(5, true, false, 5)
	f(6, false, false, 5)
}

// An override of an operator keeps the share, and so does what stands in for a counter that has
// changed its kind.
func TestSetAsideAcrossChanges(t *testing.T) {
	d := newDesk(t, `
classes: [{ name: critical, match: POST / }, { name: rest }]
rules: [{ name: a, per: everyone, limits: { rate: 10/minute, algorithm: fixed_window }, set_aside: { critical: 50% } }]
`)
	d.live.SetMeasures([]Measure{{ID: "m", Kind: Override, As: map[string]string{"everyone": ""}, Rule: "a", Limits: []string{"40/minute"}, Reason: "sale", By: "ann"}})
	if got := floors(d.live.Match(as("GET /"), nil)); got != "20 of 40" {
		t.Errorf("under an override it leaves %s", got)
	}
	d.live.SetMeasures(nil)
	d.reload(`
classes: [{ name: critical, match: POST / }, { name: rest }]
rules: [{ name: a, per: everyone, limits: { rate: 20/minute, algorithm: token_bucket }, set_aside: { critical: 50% } }]
`)
	if got := floors(d.live.Match(as("GET /"), nil)); got != "10 of 20, 10 of 20" {
		t.Errorf("after a change of the algorithm it leaves %s", got)
	}
}
