package envoy

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestMerge(t *testing.T) {
	one := File{"one.yaml", []byte("domain: d\ndescriptors: [{ key: a, value: x, rate_limit: { unit: minute, requests_per_unit: 10 } }]\n")}
	two := File{"two.yaml", []byte("domain: d\ndescriptors: [{ key: b, value: y, rate_limit: { unit: minute, requests_per_unit: 20 } }]\n")}
	bare := File{"bare.yaml", []byte("domain: d\ndescriptors:\n")}
	other := File{"other.yaml", []byte("domain: e\n")}
	f := func(merge bool, want string, files ...File) *Set {
		t.Helper()
		set, err := Load(files, Options{MergeDomains: merge})
		var problems Problems
		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (!errors.As(err, &problems) || !strings.Contains(err.Error(), want)):
			t.Errorf("got %v, want %q", err, want)
		}
		return set
	}
	f(false, "", one, other)
	f(false, "the domain `d` is already at one.yaml:1", one, two)
	f(false, "the domain `d` is already at one.yaml:1", one, bare)
	f(true, "", one, bare)
	d := f(true, "", one, two).Domain("d")
	if a, b := d.Find(entries("a=x")), d.Find(entries("b=y")); a == nil || b == nil || a.RequestsPerUnit != 10 || b.RequestsPerUnit != 20 {
		t.Errorf("merged: %+v and %+v", a, b)
	}
	again := File{"again.yaml", one.Text}
	f(true, "duplicate descriptor: `d.a_x` is already at one.yaml:2", one, again)
	// One bad file refuses all of them.
	if set := f(false, "unknown key", one, File{"bad.yaml", []byte("domain: f\ndescriptor: []\n")}); set != nil {
		t.Error("a part is used")
	}
	if got := f(true, "", one, two, other).Domains(); strings.Join(got, " ") != "d e" {
		t.Errorf("the domains are %v", got)
	}
}

// FuzzLoad: no configuration makes anything panic, and every rule of one that loads is found
// by a descriptor made of its own path, or one that is matched before it.
func FuzzLoad(f *testing.F) {
	f.Add([]byte("domain: d\ndescriptors: [{ key: a, value: x*, rate_limit: { unit: minute, requests_per_unit: 10 } }]\n"), "a", "xy")
	f.Add([]byte("domain: d\ntidegate: { atomic: true }\ndescriptors: [{ key: a, rate_limit: { tidegate: { limits: [5/90s] } } }]\n"), "a", "")
	for _, name := range []string{"basic.yaml", "stars.yaml"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "plan", "gold")
	}
	f.Fuzz(func(t *testing.T, text []byte, key, value string) {
		set, err := Load([]File{{"config.yaml", text}}, Options{})
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) || err.Error() == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, name := range set.Domains() {
			d := set.Domain(name)
			d.Find([]Entry{{key, value}, {value, key}})
			for _, r := range d.Rules() {
				e := make([]Entry, len(r.steps))
				for i, s := range r.steps {
					e[i] = Entry{s.key, s.value}
				}
				got := d.Find(e)
				if got == nil || got.Path != r.Path {
					t.Errorf("%q finds %+v, want %s", e, got, r.Path)
					continue
				}
				if got.Key(e) == "" || got.Metric(e) == "" || got.Unlimited != (len(got.Limits) == 0) {
					t.Errorf("%+v is not complete", got)
				}
			}
		}
	})
}
