package rulefile

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// good reads a file of testdata/good, in which nothing is wrong.
func good(t *testing.T, name string) *File {
	t.Helper()
	f, problems := Read(name, inFolder("testdata/good"))
	if len(problems) > 0 {
		t.Fatalf("problems in a good file:\n%s", problems.Error())
	}
	return f
}

func (f *File) rule(t *testing.T, name string) *Rule {
	t.Helper()
	for _, r := range f.Rules {
		if r.Name.Text == name {
			return r
		}
	}
	t.Fatalf("there is no rule %s", name)
	return nil
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestFull(t *testing.T) {
	f := good(t, "full.yaml")
	want(t, "Files", f.Files, []string{"full.yaml", "banned.txt"})
	want(t, "number of rules", len(f.Rules), 16)
	want(t, "net", f.Identify[4].Sources[0], Source{Kind: SourceIP, Bits4: 24, Bits6: 48, Text: "ip /24 /48", Pos: f.Identify[4].Sources[0].Pos})
	want(t, "api_key", f.Identify[2].Sources[0].Kind, SourceClientHeader)
	banned := f.Lists[1]
	want(t, "values of banned", len(banned.Values), 3)
	want(t, "a network of banned", banned.Tests[1].Prefix.String(), "198.51.100.0/24")
	want(t, "place of a network", banned.Values[1].Pos.Line, 3)
	want(t, "exempt", f.Exempt[1].When[0].Any[0], Test{Kind: TestIn, Text: "partners", Pos: f.Exempt[1].When[0].Any[0].Pos})

	api := f.rule(t, "api")
	want(t, "api has", api.Terms.Limits.All[1].Spec, tidegate.Spec{Events: 1000, Period: time.Hour, Algorithm: tidegate.SubWindows})
	want(t, "admins are", api.For[0].Terms.Limits.Unlimited, true)
	want(t, "until", api.For[2].Until.Format(time.RFC3339), "2026-12-01T00:00:00Z")
	want(t, "reason", api.For[2].Reason, "migration, ticket 4711")
	want(t, "events replaces", f.rule(t, "events").InsteadOf[0].Text, "api")
	put := f.rule(t, "posts").Match[1]
	want(t, "second pattern of posts", [3]string{put.Method, put.Host, put.Path}, [3]string{"PUT", "", "/posts/"})
	want(t, "rewards", f.rule(t, "rewards").Terms.Limits.All[0].Spec.Period, 7*24*time.Hour)
	want(t, "site", f.rule(t, "site").Terms.Limits.All[0].Spec, tidegate.Spec{Events: 10000, Period: time.Second, Burst: 12000, Algorithm: tidegate.TokenBucket})
	login := f.rule(t, "login")
	want(t, "login counts", login.Count.Status, []tidegate.StatusRange{{From: 401, To: 401}, {From: 403, To: 403}})
	want(t, "login blocks", login.Block, 15*time.Minute)
	cost := f.rule(t, "chat").Terms.Cost
	want(t, "chat costs", [3]int64{cost.Else, cost.Min, cost.Max}, [3]int64{1000, 1, 32000})
	want(t, "chat reserves", cost.Reserve[0].Arg, "max_tokens")
	want(t, "chat settles", cost.Settle, "response.body.usage.total_tokens")
	want(t, "search", f.rule(t, "search").Terms.Over.Soft, 10)
	elastic := f.rule(t, "feed").Terms.Over.Elastic
	want(t, "feed", [2]float64{elastic.Below, elastic.UpTo}, [2]float64{0.2, 2})
	want(t, "reports", f.rule(t, "reports").Terms.Concurrency.Spec, tidegate.Spec{Events: 20, Period: 30 * time.Second, Algorithm: tidegate.Concurrency})
	checkout := f.rule(t, "checkout")
	want(t, "line of checkout", checkout.Terms.Limits.All[0].Spec.Burst, 100)
	want(t, "checkout keeps", checkout.Defer.Keep, 24*time.Hour)
	want(t, "plan", f.rule(t, "plan").Terms.Quota.Spec, tidegate.Spec{Events: 1000000, Algorithm: tidegate.Quota, Calendar: tidegate.Month, Zone: "Asia/Seoul", Anchor: 15})
	members := f.rule(t, "members-only")
	want(t, "members-only denies", members.Deny, true)
	want(t, "members-only says", members.Respond.Message, "for subscribers only")
	want(t, "members-only is for", len(members.Unless[0].Any), 2)
	want(t, "new-idea", f.rule(t, "new-idea").Mode, Shadow)
}

func TestWords(t *testing.T) {
	f := good(t, "words.yaml")
	line := f.Rules[slices.IndexFunc(f.Rules, func(r *Rule) bool { return r.Name.Text == "line" })]
	want(t, "the oldest makes room", line.Terms.Queue.DropOldest, true)
	want(t, "kept of a key", line.Defer.PerKey, int64(7))
	want(t, "classes", []string{f.Classes[0].Name.Text, f.Classes[1].Name.Text, f.Classes[2].Name.Text}, []string{"critical", "paying", "rest"})
	want(t, "the second class", [3]int{len(f.Classes[1].Match), len(f.Classes[1].When), len(f.Classes[1].Unless)}, [3]int{0, 1, 1})
	want(t, "what each class leaves", f.Leaves(f.rule(t, "important")), []int{0, 2000, 3250})
	want(t, "shed by", []float64{f.Shed.While[0].Above, f.Shed.While[1].Above}, []float64{0.85, 2000})
	want(t, "classes that may be shed", [2]int{f.Sheddable(f.Shed), f.Sheddable(f.rule(t, "important").Shed)}, [2]int{2, 3})
	want(t, "shed of a rule", [2]any{f.rule(t, "important").Shed.While[0].Text, f.rule(t, "important").Shed.Mode}, [2]any{"upstream_p99 > 500ms", Shadow})
	want(t, "what it leaves of a rule that sets nothing aside", f.Leaves(f.rule(t, "tenants")), nil)
	want(t, "a body unless it is said", line.Defer.MaxBody, int64(1<<20))
	want(t, "Files", f.Files, []string{"words.yaml", "more/identify.yaml", "more/rules.yaml", "more/extras.txt"})
	want(t, "OnFull", f.OnFull, tidegate.RefuseNew)
	want(t, "Instances", f.Instances, 3)
	want(t, "Headers", f.Headers, Headers{Pos: f.Headers.Pos, Dialects: []string{"draft11", "x"}, Reset: "epoch", RetryJitter: 0.125, JitterPos: f.Headers.JitterPos})
	tenants := f.rule(t, "tenants")
	want(t, "number of waivers", len(f.Waive), 2)
	want(t, "waiver of the file", [3]string{f.Waive[0].Check.Text, f.Waive[0].Reason, f.Waive[0].Rule}, [3]string{"unused-identity", "read by another program, too", ""})
	want(t, "waiver of a rule", [3]string{f.Waive[1].Check.Text, f.Waive[1].Reason, f.Waive[1].Rule}, [3]string{"victim-lockout", "tenants are ours", "tenants"})
	want(t, "the rule has its own limits", f.Waive[1].In.Holds(tenants.Terms.Limits.All[1].Pos), true)
	want(t, "and not those of the next", f.Waive[1].In.Holds(f.Rules[2].Terms.Limits.All[0].Pos), false)
	want(t, "own words of tenants", [2]string{tenants.Consistency.Text, tenants.OnPartition.Text}, [2]string{"strict", "continue"})
	want(t, "layers of tenants", tenants.Layers, Layers{NoDenyCache: true, NoCoalesce: true})
	want(t, "layers of orders", f.rule(t, "orders").Layers, Layers{})
	want(t, "tenants when the store is down", tenants.OnStoreFailure, FailLocal)
	want(t, "tenants that are missing", tenants.Missing, MissingRefuse)
	want(t, "1h30m", tenants.Terms.Limits.All[1].Spec.Period, 90*time.Minute)
	orders := f.rule(t, "orders")
	want(t, "defaults of orders", [2]string{orders.Consistency.Text, orders.OnPartition.Text}, [2]string{"leased", "share"})
	want(t, "orders when the store is down", orders.OnStoreFailure, FailDeny)
	want(t, "share", orders.Share, 50)
	want(t, "from", *orders.Terms.Limits.All[0].From, From{Source: orders.Terms.Limits.All[0].From.Source, Period: time.Minute, Max: 10000, Else: 100})
	want(t, "limit of those without a number", orders.Terms.Limits.All[0].Spec, tidegate.Spec{Events: 100, Period: time.Minute, Algorithm: tidegate.TokenBucket})
	want(t, "what orders are missing", orders.Missing, MissingIP)
	strict := f.rule(t, "strict")
	want(t, "007", strict.For[1].When[1].Any[0].Text, "007")
	want(t, "off", strict.For[2].When[0].Any[0].Text, "off")
	tiered := f.rule(t, "tiered")
	want(t, "branches of tiered", len(tiered.For), 3)
	want(t, "root of pro", tiered.For[0].Terms.Limits.Unlimited && tiered.For[0].Terms.Concurrency != nil, true)
	want(t, "quota of pro", tiered.Under(&tiered.For[2]).Quota == nil, true)
	want(t, "others are free", tiered.Terms.Quota.Spec.Events, 1000)
	want(t, "plans of tiered", *tiered.Finite("plan"), Finite{"plan", []string{"free", "pro"}, "free"})
	tabled := f.rule(t, "tabled")
	want(t, "rows of tabled", []string{tabled.RowOf(&tabled.For[0]), tabled.RowOf(&tabled.For[1]), tabled.RowOf(&tabled.For[2]), tabled.RowOf(nil)}, []string{"large, free", "large, pro", "small", "else"})
	want(t, "models of tabled", *tabled.Finite("model"), Finite{"model", []string{"large", "small"}, "else"})
	want(t, "limit of others", tabled.Terms.Limits.All[0].Spec.Events, 5)
	billed := f.rule(t, "billed")
	want(t, "anchor", billed.Terms.Quota.AnchorFrom.Arg, "billing_day")
	want(t, "same cost for all, settled later", billed.Terms.Cost.Fixed, 10)
	want(t, "billed counts", billed.Count.Status[1:], []tidegate.StatusRange{{From: 300, To: 399}, {From: 500, To: 599}})
	ips := f.Exempt[0].Unless[0].Any
	want(t, "an address is a network", ips[1].Prefix.String(), "2001:db8::1/128")
	for i, text := range []string{"acme", "umbrella", "*-corp", "a#b"} {
		want(t, "a line of extras.txt", f.Lists[0].Values[i].Text, text)
	}
	want(t, "column of the second", f.Lists[0].Values[1].Pos.Col, 2)
}

// The good files use every word of the language, so none of them is only a word
// of the table.
func TestEveryWordIsRead(t *testing.T) {
	used := make(map[string]bool)
	for _, name := range []string{"full.yaml", "words.yaml", "more/identify.yaml", "more/rules.yaml", "over.yaml"} {
		src, err := os.ReadFile(filepath.Join("testdata/good", name))
		if err != nil {
			t.Fatal(err)
		}
		root, problems := yamltree.Parse(name, src)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		collectKeys(root, used)
	}
	for _, p := range places {
		for _, w := range p.words {
			if !used[w] {
				t.Errorf("no good file has %s, a word of %s", w, p.name)
			}
		}
		if _, problems := yamltree.Parse("", []byte(p.example)); len(problems) > 0 {
			t.Errorf("the example of %s is no YAML: %s", p.name, problems.Error())
		}
		for w := range p.advice {
			if slices.Contains(p.words, w) {
				t.Errorf("%s has advice for its own word %s", p.name, w)
			}
		}
	}
}

func collectKeys(n *yamltree.Node, to map[string]bool) {
	for _, f := range n.Fields {
		to[f.Key.Value] = true
		collectKeys(f.Value, to)
	}
	for _, item := range n.Items {
		collectKeys(item, to)
	}
}
