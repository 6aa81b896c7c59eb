package rules

import (
	"testing"
	"time"
)

// An override takes the place of the limits that the rule has for the request, whichever
// branch or tier these are of; what it does not name stays.
func TestOverride(t *testing.T) {
	live := measured(t, measureRules,
		override("o-1", "user=42", "api", "5000/minute"),
		override("o-2", "user=vip", "api", "7/minute", "9/hour"),
		override("o-3", "user=43", "api", "unlimited"),
		override("o-4", "user=44 plan=pro", "api", "{ rate: 300/minute, algorithm: fixed_window }"),
		override("o-5", "account=ANN", "login", "50/15m"),
		override("o-6", "account=bob", "login", "unlimited"),
		override("o-7", "ip=192.0.2.7", "site", "90000/day"),
		override("o-8", "ip=192.0.2.8", "site", "9 slots"),
		override("o-9", "ip=192.0.2.9", "site", "1/second"),
		override("o-10", "ip=192.0.2.10", "site", "unlimited"),
		override("o-11", "user=42 order=7", "orders", "50/minute"),
		override("o-12", "user=42", "plans", "2000/month"),
	)
	f := liveHeldTo(t, live)
	const rest = "site: 20/1s sliding_log per ip @"
	rests := func(first ...string) []string {
		return append(first, rest, "site: 5000/day quota per ip @", "site: 3 slots, lease 30s per ip @")
	}
	f(request("GET /api/", "header X-User", "42"), rests("api: 5000/1m0s sub_windows per user 42")...)
	f(request("GET /api/", "header X-User", "42", "header X-Plan", "pro"), rests("api: 5000/1m0s sub_windows per user 42")...)
	f(request("GET /api/", "header X-User", "vip"), rests("api: 7/1m0s sub_windows per user vip", "api: 9/1h0m0s sliding_log per user vip")...)
	f(request("GET /api/", "header X-User", "43"), rests()...)
	f(request("GET /api/", "header X-User", "44"), rests("api: 10/1m0s sub_windows per user 44")...)
	f(request("GET /api/", "header X-User", "44", "header X-Plan", "pro"), rests("api: 300/1m0s fixed_window per user 44")...)
	f(request("GET /api/", "header X-User", "1", "header X-Plan", "pro"), rests("api: 100/1m0s sub_windows per user 1")...)
	f(request("POST /login", "body.email", " Ann"), rests("login: 1/10m0s sliding_log per account#block ann cost 0 blocks", "login: 50/15m0s sliding_log per account ann")...)
	f(request("POST /login", "body.email", "Bob"), rests()...)
	f(request("GET /", "ip", "192.0.2.7"), "site: 20/1s sliding_log per ip 192.0.2.7", "site: 90000/day quota per ip 192.0.2.7", "site: 3 slots, lease 30s per ip 192.0.2.7")
	f(request("GET /", "ip", "192.0.2.8"), "site: 20/1s sliding_log per ip 192.0.2.8", "site: 5000/day quota per ip 192.0.2.8", "site: 9 slots, lease 30s per ip 192.0.2.8")
	f(request("GET /", "ip", "192.0.2.9"), "site: 1/1s sliding_log per ip 192.0.2.9", "site: 5000/day quota per ip 192.0.2.9", "site: 3 slots, lease 30s per ip 192.0.2.9")
	f(request("GET /", "ip", "192.0.2.10"))
	f(request("GET /orders/7", "header X-User", "42"), rests("orders: 50/1m0s sliding_log per user,order 2:421:7")...)
	f(request("GET /orders/8", "header X-User", "42"), rests("orders: 5/1m0s sliding_log per user,order 2:421:8")...)
	f(request("GET /plans", "header X-User", "42"), rests("plans: 2000/month quota per user 42")...)
	f(request("GET /healthz", "ip", "192.0.2.9")) // exempt

	live.SetMeasures(nil)
	f(request("GET /api/", "header X-User", "42"), rests("api: 10/1m0s sub_windows per user 42")...)
	if all, problems := live.Measures(); all != nil || problems != nil {
		t.Error(all, problems)
	}
}

// A ban refuses before everything else, an exemption included; one that names a rule does so
// where that rule is for the request.
func TestBan(t *testing.T) {
	told := ban("b-6", "user=46", "")
	told.Message = "Please call us."
	live := measured(t, measureRules,
		ban("b-1", "user=42", ""),
		ban("b-2", "ip=192.0.2.0/24", ""),
		ban("b-3", "user=43", "orders"),
		ban("b-4", "ip=2001:db8::1", ""),
		ban("b-5", "net=198.51.100.77 method=POST", "site"),
		told,
		override("o-1", "user=42", "api", "unlimited"),
	)
	f := liveHeldTo(t, live)
	f(request("GET /api/", "header X-User", "42"), "(ban): deny 42")
	f(request("GET /healthz", "header X-User", "42"), "(ban): deny 42")
	f(request("GET /healthz", "ip", "192.0.2.200", "header X-User", "eve"), "(ban): deny 192.0.2.0/24")
	f(request("GET /orders/7", "header X-User", "43", "ip", "10.0.0.1"), "orders: deny 43")
	f(request("GET /plans", "header X-User", "43", "ip", "10.0.0.1"), "plans: 1000/month quota per user 43",
		"site: 20/1s sliding_log per ip 10.0.0.1", "site: 5000/day quota per ip 10.0.0.1", "site: 3 slots, lease 30s per ip 10.0.0.1")
	// The whole /64 counts as one caller, so it is banned as one.
	f(request("GET /", "ip", "2001:db8::/64", "addr", "2001:db8::ffff"), "(ban): deny 2001:db8::1")
	f(request("GET /", "ip", "2001:db8:0:1::/64", "addr", "2001:db8:0:1::1"),
		"site: 20/1s sliding_log per ip 2001:db8:0:1::/64", "site: 5000/day quota per ip 2001:db8:0:1::/64", "site: 3 slots, lease 30s per ip 2001:db8:0:1::/64")
	f(request("POST /healthz", "ip", "198.51.100.1"), "site: deny 4:POST13:198.51.100.77")
	f(request("GET /healthz", "ip", "198.51.100.1"))

	d := live.Match(request("GET /", "header X-User", "42"), nil)[0].Limit
	if d.Terms.Rule != BanRule || d.Terms.Answer.Status != 0 || d.Terms.Answer.Message != "" {
		t.Errorf("%+v", d.Terms)
	}
	if d := live.Match(request("GET /", "header X-User", "46"), nil)[0].Limit; d.Terms.Answer.Message != "Please call us." {
		t.Errorf("%+v", d.Terms)
	}
}

// A measure ends at the instant of its until, and not before.
func TestMeasureEnds(t *testing.T) {
	d := newDesk(t, measureRules)
	over, banned := override("o-1", "user=42", "api", "5000/minute"), ban("b-1", "user=43", "")
	over.Until, banned.Until = d.clock.Add(time.Second), d.clock.Add(time.Second)
	d.live.SetMeasures([]Measure{over, banned})
	f := liveHeldTo(t, d.live)
	rests := []string{"site: 20/1s sliding_log per ip @", "site: 5000/day quota per ip @", "site: 3 slots, lease 30s per ip @"}
	for _, at := range []time.Duration{0, time.Second - 1} {
		d.clock = over.Until.Add(at - time.Second)
		f(request("GET /api/", "header X-User", "42"), append([]string{"api: 5000/1m0s sub_windows per user 42"}, rests...)...)
		f(request("GET /api/", "header X-User", "43"), "(ban): deny 43")
		if all, _ := d.live.Measures(); len(all) != 2 {
			t.Errorf("after %s: %v", at, all)
		}
	}
	d.clock = over.Until
	f(request("GET /api/", "header X-User", "42"), append([]string{"api: 10/1m0s sub_windows per user 42"}, rests...)...)
	f(request("GET /api/", "header X-User", "43"), append([]string{"api: 10/1m0s sub_windows per user 43"}, rests...)...)
	if all, _ := d.live.Measures(); len(all) != 0 {
		t.Error(all)
	}
}

// Explain says which measure decides, by whom it was ordered and until when. Under a ban it
// still tells what the rules would do.
func TestExplainMeasures(t *testing.T) {
	o := override("o-1", "user=42", "api", "5000/minute")
	o.Until = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	live := measured(t, measureRules, o, ban("b-1", "user=43", ""), ban("b-2", "user=44", "orders"), override("o-2", "user=43", "api", "unlimited"))
	f := func(line, user, banned string, overrides map[string]string) {
		t.Helper()
		r := request(line, "header X-User", user)
		e := live.Explain(r)
		got := ""
		if e.Ban != nil {
			got = e.Ban.String()
		}
		if got != banned {
			t.Errorf("%s %s: banned by %q, want %q", line, user, got, banned)
		}
		for _, x := range e.Rules {
			got := ""
			if x.Override != nil {
				got = x.Override.String()
			}
			if got != overrides[x.Name] {
				t.Errorf("%s %s: %s is overridden by %q, want %q", line, user, x.Name, got, overrides[x.Name])
			}
			if x.Name == "api" && x.Applies && !x.Unlimited && len(x.Checks) == 0 {
				t.Errorf("%s %s: no checks", line, user)
			}
		}
	}
	f("GET /api/", "42", "", map[string]string{"api": "override o-1 of user=42 for rule api: 5000/minute, by ann, until 2100-01-01T00:00:00Z (a test)"})
	f("GET /api/", "1", "", nil)
	f("GET /api/", "43", "ban b-1 of user=43, by ann, until it is ended (a test)", map[string]string{"api": "override o-2 of user=43 for rule api: unlimited, by ann, until it is ended (a test)"})
	f("GET /orders/7", "44", "ban b-2 of user=44 for rule orders, by ann, until it is ended (a test)", nil)
	f("GET /api/", "44", "", nil)
}
