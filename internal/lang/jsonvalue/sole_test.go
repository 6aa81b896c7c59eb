package jsonvalue

import (
	"strings"
	"testing"
)

func TestSole(t *testing.T) {
	f := func(text, path, want string, wantOK bool) {
		t.Helper()
		v, valid := Parse([]byte(text))
		if !valid {
			t.Fatalf("%s is not valid", text)
		}
		if got, ok := v.Sole(path); got != want || ok != wantOK {
			t.Errorf("%s of %s: %q, %v, want %q, %v", path, text, got, ok, want, wantOK)
		}
	}
	f(`{"a":"x"}`, "a", "x", true)
	f(`{"a":"x","b":1}`, "c", "", false)
	f(`{"a":{"b":"x"}}`, "a.b", "x", true)
	f(`{"a":{"b":"x"}}`, "a", "", false)
	// The same twice is once, whatever lies between and however it is written.
	f(`{"a":"x","b":1,"a":"x"}`, "a", "x", true)
	f(`{"a":"x","\u0061":"\u0078"}`, "a", "x", true)
	f(`{"a":1,"a":1.0,"a":1e0}`, "a", "1", true)
	f(`{"a":{"b":"x"},"a":{"b":"x","c":2}}`, "a.b", "x", true)
	// Readers differ: the first, the last, or neither.
	f(`{"a":"x","a":"y"}`, "a", "", false)
	f(`{"a":"x","a":"y","a":"x"}`, "a", "", false)
	f(`{"a":"x","\u0061":"y"}`, "a", "", false)
	f(`{"a":"x","a":null}`, "a", "", false)
	f(`{"a":"x","a":["x"]}`, "a", "", false)
	f(`{"a":{"b":"x"},"a":{"b":"y"}}`, "a.b", "", false)
	f(`{"a":{"b":"x"},"a":{}}`, "a.b", "", false)
	f(`{"a":{},"a":{"b":"x"}}`, "a.b", "", false)
	f(`{"a":{"b":"x"},"a":"x"}`, "a.b", "", false)
	f(`{"a":{"b":"x","b":"y"}}`, "a.b", "", false)
	// Some readers do not mind the case of names.
	f(`{"a":"x","A":"y"}`, "a", "", false)
	f(`{"A":"y","a":"x"}`, "a", "", false)
	f(`{"A":"x"}`, "a", "", false)
	f(`{"a":"x","A":"x"}`, "a", "x", true)
	f(`{"k":"x","\u212a":"y"}`, "k", "", false) // the sign of Kelvin folds to k
	f(`{"a":{"b":"x"},"A":{"b":"y"}}`, "a.b", "", false)
}

// Each byte is read once for each name of the path, however often names repeat.
func TestSoleOfManyTwins(t *testing.T) {
	inner := `{` + strings.Repeat(`"b":"x",`, 5_000) + `"b":"x"}`
	text := `{` + strings.Repeat(`"a":`+inner+`,`, 20) + `"a":` + inner + `}`
	v, ok := Parse([]byte(text))
	if got, found := v.Sole("a.b"); !ok || got != "x" || !found {
		t.Errorf("%v: %q, %v", ok, got, found)
	}
}

// FuzzSole: what is found is what Find finds, and adding another value in front or
// behind leaves none.
func FuzzSole(f *testing.F) {
	f.Add(`{"a":{"b":"x"},"a":{"b":1.50}}`, "a.b")
	f.Add(`{"a":1,"A":2}`, "a")
	f.Add(` {"":{"":null}}`, ".")
	f.Fuzz(func(t *testing.T, text, path string) {
		v, _ := Parse([]byte(text))
		got, ok := v.Sole(path)
		if found, also := v.Find(path).Text(); ok && (!also || found != got) {
			t.Errorf("%s of %q: %q, Find says %q, %v", path, text, got, found, also)
		}
		name, _, _ := strings.Cut(path, ".")
		if !ok || strings.ContainsAny(name, "\"\\") || strings.ToValidUTF8(name, "") != name || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
			return
		}
		inner := strings.Trim(string(v), "{} \t\r\n")
		for _, twice := range []string{`{"` + name + `":[],` + string(v[1:]), string(v[:len(v)-1]) + `,"` + name + `":[]}`} {
			if w, valid := Parse([]byte(twice)); valid && inner != "" {
				if got, ok := w.Sole(path); ok {
					t.Errorf("%s of %q: %q", path, twice, got)
				}
			}
		}
	})
}
