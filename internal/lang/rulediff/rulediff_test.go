package rulediff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func parse(t *testing.T, src string) *rulefile.File {
	t.Helper()
	f, problems := rulefile.Parse("rules.yaml", []byte("version: 1\n"+src), rulefile.Options{})
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return f
}

// lines writes changes as a test wants them.
func lines(changes []Change) (all []string) {
	for _, c := range changes {
		line := fmt.Sprintf("%s %s %s", c.Kind, c.What, c.Name)
		for _, f := range c.Fields {
			line += fmt.Sprintf("; %s: %s → %s", f.Name, f.Was, f.Now)
			if f.Effect != "" {
				line += " (" + f.Effect + ")"
			}
		}
		all = append(all, line)
	}
	return all
}

func TestCompare(t *testing.T) {
	f := func(old, now string, want ...string) {
		t.Helper()
		if got := lines(Compare(parse(t, old), parse(t, now))); !slices.Equal(got, want) {
			t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
	rule := func(limits string) string { return "rules: [{ name: api, per: ip, limits: " + limits + " }]" }
	f(rule("100/minute"), rule("100/minute"))
	f(rule("100/minute"), rule("{ rate: 100/60s }"))
	f(rule("100/minute"), rule("50/minute"), "changed rule api; limits: 100/minute → 50/minute (lowered)")
	f(rule("50/minute"), rule("100/minute"), "changed rule api; limits: 50/minute → 100/minute (raised)")
	f(rule("100/minute"), rule("6000/hour"), "changed rule api; limits: 100/minute → 6000/hour (raised)") // the pace is the same, the burst is not
	f(rule("100/minute"), rule("[100/minute, 1000/hour]"), "changed rule api; limits: 100/minute → 100/minute and 1000/hour (lowered)")
	f(rule("[100/minute, 1000/hour]"), rule("[50/minute, 2000/hour]"), "changed rule api; limits: 100/minute and 1000/hour → 50/minute and 2000/hour")
	f(rule("100/minute"), rule("unlimited"), "changed rule api; limits: 100/minute → unlimited (raised)")
	f(rule("unlimited"), rule("100/minute"), "changed rule api; limits: unlimited → 100/minute (lowered)")
	f(rule("{ rate: 100/minute, algorithm: token_bucket, burst: 200 }"), rule("{ rate: 100/minute, algorithm: token_bucket }"),
		"changed rule api; limits: 100/minute token_bucket burst 200 → 100/minute token_bucket (lowered)")
	f(rule("100/minute"), rule("{ rate: 100/minute, algorithm: fixed_window }"), "changed rule api; limits: 100/minute → 100/minute fixed_window")
	f(rule("100/90s"), rule("100/2m"), "changed rule api; limits: 100/1m30s → 100/2m (lowered)")
	f(rule("100/10s"), rule("100/3h"), "changed rule api; limits: 100/10s → 100/3h (lowered)")
	f(rule("1/second")+"\ninstances: 3", rule("1/second")+"\ninstances: 5", "changed setting instances; instances: 3 → 5")
	f("rules: [{ name: api, per: ip, limits: 9/second }, { name: old, per: ip, limits: 1/second }]",
		"rules: [{ name: api, per: ip, limits: 9/second }, { name: new, match: POST /new, per: ip, limits: 1/second }]",
		"added rule new; match:  → POST /new; per:  → ip; limits:  → 1/second (lowered)", "removed rule old")
	f("rules: [{ name: api, per: ip, limits: 9/second }]", "rules: [{ name: api, per: ip, limits: 9/second, mode: shadow, missing: skip }]",
		"changed rule api; missing:  → skip; mode:  → shadow")
	f("rules: [{ name: api, per: ip, quota: 1000/month }]", "rules: [{ name: api, per: ip, quota: { amount: 900/month, zone: Asia/Seoul } }]",
		"changed rule api; quota: 1000/month → 900/month in Asia/Seoul (lowered)")
	f("rules: [{ name: api, per: ip, concurrency: { slots: 4, lease: 30s } }]", "rules: [{ name: api, per: ip, concurrency: { slots: 5, lease: 30s } }]",
		"changed rule api; concurrency: 4 slots, lease 30s → 5 slots, lease 30s (raised)")
	f("defaults: { on_store_failure: deny }\nrules: [{ name: api, per: ip, limits: 9/second }]", "rules: [{ name: api, per: ip, limits: 9/second, on_store_failure: deny }]")
	lists := func(values string) string {
		return "lists: { bad: [" + values + "] }\nrules: [{ name: no, when: { ip: in bad }, deny: true }]"
	}
	f(lists("192.0.2.1, 192.0.2.2"), lists("192.0.2.2, 192.0.2.1"))
	f(lists("192.0.2.1, 192.0.2.2"), lists("192.0.2.1, 192.0.2.3, 192.0.2.4"),
		"changed list bad; values:  → 2 added (192.0.2.3, 192.0.2.4), 1 removed (192.0.2.2)")
	tiers := func(free, pro string) string {
		return "identify: { plan: header X-Plan }\ntiers: { free: { limits: " + free + " }, pro: { limits: " + pro + " } }\nrules: [{ name: api, per: ip, tier: { from: plan, else: free } }]"
	}
	f(tiers("10/minute", "100/minute"), tiers("10/minute", "80/minute"),
		"changed rule api; limits of the tier pro: 100/minute → 80/minute (lowered)", "changed tier pro; limits: 100/minute → 80/minute (lowered)")
	branch := func(limits string) string {
		return "identify: { user: header X-User }\nrules: [{ name: api, per: ip, limits: 10/minute, for: [{ when: { user: [acme, bob] }, limits: " + limits + " }] }]"
	}
	f(branch("20/minute"), branch("30/minute"), "changed rule api; limits when user: acme or bob: 20/minute → 30/minute (raised)")
	table := func(limits string) string {
		return "identify: { model: header X-Model }\nrules: [{ name: api, per: ip, limits: { by: model, rows: { large: " + limits + " }, else: 9/minute } }]"
	}
	f(table("2/minute"), table("1/minute"), "changed rule api; limits of the row model large: 2/minute → 1/minute (lowered)")
	f("identify: { user: header X-User }\nrules: [{ name: api, per: user, limits: 9/second }]", "identify: { user: jwt.sub }\nrules: [{ name: api, per: user, limits: 9/second }]",
		"changed identity user; from: header X-User → jwt.sub")
	// What is missing for some is as for the others.
	premium := func(branches string) string {
		if branches != "" {
			branches = ", for: [" + branches + "]"
		}
		return "identify: { user: header X-User, role: header X-Role }\nrules: [{ name: api, per: user, limits: 100/minute" + branches + " }]"
	}
	few, many, none := "{ when: { role: guest }, limits: 70/minute }", "{ when: { role: premium }, limits: 1000/minute }", "{ when: { role: admin }, limits: unlimited }"
	f(premium(""), premium(many), "changed rule api; limits when role: premium:  → 1000/minute (raised)")
	f(premium(many), premium(""), "changed rule api; limits when role: premium: 1000/minute →  (lowered)")
	f(premium(""), premium(few), "changed rule api; limits when role: guest:  → 70/minute (lowered)")
	f(premium(few), premium(""), "changed rule api; limits when role: guest: 70/minute →  (raised)")
	f(premium(""), premium(none), "changed rule api; limits when role: admin:  → unlimited (raised)")
	f(premium(none), premium(""), "changed rule api; limits when role: admin: unlimited →  (lowered)")
	f(premium(many+", "+few), premium(many), "changed rule api; limits when role: guest: 70/minute →  (raised); order of branches: when role: premium, then when role: guest → ")
	f(premium("{ when: { user: acme }, limits: 500/minute }, "+many), premium(many), // acme may have the role or not
		"changed rule api; limits when user: acme: 500/minute → ; order of branches: when user: acme, then when role: premium → ")
	f(premium("{ when: { role: premium }, quota: 5/day }"), premium("{ when: { role: premium }, limits: 200/minute, quota: 5/day }"),
		"changed rule api; limits when role: premium:  → 200/minute (raised)")
	tier := func(tiers string) string {
		return "identify: { plan: header X-Plan }\ntiers: { free: { limits: 100/minute, quota: 10/day }" + tiers + " }\nrules: [{ name: api, per: ip, tier: { from: plan, else: free } }]"
	}
	f(tier(""), tier(", pro: { limits: 1000/minute }"),
		"changed rule api; limits of the tier pro:  → 1000/minute (raised)", "added tier pro; limits:  → 1000/minute")
	f(tier(", pro: { limits: 1000/minute }, gold: { limits: 9000/minute }"), tier(", gold: { limits: 9000/minute }"),
		"changed rule api; limits of the tier pro: 1000/minute →  (lowered)", "removed tier pro")
	f(tier(", pro: { limits: 1000/minute }"), tier(", pro: { limits: 1000/minute, quota: 100/day }"), // pro had no quota, though free has one
		"changed rule api; quota of the tier pro:  → 100/day (lowered)", "changed tier pro; quota:  → 100/day")
	rows := func(rows string) string {
		return "identify: { model: header X-Model, plan: header X-Plan }\nrules: [{ name: api, per: ip, limits: { by: [model, plan], rows: { " + rows + " }, else: 100/minute } }]"
	}
	f(rows("a: { x: 200/minute, y: 500/minute }"), rows("a: { y: 500/minute }"), "changed rule api; limits of the row model a, plan x: 200/minute →  (lowered)")
	f(rows("a: { x: 200/minute }"), rows("a: 300/minute"), // which holds for the plan x, too
		"changed rule api; limits of the row model a:  → 300/minute (raised); limits of the row model a, plan x: 200/minute → ")
	// Limits are compared whatever their order and number.
	f(rule("[100/minute, 1000/hour]"), rule("[1000/hour, 100/minute]"))
	f(rule("100/minute"), rule("[5/second, 100/minute]"), "changed rule api; limits: 100/minute → 5/second and 100/minute (lowered)")
	f(rule("[5/second, 100/minute]"), rule("100/minute"), "changed rule api; limits: 5/second and 100/minute → 100/minute (raised)")
	f(rule("[100/minute, 1000/hour]"), rule("[900/hour, 100/minute]"), "changed rule api; limits: 100/minute and 1000/hour → 900/hour and 100/minute (lowered)")
	quota := func(amount string) string { return "rules: [{ name: api, per: ip, quota: " + amount + " }]" }
	f(quota("1000/day"), quota("2000/month"), "changed rule api; quota: 1000/day → 2000/month") // slower, and more at once
	f(quota("2000/month"), quota("1000/day"), "changed rule api; quota: 2000/month → 1000/day")
	f(quota("1000/week"), quota("10/day"), "changed rule api; quota: 1000/week → 10/day (lowered)")
	f(quota("10/day"), quota("10000/year"), "changed rule api; quota: 10/day → 10000/year (raised)")
	domains := func(a, b string) *rulefile.File {
		return &rulefile.File{Domains: []rulefile.Domain{{Name: "a/limits.yaml", Text: []byte(a)}, {Name: "b/limits.yaml", Text: []byte(b)}}}
	}
	for _, now := range []*rulefile.File{domains("domain: x", "domain: z"), domains("domain: z", "domain: y")} { // two files of one name
		if got := lines(Compare(domains("domain: x", "domain: y"), now)); !slices.Equal(got, []string{"changed domain limits.yaml"}) {
			t.Errorf("got %q", got)
		}
	}
	f("exempt: [{ match: /healthz }]\nrules: [{ name: api, per: ip, limits: 9/second }]", "rules: [{ name: api, per: ip, limits: 9/second }]", "removed exemption match /healthz")
}

// Whatever a later version of the language adds to a rule is either told or known to be of no
// consequence.
func TestEveryFieldOfARuleIsTold(t *testing.T) {
	words := make(map[string]bool)
	for _, w := range ruleWords {
		words[w.field] = true
	}
	typ := reflect.TypeFor[rulefile.Rule]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		if !typ.Field(i).IsExported() {
			continue // where it was read
		}
		if words[name] == slices.Contains(untold, name) {
			t.Errorf("the field %s of a rule is neither in ruleWords nor in untold, or in both", name)
		}
		if !words[name] || name == "Terms" || name == "For" {
			continue
		}
		plain, other := rulefile.Rule{Share: 10_000}, rulefile.Rule{Share: 10_000}
		fill(reflect.ValueOf(&other).Elem().Field(i))
		a, b := ruleFields(&plain), ruleFields(&other)
		if got := compareFields(a, b); len(got) != 1 || got[0].Now == "" {
			t.Errorf("a change of %s is told as %v", name, got)
		}
	}
}

// Every field of what requests are held to is told, too, however deep.
func TestEveryFieldOfTermsIsTold(t *testing.T) {
	typ := reflect.TypeFor[rulefile.Terms]()
	for i := range typ.NumField() {
		var plain, other rulefile.Terms
		reflect.ValueOf(&plain).Elem().Field(i).Set(reflect.New(typ.Field(i).Type.Elem()))
		fill(reflect.ValueOf(&other).Elem().Field(i))
		if got := compareFields(part{fields: termFields(plain)}, part{fields: termFields(other)}); len(got) != 1 || got[0].Now == "" {
			t.Errorf("a change of %s is told as %v", typ.Field(i).Name, got)
		}
		if typ.Field(i).Name == "Limits" {
			continue // see TestCompare
		}
		of := typ.Field(i).Type.Elem()
		for j := range of.NumField() {
			if of.Field(j).Type == posType || of.Field(j).Name == "Spec" {
				continue
			}
			one := reflect.New(of)
			fill(one.Elem().Field(j))
			if text(one.Elem().Interface()) == text(reflect.New(of).Elem().Interface()) {
				t.Errorf("a change of %s.%s is not told", typ.Field(i).Name, of.Field(j).Name)
			}
		}
	}
}

// fill sets v to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1e9, 0)))
			return
		}
		if v.Type() == reflect.TypeFor[tidegate.Spec]() {
			v.Set(reflect.ValueOf(tidegate.Spec{Events: 5, Period: time.Second}))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(5)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	}
}
