package rules

import (
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

// A row has a counter of its own however the path is written, if paths are compared without case.
func TestRowsOfPathsWithoutCase(t *testing.T) {
	set := parse(t, `
identify: { kind: "path {kind}", named: [client header K, "path {kind}"] }
tiers: { Free: { limits: 3/minute }, Pro: { limits: 9/minute } }
rules:
  - { name: kinds, match: "/x/{kind}", per: kind, limits: { by: kind, rows: { Reports: 60/minute, "Straße": 50/minute }, else: 5/minute } }
  - { name: either, match: "/y/{kind}", per: named, limits: { by: named, rows: { Reports: 60/minute }, else: 5/minute } }
  - { name: tiers, match: "/z/{kind}", per: kind, tier: { from: kind, else: Free } }
`, Config{IgnoreCase: true})
	f := heldTo(t, set)
	for _, kind := range []string{"Reports", "reports", "REPORTS"} {
		f(request("GET /x/"+kind), "kinds: 60/1m0s sliding_log per kind Reports")
		f(request("GET /y/"+kind), "either: 60/1m0s sliding_log per named/path {kind} Reports")
		f(request("GET /y/none", "client header K", kind), "either: 60/1m0s sliding_log per named/client header K Reports")
	}
	f(request("GET /x/STRAßE"), "kinds: 50/1m0s sliding_log per kind Straße")
	f(request("GET /x/other"), "kinds: 5/1m0s sliding_log per kind else")
	f(request("GET /y/other"), "either: 5/1m0s sliding_log per named/client header K else")
	for _, kind := range []string{"Pro", "pro", "PRO"} {
		f(request("GET /z/"+kind), "tiers: 9/1m0s sliding_log per kind Pro")
	}
	for _, kind := range []string{"Free", "free", "none"} {
		f(request("GET /z/"+kind), "tiers: 3/1m0s sliding_log per kind Free")
	}
}

// Requests for a listed kind take nothing from those that are not listed.
func TestRowsOfPathsDoNotShareElse(t *testing.T) {
	set := parse(t, `
identify: { kind: "path {kind}" }
rules: [{ name: kinds, match: "/x/{kind}", per: kind, limits: { by: kind, rows: { Reports: 60/minute }, else: 5/minute } }]
`, Config{IgnoreCase: true})
	d := newDesk(t, `rules: []`)
	d.gate = tidegate.NewGate(set, d.store)
	d.admits(6, request("GET /x/Reports"))
	d.admits(5, request("GET /x/other"))
	d.refuses(request("GET /x/another"))
}

// Where an identity's sources spell values differently, a tier and a row are found by each of them,
// and counted by one key.
func TestTiersAndRowsOfMixedSpelling(t *testing.T) {
	for _, sources := range []string{"[lower body.plan, header P]", "[header P, lower body.plan]"} {
		set := parse(t, `
identify: { plan: `+sources+` }
tiers: { Free: { limits: 3/minute }, Pro: { limits: 9/minute } }
rules:
  - { name: tiers, match: /tiers, per: plan, tier: { from: plan, else: Free } }
  - { name: rows, match: /rows, per: plan, limits: { by: plan, rows: { Pro: 9/minute, Free: 3/minute }, else: 2/minute } }
`, Config{})
		ask := func(source, value, scope, tier, row string) {
			t.Helper()
			f := heldTo(t, set)
			f(request("GET /tiers", source, value), "tiers: "+strings.Replace(tier, " ", "/1m0s sliding_log per plan/"+scope+" ", 1))
			f(request("GET /rows", source, value), "rows: "+strings.Replace(row, " ", "/1m0s sliding_log per plan/"+scope+" ", 1))
		}
		for _, pro := range []string{"Pro", "pro", "PRO"} {
			ask("body.plan", pro, "lower body.plan", "9 Pro", "9 Pro")
		}
		for _, pro := range []string{"Pro", "pro"} { // a condition accepts every spelling from every source
			ask("header P", pro, "header P", "9 Pro", "9 Pro")
		}
		ask("body.plan", "FREE", "lower body.plan", "3 Free", "3 Free")
		ask("header P", "Free", "header P", "3 Free", "3 Free")
		first, _, _ := strings.Cut(strings.Trim(sources, "[]"), ",")
		ask("header P", "PRO", first, "3 Free", "2 else")
	}
}

// A tier or row that is chosen by one of its spellings only, since the other is that of one before it, has its own limits
// and its own counter.
func TestTiersAndRowsThatShareASpelling(t *testing.T) {
	set := parse(t, `
identify: { plan: [header P, lower body.plan] }
tiers: { Free: { limits: 3/minute }, pro: { limits: 6/minute }, Pro: { limits: 9/minute } }
rules:
  - { name: tiers, match: /tiers, per: plan, tier: { from: plan, else: Free } }
  - { name: rows, match: /rows, per: plan, limits: { by: plan, rows: { pro: 6/minute, Pro: 9/minute }, else: 2/minute } }
`, Config{})
	f := heldTo(t, set)
	for path, rule := range map[string]string{"/tiers": "tiers", "/rows": "rows"} {
		f(request("GET "+path, "header P", "pro"), rule+": 6/1m0s sliding_log per plan/header P pro")
		f(request("GET "+path, "header P", "Pro"), rule+": 9/1m0s sliding_log per plan/header P Pro")
		f(request("GET "+path, "body.plan", "Pro"), rule+": 6/1m0s sliding_log per plan/lower body.plan pro")
	}
}
