package admin

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// keys asks and returns the whole answer.
func (d *desk) keys(t *testing.T, method, target, body string) Keys {
	t.Helper()
	w := d.ask(method, target, body)
	var k Keys
	if err := json.Unmarshal(w.Body.Bytes(), &k); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return k
}

// Whatever a rule counts by, a reset says whether there was anything to reset.
func TestResetSaysWhatWasUsed(t *testing.T) {
	for name, limit := range map[string]string{
		"sliding_log":    "limits: 5/minute",
		"sub_windows":    "limits: 100/minute",
		"token_bucket":   "limits: { rate: 5/minute, algorithm: token_bucket }",
		"fixed_window":   "limits: { rate: 5/minute, algorithm: fixed_window }",
		"sliding_window": "limits: { rate: 5/minute, algorithm: sliding_window }",
		"leaky_bucket":   "limits: { rate: 5/minute, algorithm: leaky_bucket }, queue: { places: 5, max_wait: 1m }",
		"quota":          "quota: { amount: 5/month }",
		"two limits":     "limits: [5/minute, 100/hour]",
		"soft":           "limits: 10/minute, over: { soft: 10% }",
		"block":          "limits: 1/minute, block: 15m",
		"concurrency":    "concurrency: { slots: 2, lease: 30s }",
		"ceiling":        "limits: { rate: 100/minute, algorithm: sub_windows, ceiling: true }",
	} {
		d := newDesk(t, "identify: { user: header X-User }\nrules: [{ name: api, match: /api/, per: user, "+limit+" }]\n", nil)
		used := func(user string) (n int) {
			for _, c := range d.keys(t, "POST", "/keys/reset", `{"as":{"user":"`+user+`"}}`).Counters {
				if c.WasUsed {
					n++
				}
				if c.ResetAfter > 0 || !c.OK {
					t.Errorf("%s: not reset: %+v", name, c)
				}
			}
			return n
		}
		if n := used("nobody"); n != 0 {
			t.Errorf("%s: %d counters of nobody were used", name, n)
		}
		question := Question{Method: "GET", URL: "/api/", As: pairs([]string{"user", "42"})}
		r, err := question.request()
		if err != nil {
			t.Fatal(err)
		}
		d.gate.Enter(t.Context(), r) // and does not leave, so that a slot is held
		if n := used("43"); n != 0 {
			t.Errorf("%s: %d counters of somebody else were used", name, n)
		}
		if n := used("42"); n == 0 {
			t.Errorf("%s: nothing was used", name)
		}
		if n := used("42"); n != 0 {
			t.Errorf("%s: %d were used after a reset", name, n)
		}
	}
}

// partial is a store that cannot say where the keys of some rules stand.
type partial struct {
	*memory.Store
	away string
}

func (s partial) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if strings.HasPrefix(checks[0].Limit.Terms.Rule, s.away) {
		return tidegate.Decision{}, errors.New("master 2 is away")
	}
	return s.Store.Take(ctx, checks, n)
}

// What the store cannot say is marked; the rest is shown.
func TestUnknownCountersAreMarked(t *testing.T) {
	d := newDesk(t, shop, func(o *Options) { o.Store = partial{memory.New(), "search"} })
	unknown, known := 0, 0
	for _, c := range d.keys(t, "GET", "/keys?as=user=42", "").Counters {
		if (c.Unknown != "") != (c.Rule == "search") {
			t.Errorf("%+v", c)
		}
		if c.Unknown == "" {
			known++
		} else if unknown++; c.Unknown != "master 2 is away" || c.Local {
			t.Errorf("%+v", c)
		}
	}
	if unknown != 2 || known < 5 {
		t.Errorf("%d are unknown, %d known", unknown, known)
	}
	problem(t, d.ask("GET", "/keys?rule=search&as=user=42", ""), 503, "cannot say where search stands: master 2 is away")
}

// A counter says who it counts, part by part, whatever bytes the key is made of.
func TestSubjects(t *testing.T) {
	d := newDesk(t, `
identify: { user: header X-User, who: [header X-User, cookie session], order: "path {id}" }
rules:
  - { name: one, match: /one, per: user, limits: 5/minute }
  - { name: two, match: ["GET /two/{id}", POST /two], per: [user, route], limits: 5/minute }
  - { name: three, match: "/three/{id}", per: [order, who, ip], limits: 5/minute }
  - { name: all, match: /all, per: everyone, limits: 5/minute }
`, nil)
	long := strings.Repeat("x", 500)
	f := func(url string, as map[string]string, want ...string) {
		t.Helper()
		raw, err := json.Marshal(Question{Method: "GET", URL: url, As: as, Rule: strings.Split(url, "/")[1]})
		if err != nil {
			t.Fatal(err)
		}
		var parts []rules.SubjectPart
		for i := 0; i < len(want); i += 2 {
			parts = append(parts, rules.SubjectPart{Name: want[i], Value: want[i+1]})
		}
		for _, c := range d.keys(t, "POST", "/keys/reset", string(raw)).Counters {
			if !reflect.DeepEqual(c.Subject, parts) {
				t.Errorf("%s by %v: %q, want %q", url, as, c.Subject, parts)
			}
		}
	}
	f("/one", map[string]string{"user": "42"}, "user", "42")
	f("/one", map[string]string{"user": long}, "user", long)
	f("/one", map[string]string{"user": "2:4211:\x1b[2J\n"}, "user", "2:4211:\x1b[2J\n")
	f("/two/7", map[string]string{"user": "42"}, "user", "42", "route", "GET /two/{id}")
	f("/two/7", map[string]string{"user": long}, "user", long, "route", "GET /two/{id}")
	f("/three/7", map[string]string{"who": "42", "ip": "192.0.2.1"}, "order", "7", "who/header X-User", "42", "ip", "192.0.2.1")
	f("/all", nil, "everyone", "")
}

// A name that the rules do not have changes nothing, and that is told.
func TestUnnamedIdentities(t *testing.T) {
	d := newDesk(t, shop, nil)
	got := d.keys(t, "GET", "/keys?as=user=42&as=rol=admin&as=zzz=1", "")
	if want := []Unnamed{{"rol", "role"}, {"zzz", ""}}; !reflect.DeepEqual(got.Unnamed, want) || len(got.Counters) == 0 {
		t.Errorf("got %+v", got)
	}
	if got := d.keys(t, "GET", "/keys?as=user=42&as=role=admin&as=ip=192.0.2.1", ""); len(got.Unnamed) > 0 {
		t.Errorf("got %+v", got.Unnamed)
	}
}
