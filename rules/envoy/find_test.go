package envoy

import (
	"os"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

// load loads files of testdata.
func load(t testing.TB, names ...string) *Set {
	t.Helper()
	var files []File
	for _, name := range names {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{name, text})
	}
	set, err := Load(files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// parse loads a configuration that has to be right.
func parse(t testing.TB, text string) *Set {
	t.Helper()
	set, err := Load([]File{{"config.yaml", []byte(text)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// entries reads "key=value, key=value".
func entries(text string) []Entry {
	var all []Entry
	for part := range strings.SplitSeq(text, ", ") {
		key, value, _ := strings.Cut(part, "=")
		all = append(all, Entry{key, value})
	}
	return all
}

func TestFind(t *testing.T) {
	d := load(t, "basic.yaml").Domain("shop")
	f := func(descriptor string, requests uint32, unit Unit) {
		t.Helper()
		r := d.Find(entries(descriptor))
		switch {
		case unit == NoUnit && r != nil:
			t.Errorf("%s: got %d/%v, want no limit", descriptor, r.RequestsPerUnit, r.Unit)
		case unit == NoUnit:
		case r == nil:
			t.Errorf("%s: got no limit, want %d/%v", descriptor, requests, unit)
		case r.RequestsPerUnit != requests || r.Unit != unit || len(r.Limits) != 1:
			t.Errorf("%s: got %d/%v %v, want %d/%v", descriptor, r.RequestsPerUnit, r.Unit, r.Limits, requests, unit)
		default:
			l := r.Limits[0]
			if l.Algorithm != tidegate.FixedWindow || l.Events != int64(requests) || l.Period != unit.Period() || !r.CountRejected {
				t.Errorf("%s: got %v, want a fixed window of %d/%v", descriptor, l, requests, unit.Period())
			}
		}
	}
	f("tenant=other", 0, NoUnit)
	f("tenant=acme", 0, NoUnit) // a level without a limit
	f("plan=gold, more=x", 0, NoUnit)
	f("deep=one, deeper=other", 0, NoUnit) // the limit of the first level is not used
	f("deep=one", 15, Day)
	f("deep=one, deeper=two", 25, Day)
	f("deeper=two", 0, NoUnit)
	f("tenant=acme, path=/", 5, Second)
	f("tenant=acme, path=/login", 10, Second)
	f("tenant=acme, path=/login, x=y", 0, NoUnit)
	f("path=/login, tenant=acme", 0, NoUnit) // entries have an order
	f("plan=silver", 20, Minute)
	f("plan=", 20, Minute)
	f("plan=gold", 30, Minute)
	f("plan=Gold", 20, Minute)
	f("plan=staff", 0, NoUnit) // exempt
	f("hourly=x", 1, Hour)
	f("daily=x", 1, Day)
	f("weekly=x", 7, Week)
	f("monthly=x", 30, Month)
	f("yearly=x", 365, Year)
	f("42=007", 1000, Minute)
	f("42=7", 0, NoUnit)
	f("nothing=x", 11, Minute)
	f("unknown=x", 0, NoUnit)
	f("=", 0, NoUnit)
	if d.Find(nil) != nil || load(t, "basic.yaml").Domain("other").Find(entries("plan=gold")) != nil || (*Set)(nil).Domain("shop") != nil {
		t.Error("a descriptor without entries, an unknown domain or no configuration has a limit")
	}
}

func TestRule(t *testing.T) {
	d := load(t, "basic.yaml").Domain("shop")
	if r := d.Find(entries("daily=x")); r.Name != "daily_limit" {
		t.Errorf("the name is %q", r.Name)
	}
	if r := d.Find(entries("free=x")); !r.Unlimited || r.Limits != nil {
		t.Errorf("unlimited: %+v", r)
	}
	if r := d.Find(entries("banned=x")); r.Unlimited || len(r.Limits) != 1 || r.Limits[0].Algorithm != tidegate.Deny || r.Unit != Minute {
		t.Errorf("0 requests: %+v", r)
	}
	if r := d.Find(entries("tried=x")); !r.Shadow || r.Quota {
		t.Errorf("shadow_mode: %+v", r)
	}
	if r := d.Find(entries("replacing=x")); strings.Join(r.Replaces, " ") != "daily_limit other" {
		t.Errorf("replaces: %q", r.Replaces)
	}
	r := d.Find(entries("service=one"))
	quota, _ := r.Metadata["quota"].(map[string]any)
	if !r.Quota || r.Shadow || quota["name"] != "one" || quota["size"] != 1.5 || quota["on"] != true || quota["none"] != nil {
		t.Errorf("quota_mode with metadata: %+v", r)
	}
	if tags, _ := quota["tags"].([]any); len(tags) != 2 || tags[1] != "7" {
		t.Errorf("a quoted number in metadata: %v", quota["tags"])
	}
	if n := len(d.Rules()); n != 19 {
		t.Errorf("there are %d rules", n)
	}
}

func TestStars(t *testing.T) {
	d := load(t, "stars.yaml").Domain("stars")
	f := func(descriptor string, requests uint32) {
		t.Helper()
		r := d.Find(entries(descriptor))
		if r == nil && requests != 0 || r != nil && r.RequestsPerUnit != requests {
			t.Errorf("%s: got %+v, want %d", descriptor, r, requests)
		}
	}
	for _, value := range []string{"foo", "foo1", "foo2", "foo*", "foo bar"} {
		f("wild="+value, 1)
	}
	f("wild=bar", 0)
	f("wild=fo", 0)
	f("wild=xfoo", 0)
	f("literal=foo", 2)
	f("literal=foo1", 0)
	for _, value := range []string{"barab", "bar123b", "barb", "bar*b", "barbb"} {
		f("mid="+value, 3)
	}
	for _, value := range []string{"bara", "xbarb", "ba", "bar", "barbx", ""} {
		f("mid="+value, 0)
	}
	for _, value := range []string{"foo123bar456baz", "foobarbaz", "foobarbarbaz", "foobarbazbaz"} {
		f("multi="+value, 4)
	}
	for _, value := range []string{"foo123baz", "bar456baz", "foobarba", "foobaz", "foobarbaz/"} {
		f("multi="+value, 0)
	}
	f("nested=val1, wild=goo2", 5)
	f("nested=val2, wild=goo2", 0)
	// The exact value, then the first pattern of the file, then the key alone.
	f("order=abc", 9)
	f("order=abcd", 6)
	f("order=ab*", 7)
	f("order=b", 8)
	f("path=path/x, path=a.pdf, user=ann", 13)
	f("path=path/x, path=a.png, user=ann", 0)
}

// Entries without an order find what some order of them finds, and are left in it.
func TestFindAny(t *testing.T) {
	d := parse(t, `
domain: d
descriptors:
  - key: b
    descriptors:
      - { key: a, rate_limit: { unit: second, requests_per_unit: 1 } }
      - key: c
        descriptors:
          - { key: a, value: x, rate_limit: { unit: second, requests_per_unit: 2 } }
  - key: a
    descriptors:
      - { key: b, value: y, rate_limit: { unit: second, requests_per_unit: 3 } }
      - key: d
  - { key: e, rate_limit: { unit: second, requests_per_unit: 4 } }
`).Domain("d")
	f := func(text string, requests uint32, order string) {
		t.Helper()
		all := entries(text)
		for i := range all { // every rotation, forward and backward
			given := append(slices.Clone(all[i:]), all[:i]...)
			for range 2 {
				slices.Reverse(given)
				r := d.FindAny(given)
				if requests == 0 {
					if r != nil {
						t.Errorf("%v: found %+v", given, r)
					}
					continue
				}
				var keys []string
				for _, e := range given {
					keys = append(keys, e.Key)
				}
				if r == nil || r.RequestsPerUnit != requests || strings.Join(keys, " ") != order {
					t.Errorf("%s: found %+v in the order %v", text, r, keys)
				}
			}
		}
	}
	f("a=1, b=y", 3, "a b") // both orders have a rule
	f("a=1, b=z", 1, "b a")
	f("a=x, b=1, c=1", 2, "b c a")
	f("a=z, b=1, c=1", 0, "")
	f("e=1", 4, "e")
	f("e=1, a=1", 0, "")
	f("a=1, d=1", 0, "")
	if d.FindAny(nil) != nil || (*Domain)(nil).FindAny(entries("e=1")) != nil {
		t.Error("nothing is limited")
	}
}
