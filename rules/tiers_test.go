package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const tiered = `
identify: { customer: header C, plan: header P, model: body.model, role: header R }
tiers:
  free: { limits: 3/minute, quota: 100/month }
  pro: { limits: [10/minute, 50/hour] }
exempt: [{ when: { role: ops } }]
rules:
  - { name: banned, when: { customer: eve }, deny: true }
  - { name: api, match: /api/, per: customer, tier: { from: plan, else: free }, for: [{ when: { role: admin }, limits: 64/minute }] }
  - { name: other, match: /other/, per: [customer, plan], limits: 9/day, tier: { from: plan, else: pro } }
  - name: chat
    match: POST /chat
    per: [customer, model]
    limits: { by: [model, plan], rows: { large: { free: 4/minute, pro: 20/minute }, small: { free: 6/minute, pro: unlimited } }, else: 5/minute }
`

func TestTiers(t *testing.T) {
	f := heldTo(t, parse(t, tiered, Config{}))
	free := []string{"api: 3/1m0s sliding_log per customer ann", "api: 100/month quota per customer ann"}
	f(request("GET /api/", "header C", "ann", "header P", "free"), free...)
	f(request("GET /api/", "header C", "ann"), free...)
	f(request("GET /api/", "header C", "ann", "header P", "gold"), free...)
	f(request("GET /api/", "header C", "ann", "header P", "else"), free...)
	f(request("GET /api/", "header C", "ann", "header P", "pro"), "api: 10/1m0s sliding_log per customer ann", "api: 50/1h0m0s sliding_log per customer ann")
	// for beats tier, and keeps what it does not name.
	f(request("GET /api/", "header C", "ann", "header P", "pro", "header R", "admin"), "api: 64/1m0s sliding_log per customer ann")
	f(request("GET /api/", "header C", "ann", "header P", "x", "header R", "admin"), "api: 64/1m0s sliding_log per customer ann", "api: 100/month quota per customer ann")
	// exempt beats both, and not deny.
	f(request("GET /api/", "header C", "ann", "header P", "pro", "header R", "ops"))
	f(request("GET /api/", "header C", "eve", "header P", "pro", "header R", "ops"), "banned: deny @")
	// One said once for two rules; what the tier does not name is the rule's, and a plan
	// that is no tier is that of all others in the key as well.
	f(request("GET /other/", "header C", "ann", "header P", "free"), "other: 3/1m0s sliding_log per customer,plan 3:ann4:free", "other: 100/month quota per customer,plan 3:ann4:free")
	for _, plan := range []string{"pro", "gold", "x", ""} {
		f(request("GET /other/", "header C", "ann", "header P", plan), "other: 10/1m0s sliding_log per customer,plan 3:ann3:pro", "other: 50/1h0m0s sliding_log per customer,plan 3:ann3:pro")
	}
}

func TestTable(t *testing.T) {
	f := heldTo(t, parse(t, tiered, Config{}))
	ask := func(model, plan, want string) {
		t.Helper()
		var all []string
		if want != "" {
			all = []string{want}
		}
		f(request("POST /chat", "header C", "ann", "body.model", model, "header P", plan), all...)
	}
	ask("large", "free", "chat: 4/1m0s sliding_log per customer,model 3:ann5:large")
	ask("large", "pro", "chat: 20/1m0s sliding_log per customer,model 3:ann5:large")
	ask("small", "free", "chat: 6/1m0s sliding_log per customer,model 3:ann5:small")
	ask("small", "pro", "")
	// Known alone, and not together: the limit is that of all others, the key is not.
	ask("large", "gold", "chat: 5/1m0s sliding_log per customer,model 3:ann5:large")
	ask("large", "", "chat: 5/1m0s sliding_log per customer,model 3:ann5:large")
	for _, model := range []string{"", "x", "else", "Large", "large ", "*", "absent"} {
		for _, plan := range []string{"", "free", "pro", "x"} {
			ask(model, plan, "chat: 5/1m0s sliding_log per customer,model 3:ann4:else")
		}
	}
}

// Fifty invented models of one tenant are one counter, and leaving the model out is no other.
func TestInventedModels(t *testing.T) {
	d := newDesk(t, tiered)
	ask := func(model string) bool {
		return d.ask(request("POST /chat", "header C", "ann", "body.model", model, "header P", "free")).OK
	}
	admitted := 0
	for i := range 50 {
		if ask(fmt.Sprint("model-", i)) {
			admitted++
		}
	}
	if admitted != 5 || ask("") || ask("else") || !ask("large") {
		t.Errorf("%d of 50 invented models were admitted, want 5", admitted)
	}
	if got := d.ask(request("POST /chat", "header C", "bob", "body.model", "x")); !got.OK {
		t.Error("another tenant is refused")
	}
}

// skip and refuse still hold where a rule says them; rows are spelled as their values are.
func TestTableWithoutAValue(t *testing.T) {
	f := heldTo(t, parse(t, `
identify: { model: lower trim body.model, kind: [client header K, query k] }
rules:
  - { name: skips, match: /skips, per: [ip, model], missing: skip, limits: { by: model, rows: { Large: 4/minute }, else: 2/minute } }
  - { name: refuses, match: /refuses, per: [ip, model], missing: refuse, limits: { by: model, rows: { LARGE: 4/minute }, else: 2/minute } }
  - { name: kinds, match: /kinds, per: [ip, kind], limits: { by: kind, rows: { a: 4/minute }, else: 2/minute } }
`, Config{}))
	f(request("GET /skips", "ip", "192.0.2.1"))
	f(request("GET /skips", "ip", "192.0.2.1", "body.model", " LARGE"), "skips: 4/1m0s sliding_log per ip,model 9:192.0.2.15:large")
	f(request("GET /skips", "ip", "192.0.2.1", "body.model", "x"), "skips: 2/1m0s sliding_log per ip,model 9:192.0.2.14:else")
	f(request("GET /refuses", "ip", "192.0.2.1"), "refuses: deny")
	// By whichever source: what is in no row is one counter.
	f(request("GET /kinds", "ip", "192.0.2.1", "query k", "a"), "kinds: 4/1m0s sliding_log per ip,kind/query k 9:192.0.2.11:a")
	for _, source := range []string{"query k", "client header K", "nothing"} {
		f(request("GET /kinds", "ip", "192.0.2.1", source, "zzz"), "kinds: 2/1m0s sliding_log per ip,kind/client header K 9:192.0.2.14:else")
	}
}

// A table may be in a tier, in a branch, and under both; its rows are then those of all.
func TestTablesInTiersAndBranches(t *testing.T) {
	f := heldTo(t, parse(t, `
identify: { c: header C, plan: header P, model: body.model, role: header R }
tiers:
  free: { limits: { by: model, rows: { a: 11/minute }, else: 12/minute } }
  pro: { limits: 13/minute, cost: 2 }
rules:
  - name: api
    per: [c, model]
    tier: { from: plan, else: free }
    for:
      - { when: { role: x }, limits: { by: [model], rows: { b: [14/minute, 15/hour] }, else: { rate: 16/minute } } }
      - { when: { role: y }, cost: 7 }
`, Config{}))
	ask := func(plan, model, role string, want ...string) {
		t.Helper()
		f(request("GET /", "header C", "c", "header P", plan, "body.model", model, "header R", role), want...)
	}
	ask("", "a", "", "api: 11/1m0s sliding_log per c,model 1:c1:a")
	ask("", "b", "", "api: 12/1m0s sliding_log per c,model 1:c1:b")
	ask("", "z", "", "api: 12/1m0s sliding_log per c,model 1:c4:else")
	ask("pro", "a", "", "api: 13/1m0s sliding_log per c,model 1:c1:a cost 2")
	ask("pro", "z", "", "api: 13/1m0s sliding_log per c,model 1:c4:else cost 2")
	ask("", "b", "x", "api: 14/1m0s sliding_log per c,model 1:c1:b", "api: 15/1h0m0s sliding_log per c,model 1:c1:b")
	ask("", "a", "x", "api: 16/1m0s sliding_log per c,model 1:c1:a")
	ask("pro", "b", "x", "api: 14/1m0s sliding_log per c,model 1:c1:b cost 2", "api: 15/1h0m0s sliding_log per c,model 1:c1:b cost 2")
	ask("pro", "z", "x", "api: 16/1m0s sliding_log per c,model 1:c4:else cost 2")
	ask("", "a", "y", "api: 11/1m0s sliding_log per c,model 1:c1:a cost 7")
	ask("", "q", "y", "api: 12/1m0s sliding_log per c,model 1:c4:else cost 7")
	ask("pro", "q", "y", "api: 13/1m0s sliding_log per c,model 1:c4:else cost 7")
}

// An upgrade keeps what was used, and so does one that is taken away by a reload.
func TestTiersShareCounters(t *testing.T) {
	d := newDesk(t, tiered)
	d.admits(3, request("GET /api/", "header C", "ann", "header P", "free"))
	d.refuses(request("GET /api/", "header C", "ann", "header P", "free"))
	d.passes(7, request("GET /api/", "header C", "ann", "header P", "pro"))
	d.reload(strings.Replace(tiered, "  pro: { limits: [10/minute, 50/hour] }\n", "  pro: { limits: 12/minute }\n", 1))
	d.passes(2, request("GET /api/", "header C", "ann", "header P", "pro"))
}

// What is deleted from the files is told, and what becomes of whom.
func TestDeletedTiersAndRows(t *testing.T) {
	f := func(from, to string, want ...string) {
		t.Helper()
		if !strings.Contains(tiered, from) {
			t.Fatalf("%q is not in the rules", from)
		}
		var got []string
		for _, c := range Compare(parse(t, tiered, Config{}), parse(t, strings.Replace(tiered, from, to, 1), Config{})) {
			got = append(got, c.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("without %q:\n%s\nwant\n%s", from, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	f("tiers:", "tiers:")
	f("  free: { limits: 3/minute, quota: 100/month }\n", "  free: { limits: 4/minute, quota: 100/month }\n")
	f("  pro: { limits: [10/minute, 50/hour] }\n", "  pro: { limits: [10/minute, 50/hour] }\n  gold: { limits: 90/minute }\n",
		`rule other: counters of plan "gold" start empty: it was counted with all other values`)
	f("small: { free: 6/minute, pro: unlimited }", "small: { free: 6/minute }",
		`rule chat: row small, pro is gone: requests with model "small" and plan "pro" are held to 5/1m0s sliding_log instead of no limit, and start with empty counters`)
	f("large: { free: 4/minute, pro: 20/minute }, ", "",
		`rule chat: row large, free is gone: requests with model "large" and plan "free" are held to 5/1m0s sliding_log instead of 4/1m0s sliding_log, and are counted with all other values of model`,
		`rule chat: row large, pro is gone: requests with model "large" and plan "pro" are held to 5/1m0s sliding_log instead of 20/1m0s sliding_log, and are counted with all other values of model`)
	f("large: { free: 4/minute, pro: 20/minute }", "large: { free: 4/minute }, tiny: 2/minute",
		`rule chat: row large, pro is gone: requests with model "large" and plan "pro" are held to 5/1m0s sliding_log instead of 20/1m0s sliding_log, and keep what they have used`,
		`rule chat: counters of model "tiny" start empty: it was counted with all other values`)
	f("limits: { by: [model, plan], rows: { large: { free: 4/minute, pro: 20/minute }, small: { free: 6/minute, pro: unlimited } }, else: 5/minute }", "limits: 5/minute",
		`rule chat: row large, free is gone: requests with model "large" and plan "free" are held to 5/1m0s sliding_log instead of 4/1m0s sliding_log, and keep what they have used`,
		`rule chat: row large, pro is gone: requests with model "large" and plan "pro" are held to 5/1m0s sliding_log instead of 20/1m0s sliding_log, and keep what they have used`,
		`rule chat: row small, free is gone: requests with model "small" and plan "free" are held to 5/1m0s sliding_log instead of 6/1m0s sliding_log, and keep what they have used`,
		`rule chat: row small, pro is gone: requests with model "small" and plan "pro" are held to 5/1m0s sliding_log instead of no limit, and start with empty counters`,
		`rule chat: counters of all other values of model start empty: they shared one, and now each value has its own`,
		`rule chat: counters of 5/1m0s sliding_log start empty: `+"`per` has changed")
}

// Whether requests of a tier that is gone keep what they have used is told as it is.
func TestDeletedTierCountsOn(t *testing.T) {
	file := func(free, pro string) string {
		if pro != "" {
			pro = ", pro: { " + pro + " }"
		}
		return "identify: { c: header C, plan: header P }\ntiers: { free: { " + free + " }" + pro + " }\nrules: [{ name: a, per: c, tier: { from: plan, else: free } }]"
	}
	f := func(free, pro, now, told string, left int64) {
		t.Helper()
		d := newDesk(t, file(free, pro))
		for range 3 {
			d.ask(as("GET /", "c", "ann", "plan", "pro"))
		}
		old, set := d.live.Set(), parse(t, file(now, ""), d.config())
		d.live.Swap(set)
		got := Compare(old, set)
		if i := slices.IndexFunc(got, func(c Change) bool { return c.Gone == "tier pro" }); i < 0 || got[i].Counted != told {
			t.Errorf("%s, %s to %s: got %v, want %s", free, pro, now, got, told)
		}
		if a := d.ask(as("GET /", "c", "ann", "plan", "pro")); a.Remaining != left {
			t.Errorf("%s, %s to %s: %d are left, want %d", free, pro, now, a.Remaining, left)
		}
	}
	const keep, some, empty = "keep what they have used", "keep what they have used of limits that they had", "start with empty counters"
	f("limits: 10/minute", "limits: 20/minute", "limits: 10/minute", keep, 6)
	f("limits: 10/minute", "limits: 20/minute", "limits: { rate: 10/minute, algorithm: token_bucket }", keep, 6)
	f("limits: 10/minute", "limits: 20/hour", "limits: 10/minute", empty, 9)
	f("limits: 10/minute", "limits: { rate: 20/minute, algorithm: token_bucket }", "limits: 10/minute", empty, 9)
	f("limits: 10/minute", "quota: 20/day", "limits: 10/minute", empty, 9)
	f("limits: 10/minute", "limits: unlimited", "limits: 10/minute", empty, 9)
	f("limits: [10/minute, 30/hour]", "limits: 20/minute", "limits: [10/minute, 30/hour]", some, 6)
	f("limits: [10/minute, 30/hour]", "limits: [20/minute, 90/hour]", "limits: [10/minute, 30/hour]", keep, 6)
}

// A branch that is gone is told where its requests do not keep what they have used.
func TestDeletedBranchIsTold(t *testing.T) {
	file := func(limits, branches string) string {
		if branches != "" {
			branches = ", for: [" + branches + "]"
		}
		return "identify: { c: header C, role: header R }\nrules: [{ name: a, per: c, limits: " + limits + branches + " }]"
	}
	f := func(old, now string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range Compare(parse(t, old, Config{}), parse(t, now, Config{})) {
			got = append(got, c.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n%s: got %q, want %q", old, now, got, want)
		}
	}
	window := "{ when: { role: x }, limits: { rate: 20/minute, algorithm: fixed_window } }"
	other := "{ when: { role: y }, limits: 20/minute }"
	const gone = `rule a: a branch is gone: requests with role "x" are held to 10/1m0s sliding_log instead of 20/1m0s fixed_window, and start with empty counters`
	f(file("10/minute", window), file("10/minute", ""), gone)
	f(file("10/minute", window+", "+other), file("10/minute", other), gone)
	f(file("10/minute", other+", "+window), file("10/minute", other), gone)
	f(file("10/minute", other), file("10/minute", ""))
	f(file("10/minute", window), file("10/minute", window))
	f(file("10/minute", "{ when: { role: x }, limits: unlimited }"), file("10/minute", "")) // nothing was used
	f(file("10/minute", window), file("10/minute", other),                                  // which is in its place
		`rule a: 20/1m0s sliding_log continues from 20/1m0s fixed_window, which also applies for 1m0s`)
}

// A tier that is gone is told for every rule that had it, and across processes.
func TestDeletedTierIsTold(t *testing.T) {
	const before = "identify: { c: header C, plan: header P }\ntiers:\n  free: { limits: 3/minute }\n  pro: { limits: 10/minute }\nrules:\n" +
		"  - { name: a, per: c, tier: { from: plan, else: free } }\n  - { name: b, per: [c, plan], tier: { from: plan, else: free } }\n"
	after := strings.Replace(before, "  pro: { limits: 10/minute }\n", "", 1)
	want := []string{
		`rule a: tier pro is gone: requests with plan "pro" are held to 3/1m0s sliding_log instead of 10/1m0s sliding_log, and keep what they have used`,
		`rule b: tier pro is gone: requests with plan "pro" are held to 3/1m0s sliding_log instead of 10/1m0s sliding_log, and are counted with all other values of plan`,
	}
	old, set := parse(t, before, Config{}), parse(t, after, Config{})
	memory, err := NewLive(old).Remember()
	if err != nil {
		t.Fatal(err)
	}
	recalled, err := NewLive(set).Recall(memory)
	if err != nil {
		t.Fatal(err)
	}
	for _, changes := range [][]Change{Compare(old, set), recalled} {
		var got []string
		for _, c := range changes {
			got = append(got, c.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestExplainTiersAndRows(t *testing.T) {
	set := parse(t, tiered, Config{})
	f := func(path, plan, model, role, want string) {
		t.Helper()
		e := set.Explain(request("POST "+path, "header C", "ann", "header P", plan, "body.model", model, "header R", role))
		for _, r := range e.Rules {
			if r.Applies {
				if got := fmt.Sprintf("%s|%s|%v", r.Tier, r.Row, r.Branch != ""); got != want {
					t.Errorf("%s %s %s %s: %s, want %s", path, plan, model, role, got, want)
				}
			}
		}
	}
	f("/api/", "pro", "", "", "pro||false")
	f("/api/", "x", "", "", "free||false")
	f("/api/", "pro", "", "admin", "pro||true")
	f("/api/", "", "", "admin", "free||true")
	f("/chat", "pro", "large", "", "|large, pro|false")
	f("/chat", "x", "large", "", "|else|false")
}
