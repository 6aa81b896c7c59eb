package envoy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// counter is what tells two counters apart: the identity of the limit and the key.
func counter(d *Domain, descriptor string) string {
	e := entries(descriptor)
	r := d.Find(e)
	return r.Limits[0].Identity() + "\x00" + r.Key(e)
}

func TestCounters(t *testing.T) {
	stars, shop := load(t, "stars.yaml").Domain("stars"), load(t, "basic.yaml").Domain("shop")
	f := func(d *Domain, a, b string, same bool) {
		t.Helper()
		if is := counter(d, a) == counter(d, b); is != same {
			t.Errorf("%s and %s have one counter: %v, want %v", a, b, is, same)
		}
	}
	f(shop, "plan=silver", "plan=silver", true)
	f(shop, "plan=silver", "plan=bronze", false)
	f(shop, "plan=silver", "plan=gold", false)
	f(shop, "tenant=acme, path=/", "tenant=acme, path=/a", false)
	f(stars, "wild=foo1", "wild=foo1", true)
	f(stars, "wild=foo1", "wild=foo2", false)
	f(stars, "files=files/a.pdf", "files=files/b.csv", true)
	f(stars, "own=own/a", "own=own/b", false)
	f(stars, "route=/api/a, method=GET", "route=/api/b, method=GET", true)
	f(stars, "route=/api/a, method=GET", "route=/api/a, method=POST", false)
	// Of two levels with one key, one is shared.
	f(stars, "path=path/a, path=x.pdf, user=ann", "path=path/b, path=x.pdf, user=ann", true)
	f(stars, "path=path/a, path=x.pdf, user=ann", "path=path/a, path=y.pdf, user=ann", false)
	f(stars, "path=path/a, path=x.pdf, user=ann", "path=path/a, path=x.pdf, user=bob", false)
}

// Keys that envoyproxy/ratelimit joins by underscores and dots are apart here, in every
// division of the same text into domain, keys and values.
func TestJoinedKeysAreApart(t *testing.T) {
	text := "a_b_c_d_e"
	cut := func(parts ...int) []string {
		all := strings.Split(text, "_")
		var got []string
		for i := range parts {
			end := len(all)
			if i+1 < len(parts) {
				end = parts[i+1]
			}
			got = append(got, strings.Join(all[parts[i]:end], "_"))
		}
		return got
	}
	seen := make(map[string]string)
	add := func(domain string, e []Entry) {
		var config strings.Builder
		fmt.Fprintf(&config, "domain: %s\n", domain)
		for i := range e {
			indent := strings.Repeat("  ", i)
			fmt.Fprintf(&config, "%[1]sdescriptors:\n%[1]s- key: %[2]s\n", indent, e[i].Key)
		}
		fmt.Fprintf(&config, "%s  rate_limit: { unit: minute, requests_per_unit: 5 }\n", strings.Repeat("  ", len(e)-1))
		r := parse(t, config.String()).Domain(domain).Find(e)
		id := r.Limits[0].Identity() + "\x00" + r.Key(e)
		what := fmt.Sprint(domain, e)
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s have one counter", what, other)
		}
		seen[id] = what
	}
	for a := 1; a < 4; a++ {
		for b := a + 1; b < 5; b++ {
			p := cut(0, a, b)
			add(p[0], []Entry{{p[1], p[2]}})
			for c := b + 1; c < 5; c++ {
				p := cut(0, a, b, c)
				add(p[0], []Entry{{p[1], p[2]}, {p[3], ""}})
				add(p[0], []Entry{{p[1], ""}, {p[2], p[3]}})
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d were compared", len(seen))
	}
}

// No two different descriptors of random values have one counter, however long.
func TestKeysAreInjective(t *testing.T) {
	set := parse(t, `
domain: d
descriptors:
  - key: a
    descriptors:
      - key: b
        descriptors:
          - { key: c, rate_limit: { unit: minute, requests_per_unit: 5 } }
`)
	d := set.Domain("d")
	rng := rand.New(rand.NewPCG(1, 2))
	seen := make(map[string]string)
	for range 20_000 {
		e := []Entry{{Key: "a"}, {Key: "b"}, {Key: "c"}}
		for i := range e {
			n := rng.IntN(4)
			if rng.IntN(20) == 0 {
				n = rng.IntN(100)
			}
			for range n {
				e[i].Value += string("ab1:_"[rng.IntN(5)])
			}
		}
		key, what := d.Find(e).Key(e), fmt.Sprintf("%q", e)
		if other, ok := seen[key]; ok && other != what {
			t.Fatalf("%s and %s have the key %q", what, other, key)
		}
		seen[key] = what
		if string(d.Find(e).AppendKey([]byte("before"), e)) != "before"+key {
			t.Fatal("AppendKey appends another key")
		}
	}
}

// Scopes can be read, and tell all rules apart, whatever is in their keys and values.
func TestScopes(t *testing.T) {
	for _, s := range []struct {
		want     string
		steps    []step
		override bool
	}{
		{"envoy shop: tenant=acme path", []step{{key: "tenant", value: "acme"}, {key: "path"}}, false},
		{"envoy shop: path~/api/*", []step{{key: "path", value: "/api/*"}}, false},
		{"envoy shop: path~~/api/*", []step{{key: "path", value: "/api/*", shared: true}}, false},
		{"envoy shop: \"a b\"=\"c=d\"", []step{{key: "a b", value: "c=d"}}, false},
		{"envoy shop: override", nil, true},
		{"envoy shop: \"override\"", []step{{key: "override"}}, false},
	} {
		if got := scope("shop", s.steps, s.override); got != s.want {
			t.Errorf("got %s, want %s", got, s.want)
		}
	}
	// All short texts of the letters that scope uses itself.
	texts := []string{"a"}
	letters := []string{"a", " ", "=", "~", "*", ":", "\"", "\\", "#", "\xff", "é"}
	for _, x := range letters {
		for _, y := range append(letters, "") {
			texts = append(texts, x+y)
		}
	}
	seen := make(map[string]string)
	add := func(domain string, steps ...step) {
		t.Helper()
		what := fmt.Sprintf("%q %#v", domain, steps)
		got := scope(domain, steps, false)
		if other, ok := seen[got]; ok && other != what {
			t.Fatalf("%s and %s are both %s", what, other, got)
		}
		seen[got] = what
	}
	for _, x := range texts {
		add(x)
		for _, y := range texts {
			add("d", step{key: x, value: y})
			add("d", step{key: x}, step{key: y})
			add(x, step{key: y})
			if strings.Contains(y, "*") {
				add("d", step{key: x, value: y, shared: true})
			}
		}
	}
	long := strings.Repeat("x", 5000)
	if a, b := scope("d", []step{{key: long}}, false), scope("d", []step{{key: long + "x"}}, false); a == b || len(a) > maxScope {
		t.Errorf("long keys: %s and %s", a, b)
	}
}

// Counters belong to the domain and the path of a rule: they stay when numbers, names, modes,
// the order of the file or other rules change.
func TestCountersStay(t *testing.T) {
	const before = `
domain: d
descriptors:
  - key: a
    value: x*
    descriptors: [{ key: b, rate_limit: { unit: minute, requests_per_unit: 5 } }]
  - { key: c, value: y, rate_limit: { unit: hour, requests_per_unit: 5 } }
`
	const after = `
domain: d
descriptors:
  - { key: c, value: y, shadow_mode: true, detailed_metric: true, rate_limit: { unit: hour, requests_per_unit: 500, name: renamed } }
  - key: a
    value: x*
    descriptors: [{ key: other }, { key: b, value: z, rate_limit: { unit: second, requests_per_unit: 1 } }, { key: b, rate_limit: { unit: minute, requests_per_unit: 6 } }]
`
	old, changed := parse(t, before).Domain("d"), parse(t, after).Domain("d")
	for _, descriptor := range []string{"a=x1, b=q", "c=y"} {
		if counter(old, descriptor) != counter(changed, descriptor) {
			t.Errorf("%s has another counter", descriptor)
		}
	}
	if counter(old, "a=x1, b=q") == counter(changed, "a=x1, b=z") {
		t.Error("a rule for one value has the counters of the rule for all values")
	}
}

// What is counted is what the file says, also where the number is more than a window counts.
func TestCountable(t *testing.T) {
	for _, requests := range []uint32{1, 5, 1000, tidegate.MaxCount - 1, tidegate.MaxCount, tidegate.MaxCount + 1, 1e9, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		for _, u := range []Unit{Second, Minute, Hour, Day, Week, Month, Year} {
			l, err := tidegate.NewLimit(counted(told{requests, u}, tidegate.Spec{Name: "x"}))
			if err != nil {
				t.Fatalf("%d/%v: %v", requests, u, err)
			}
			windows := int64(u.Period() / l.Period)
			if u.Period()%l.Period != 0 || windows*l.Events > int64(requests) || float64(windows*l.Events) < float64(requests)-16 {
				t.Errorf("%d/%v: %d windows of %v", requests, u, windows, l)
			}
			if requests <= tidegate.MaxCount && windows != 1 {
				t.Errorf("%d/%v is counted in %d windows", requests, u, windows)
			}
		}
	}
}

// A day has the requests that the file says, whatever the key, and the next day as many.
func TestCountedInWindows(t *testing.T) {
	now := time.Date(2026, 3, 4, 23, 59, 58, 0, time.UTC)
	store := memory.Open(memory.Config{Now: func() time.Time { return now }})
	d := parse(t, "domain: d\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 3 } }]").Domain("d")
	take := func(user string) bool {
		e := []Entry{{"user", user}}
		r := d.Find(e)
		got, err := store.Take(t.Context(), []tidegate.Check{{Key: r.Key(e), Limit: r.Limits[0], Cost: 1}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return got.OK
	}
	for _, user := range []string{"ann", "bob"} {
		for i := range 5 {
			if got := take(user); got != (i < 3) {
				t.Errorf("%s, request %d: %v", user, i, got)
			}
		}
	}
	now = now.Add(2 * time.Second)
	if !take("ann") {
		t.Error("a new day has begun, and nothing passes")
	}
}
