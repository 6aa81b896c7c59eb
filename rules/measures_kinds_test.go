package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// Of a rule that is enforced for a share of its keys, an override changes the limits of both
// kinds of keys, and not which is which.
func TestOverrideOfAShare(t *testing.T) {
	live := measured(t, "identify: { user: header X-User }\nrules: [{ name: api, per: user, limits: 10/minute, block: 5m, enforce: 50% }]\n",
		override("o-1", "everyone=", "api", "20/minute"), override("o-2", "user=u7", "api", "unlimited"))
	kinds := make(map[bool]int)
	for i := range 100 {
		user := fmt.Sprintf("u%d", i)
		enforced := live.Set().find("api").enforcedFor(user)
		kinds[enforced]++
		got := live.Match(request("GET /", "header X-User", user), nil)
		want := fmt.Sprintf("api: 20/1m0s sliding_log per user %s advisory tries\n", user)
		switch {
		case user == "u7":
			want = ""
		case enforced:
			want = fmt.Sprintf("api: 1/5m0s sliding_log per user#block %s cost 0 blocks\napi: 20/1m0s sliding_log per user %s\n", user, user)
		}
		if show(got) != want {
			t.Errorf("held to\n%swant\n%s", show(got), want)
		}
	}
	if kinds[true] < 20 || kinds[false] < 20 {
		t.Error(kinds)
	}
}

// An elastic limit stays elastic under an override: the nominal one is that of the override.
func TestOverrideOfAnElasticLimit(t *testing.T) {
	for _, cpu := range []float64{0.5, 0.9} {
		set := parse(t, "rules: [{ name: api, per: ip, limits: 10/minute, over: { elastic: { while: cpu < 80%, up_to: 2x } } }]\n", Config{Signals: steadySignal(cpu)})
		live := NewLive(set)
		live.SetMeasures([]Measure{override("o-1", "ip=192.0.2.7", "api", "40/minute")})
		got := show(live.Match(request("GET /", "ip", "192.0.2.7"), nil))
		want := "api: 40/1m0s sliding_log per ip#nominal 192.0.2.7\napi: 80/1m0s sliding_log per ip 192.0.2.7\n"
		if cpu < 0.8 {
			want = "api: 40/1m0s sliding_log per ip#nominal 192.0.2.7 advisory marks\napi: 80/1m0s sliding_log per ip 192.0.2.7\n"
		}
		if got != want {
			t.Errorf("at %v held to\n%swant\n%s", cpu, got, want)
		}
	}
}

type steadySignal float64

func (s steadySignal) Signal(string) (float64, bool) { return float64(s), true }

// An override also takes the place of numbers that come from the caller, and keeps the day on
// which the caller's quota begins.
func TestOverrideOfLimitsOfCallers(t *testing.T) {
	const src = `
identify: { user: header X-User, model: header X-Model, plan: header X-Plan }
rules:
  - { name: rpm, match: /rpm, per: user, limits: { from: header X-Rpm, per: minute, max: 10000, else: 100 } }
  - { name: plan, match: /plan, per: user, quota: { amount: 100/month, anchor: header X-Day } }
  - name: table
    match: /table
    per: [user, model]
    limits: { by: [model, plan], rows: { large: { free: 5/minute, pro: 50/minute }, small: { free: 9/minute } }, else: 1/minute }
`
	live := measured(t, src, override("o-1", "user=ann", "rpm", "7/minute"), override("o-2", "user=ann", "plan", "700/month"), override("o-3", "user=ann", "table", "70/minute"))
	plain := NewLive(live.Set())
	f := func(path string, events int64, pairs ...string) {
		t.Helper()
		pairs = append(pairs, "header X-User", "ann")
		r := request("GET "+path, pairs...)
		got, was := live.Match(r, nil), plain.Match(r, nil)
		if len(got) != 1 || got[0].Limit.Events != events || got[0].Key != was[0].Key || got[0].Limit.Identity() != was[0].Limit.Identity() {
			t.Errorf("%s %v: held to\n%swant %d, before\n%s", path, pairs, show(got), events, show(was))
		}
	}
	f("/rpm", 7)
	f("/rpm", 7, "header X-Rpm", "5000")
	f("/plan", 700)
	for day := 1; day <= 31; day++ {
		f("/plan", 700, "header X-Day", fmt.Sprint(day))
	}
	for _, model := range []string{"large", "small", "invented"} {
		for _, plan := range []string{"free", "pro", ""} {
			f("/table", 70, "header X-Model", model, "header X-Plan", plan)
		}
	}
}

// A ban of a rule holds if the rule is for one of the readings of a path.
func TestBanOfARuleInOneReading(t *testing.T) {
	live := measured(t, "rules: [{ name: files, match: /files/, per: ip, limits: 5/minute }, { name: all, per: ip, limits: 9/minute }]\n", ban("b-1", "ip=192.0.2.7", "files"))
	r := request("GET /files/a", "ip", "192.0.2.7")
	hits := 0
	for _, twisted := range []string{"/x/../files/a", "//files/a", "/files/./a", "/x;y/../files/a"} {
		r.Path, r.RawPath = twisted, ""
		before := NewLive(live.Set()).Match(r, nil)
		hit := slices.ContainsFunc(before, func(c tidegate.Check) bool { return c.Limit.Name == "files" })
		hits += b2i(hit)
		got := live.Match(r, nil)
		if banned := len(got) == 1 && got[0].Limit.Algorithm == tidegate.Deny; banned != hit {
			t.Errorf("%s: held to\n%sbefore\n%s", twisted, show(got), show(before))
		}
		if e := live.Explain(r); (e.Ban != nil) != hit {
			t.Errorf("%s: explained by %v", twisted, e.Ban)
		}
	}
	if hits == 0 {
		t.Error("the rule is for none of them")
	}
}

// A rule that is replaced by another is not overridden there, and a ban of it does not hold.
func TestMeasuresOfAReplacedRule(t *testing.T) {
	live := measured(t, "identify: { user: header X-User }\nrules: [{ name: api, match: /api/, per: user, limits: 5/minute }, { name: events, match: /api/events, per: user, limits: 9/minute, instead_of: api }]\n",
		ban("b-1", "user=eve", "api"), override("o-1", "user=ann", "api", "50/minute"), override("o-2", "user=bob", "events", "90/minute"))
	f := liveHeldTo(t, live)
	f(request("GET /api/events", "header X-User", "eve"), "events: 9/1m0s sliding_log per user eve")
	f(request("GET /api/", "header X-User", "eve"), "api: deny eve")
	f(request("GET /api/events", "header X-User", "ann"), "events: 9/1m0s sliding_log per user ann")
	f(request("GET /api/events", "header X-User", "bob"), "events: 90/1m0s sub_windows per user bob")
}

// Values are spelled as those of requests are: hosts without port and case, paths without case
// where the upstream has none, accounts as `identify` says.
func TestMeasuresOfSpellings(t *testing.T) {
	set := parse(t, "identify: { account: lower trim header X-User }\nrules: [{ name: api, per: account, limits: 5/minute }]\n", Config{IgnoreCase: true})
	live := NewLive(set)
	f := func(who map[string]string, want bool, r *tidegate.Request) {
		t.Helper()
		m := ban("b-1", "", "")
		m.As = who
		if err := set.CheckMeasure(&m); err != nil {
			t.Fatal(err)
		}
		live.SetMeasures([]Measure{m})
		if got := show(live.Match(r, nil)); strings.HasPrefix(got, "(ban)") != want {
			t.Errorf("%v: held to %s", who, got)
		}
	}
	f(map[string]string{"host": "Shop.Example:8080"}, true, request("GET shop.example./x"))
	f(map[string]string{"host": "shop.example"}, true, request("GET SHOP.example:443/x"))
	f(map[string]string{"host": "shop.example"}, false, request("GET shop.example.org/x"))
	f(map[string]string{"path": "/Admin"}, true, request("GET /aDMIN"))
	f(map[string]string{"path": "/Admin"}, false, request("GET /admins"))
	f(map[string]string{"account": " Ann "}, true, request("GET /", "header X-User", "ANN"))
	f(map[string]string{"account": "ann"}, false, request("GET /", "header X-User", "anna"))
	f(map[string]string{"ip": "::ffff:192.0.2.7"}, true, request("GET /", "ip", "192.0.2.7"))
	f(map[string]string{"ip": "::ffff:192.0.2.0/120"}, true, request("GET /", "ip", "192.0.2.200"))
	f(map[string]string{"ip": "2001:DB8:0:0::1"}, true, request("GET /", "ip", "2001:db8::/64", "addr", "2001:db8::2"))
	f(map[string]string{"ip": "2001:db8::1/128"}, false, request("GET /", "ip", "2001:db8::/64", "addr", "2001:db8::2"))
	f(map[string]string{"ip": "2001:db8::1/128"}, true, request("GET /", "ip", "2001:db8::/64", "addr", "2001:db8::1"))
	f(map[string]string{"ip": "2001:db8::/64"}, true, request("GET /", "ip", "2001:db8::/64")) // the front end knows no more
}

// A log that becomes too large for timestamps under an override is counted in parts, in the same
// counter: nobody is refilled when it begins, nor when it ends.
func TestOverrideOfALog(t *testing.T) {
	for _, rule := range []string{"limits: 50/hour", "limits: { rate: 50/hour, algorithm: sliding_log }", "limits: { rate: 50/hour, algorithm: sliding_log, count_rejected: true }"} {
		for _, number := range []int{60, 5_000, 20_000, 1_000_000} {
			d := newDesk(t, "rules: [{ name: api, per: ip, "+rule+" }]\n")
			r := request("GET /", "ip", "192.0.2.7")
			d.admits(50, r)
			d.set(override("o-1", "ip=192.0.2.7", "api", fmt.Sprintf("%d/hour", number)))
			r.Cost = int64(number - 50)
			d.admits(1, r)
			r.Cost = 1
			d.refuses(r)
			d.set()
			d.refuses(r)
			d.wait(2 * time.Hour)
			d.admits(50, r)
			d.refuses(r)
		}
	}
}
