package rules

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// Measures stay when the rules are exchanged: those that can hold do, of the others it is told
// why not, and when their rule comes back they hold again.
func TestReloadUnderMeasures(t *testing.T) {
	const user = "identify: { user: header X-User }\n"
	d := newDesk(t, user+"rules: [{ name: api, per: user, limits: 10/minute }]\n")
	ann := request("GET /", "header X-User", "ann", "ip", "192.0.2.7")
	d.set(override("o-1", "user=ann", "api", "40/minute"), ban("b-1", "user=eve", ""), ban("b-2", "ip=192.0.2.9", "api"))
	problems := func(want ...string) {
		t.Helper()
		all, got := d.live.Measures()
		if len(all) != 3 {
			t.Errorf("%d measures", len(all))
		}
		var lines []string
		for _, p := range got {
			lines = append(lines, strings.TrimPrefix(p.Error(), "measure "))
		}
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("problems\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	}
	d.admits(15, ann)
	problems()

	// Other numbers, another algorithm: what was used counts on.
	d.reload(user + "rules: [{ name: api, per: user, limits: 20/minute }]\n")
	d.admits(5, ann)
	d.reload(user + "rules: [{ name: api, per: user, limits: { rate: 20/minute, algorithm: fixed_window } }]\n")
	d.passes(20, ann) // of the override, in the counter of before
	problems()

	// The rule has another name: the override cannot hold, nor can its ban.
	d.reload(user + "rules: [{ name: web, per: user, limits: 10/minute }]\n")
	d.passes(10, ann)
	d.refuses(request("GET /", "header X-User", "eve"))
	d.admits(1, request("GET /", "header X-User", "bob", "ip", "192.0.2.9"))
	problems("o-1: rule: there is no rule `api`: the rules are web", "b-2: rule: there is no rule `api`: the rules are web")

	// Its identity is gone.
	d.reload("identify: { account: header X-User }\nrules: [{ name: api, per: account, limits: 3/minute }]\n")
	d.passes(3, ann)
	d.admits(1, request("GET /", "header X-User", "eve"))
	problems("o-1: as: there is no identity `user`: the names are account, everyone, host, ip, method, path, route", "b-1: as: there is no identity `user`: the names are account, everyone, host, ip, method, path, route")

	// Its limits no longer fit.
	d.reload(user + "rules: [{ name: api, per: user, quota: 10/month }]\n")
	problems("o-1: limits: the rule `api` has no limits of that kind, so `40/minute` would be one more: write `10/month` or `unlimited`, with other numbers")
	d.reload(user + "rules: [{ name: api, per: user, limits: 1000/minute, cost: 50 }]\n")
	problems("o-1: limits: a cost of 50 never fits into `40/minute`: raise the limit to at least 50, or lower the cost to at most 40")
	d.reload(user + "rules: [{ name: api, per: user, limits: 10/minute, mode: disabled }]\n")
	problems("o-1: rule: the rule `api` is disabled, and holds for nobody", "b-2: rule: the rule `api` is disabled, and holds for nobody")

	// And back, counted by something else.
	d.wait(time.Hour)
	d.reload(user + "rules: [{ name: api, per: ip, limits: 10/minute }]\n")
	problems()
	d.passes(40, ann)
	d.refuses(request("GET /", "header X-User", "eve"))
	d.refuses(request("GET /", "header X-User", "bob", "ip", "192.0.2.9"))
	d.refuses(request("GET /", "header X-User", "bob", "ip", "192.0.2.7"))
	d.set()
	if all, none := d.live.Measures(); all != nil || none != nil {
		t.Error(all, none)
	}
}

// The predecessors of limits end while measures hold, and the measures stay.
func TestPredecessorsEndUnderMeasures(t *testing.T) {
	d := newDesk(t, "rules: [{ name: api, per: ip, limits: 10/minute }]\n")
	d.set(ban("b-1", "ip=192.0.2.7", ""))
	d.reload("rules: [{ name: api, per: ip, limits: { rate: 10/minute, algorithm: fixed_window } }]\n")
	d.wait(time.Hour)
	d.admits(1, request("GET /", "ip", "192.0.2.8"))
	d.refuses(request("GET /", "ip", "192.0.2.7"))
	if f := d.live.force.Load(); f.before != nil || f.measures == nil {
		t.Errorf("%+v", f)
	}
	memo, err := d.live.Remember()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.live.Recall(memo); err != nil {
		t.Fatal(err)
	}
	d.refuses(request("GET /", "ip", "192.0.2.7"))
}

// Setting the same measures again makes no new limits: stores and layers know limits by their
// addresses, and would otherwise fill with those of before.
func TestLimitsOfMeasuresStay(t *testing.T) {
	o, b := override("o-1", "user=42", "api", "5000/minute"), ban("b-1", "user=43", "")
	live := measured(t, measureRules, o, b)
	limits := func() (all []*tidegate.Limit) {
		for _, user := range []string{"42", "43"} {
			all = append(all, live.Match(request("GET /api/", "header X-User", user), nil)[0].Limit)
		}
		return all
	}
	before := limits()
	other := override("o-2", "user=44", "api", "5000/minute")
	live.SetMeasures([]Measure{other, b, o})
	if after := limits(); after[0] != before[0] || after[1] != before[1] {
		t.Errorf("%v, before %v", after, before)
	}
	if l := live.Match(request("GET /api/", "header X-User", "44"), nil)[0].Limit; l != before[0] {
		t.Errorf("%v is not shared", l)
	}
	live.SetMeasures([]Measure{b})
	if n := len(live.force.Load().measures.variants); n != 0 {
		t.Errorf("%d variants of measures that are gone", n)
	}
}

// Whoever asks because of a measure does not count as a rule that asked: the metric of missing
// identities is about rules.
func TestMeasuresCountNobodyAsMissing(t *testing.T) {
	live := measured(t, "identify: { user: header X-User, plan: header X-Plan }\nrules: [{ name: api, match: /api/, per: user, limits: 5/minute }]\n",
		ban("b-1", "user=42", ""), ban("b-2", "plan=free", ""))
	for range 3 {
		live.Match(request("GET /other"), nil)
		live.Match(request("GET /api/"), nil)
	}
	for _, m := range live.Set().MissingIdentities() {
		if want := map[string]int64{"user": 3, "ip": 3}[m.Identity]; m.Requests != want {
			t.Errorf("%s is missed %d times, want %d", m.Identity, m.Requests, want)
		}
	}
}

// Every reading of a path is held to measures: a ban by path cannot be spelled away.
func TestMeasuresOfReadings(t *testing.T) {
	live := measured(t, "identify: { file: \"path {name}\" }\nrules: [{ name: files, match: \"/files/{name}\", per: [ip, file], limits: 5/minute }, { name: all, per: ip, limits: 9/minute }]\n",
		ban("b-1", "path=/files/secret", ""), override("o-1", "file=big", "files", "1/minute"))
	f := liveHeldTo(t, live)
	twisted := request("GET /files/x/../secret")
	f(twisted, "(ban): deny /files/secret")
	plain := request("GET /files/secret")
	f(plain, "(ban): deny /files/secret")
	escaped := request("GET /files/big")
	f(escaped, "files: 1/1m0s sliding_log per ip,file 1:@3:big", "all: 9/1m0s sliding_log per ip @")
}

// Ten thousand measures, of every kind, are found as if each were alone.
func TestTenThousandMeasures(t *testing.T) {
	const n = 10_000
	all := make([]Measure, n)
	for i := range all {
		id := fmt.Sprintf("m-%d", i)
		switch i % 5 {
		case 0:
			all[i] = override(id, fmt.Sprintf("user=u%d", i), "api", fmt.Sprintf("%d/minute", i+1))
		case 1:
			all[i] = ban(id, fmt.Sprintf("user=u%d", i), "")
		case 2:
			all[i] = ban(id, "ip="+netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}).String()+"/24", "")
		case 3:
			all[i] = override(id, fmt.Sprintf("plan=pro user=u%d", i), "api", "unlimited")
		case 4:
			all[i] = ban(id, fmt.Sprintf("user=u%d", i), "api")
		}
	}
	live := NewLive(parse(t, measureRules, Config{}))
	if problems := live.SetMeasures(all); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	for i := range n {
		user := fmt.Sprintf("u%d", i)
		got := live.Match(request("GET /api/", "header X-User", user, "header X-Plan", "pro", "ip", "192.0.2.1"), nil)[0]
		want := ""
		switch i % 5 {
		case 0:
			want = fmt.Sprintf("api %d", i+1)
		case 1:
			want = "(ban) 0"
		case 2:
			want = "api 100"
			in := live.Match(request("GET /healthz", "ip", fmt.Sprintf("10.%d.%d.77", byte(i>>8), byte(i))), nil)
			if len(in) != 1 || in[0].Limit.Name != BanRule {
				t.Fatalf("%d: %s", i, show(in))
			}
		case 3:
			want = "site 20"
		case 4:
			want = "api 0"
		}
		if is := fmt.Sprint(got.Limit.Name, " ", got.Limit.Events); is != want {
			t.Fatalf("%d: held to %q, want %q", i, is, want)
		}
	}
	// None is looked at that is kept under another value.
	for i := range live.force.Load().measures.bans.names {
		for text, orders := range live.force.Load().measures.bans.names[i].texts {
			if len(orders) > 1 {
				t.Fatalf("%d orders under %s", len(orders), text)
			}
		}
	}
}

// While rules and measures are exchanged, every request is held to a whole set of both: to the
// limit of the rule or of the override of that set, or to the ban.
func TestMeasuresUnderLoad(t *testing.T) {
	const user = "identify: { user: header X-User }\n"
	sets := []*Set{
		parse(t, user+"rules: [{ name: api, per: user, limits: 10/minute, block: 1m }]\n", Config{}),
		parse(t, user+"rules: [{ name: api, per: user, limits: { rate: 10/minute, algorithm: fixed_window }, for: [{ when: { user: bob }, limits: 11/minute }] }]\n", Config{}),
		parse(t, user+"rules: [{ name: other, per: user, limits: 10/minute }]\n", Config{}),
	}
	live := NewLive(sets[0])
	versions := [][]Measure{
		nil,
		{override("o-1", "user=ann", "api", "40/minute")},
		{override("o-1", "user=ann", "api", "50/minute"), ban("b-1", "user=bob", "")},
		{ban("b-2", "user=ann", "api"), ban("b-3", "user=bob", "api")},
	}
	var workers sync.WaitGroup
	stop := make(chan struct{})
	for _, who := range []string{"ann", "bob", "eve"} {
		workers.Go(func() {
			r := request("GET /", "header X-User", who)
			var dst []tidegate.Check
			for {
				select {
				case <-stop:
					return
				default:
				}
				r.Reset()
				r.Method, r.Path, r.Values = "GET", "/", values{"header X-User": who}
				dst = live.Match(r, dst[:0])
				for _, c := range dst {
					l := c.Limit
					fine := l.Algorithm == tidegate.Deny && len(dst) == 1 && who != "eve" || l.Terms.Role == tidegate.Blocks || l.Events == 10 ||
						who == "ann" && l.Name == "api" && (l.Events == 40 || l.Events == 50) || who == "bob" && l.Events == 11
					if !fine {
						t.Errorf("%s is held to\n%s", who, show(dst))
						return
					}
				}
				if len(dst) == 0 {
					t.Errorf("%s is held to nothing", who)
					return
				}
			}
		})
	}
	workers.Go(func() {
		for range 300 {
			for _, set := range sets {
				live.Swap(set)
			}
		}
	})
	for i := range 2000 {
		all := versions[i%len(versions)]
		for j := range all {
			_ = live.Set().CheckMeasure(&all[j])
		}
		live.SetMeasures(all)
		live.Measures()
		live.Explain(request("GET /", "header X-User", "ann"))
	}
	close(stop)
	workers.Wait()
}
