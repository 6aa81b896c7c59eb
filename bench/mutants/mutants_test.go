package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every mutant of the list applies to the code as it is, and there are enough.
func TestListFitsTheCode(t *testing.T) {
	all, err := parse(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := enough(all); err != nil {
		t.Error(err)
	}
	names := map[string]bool{}
	for _, m := range all {
		source, err := os.ReadFile(filepath.Join("../..", m.file))
		if err != nil {
			t.Fatal(err)
		}
		edited, err := m.apply(string(source))
		if err != nil {
			t.Errorf("%s: %v", m.name(), err)
		} else if edited == string(source) {
			t.Errorf("%s changes nothing", m.name())
		}
		if name := m.file + m.name(); names[name] {
			t.Errorf("%s is there twice", name)
		} else {
			names[name] = true
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parse("# readers\n\nquota a.go\nis wrong\n@ func f\n- x < y\n+ x <= y\n")
	want := mutant{algorithm: "quota", file: "a.go", breaks: "is wrong", after: "func f", old: "x < y", new: "x <= y"}
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%+v, %v", got, err)
	}
	f := func(text, why string) {
		t.Helper()
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %s", text, err, why)
		}
	}
	f("quota a.go\nis wrong\n- x", "want a head")
	f("nothing a.go\nis wrong\n- x\n+ y", "names no algorithm")
	f("quota a.go\nis wrong\n* x\n+ y", "starts with")
	f("quota a.go\nis wrong\n- x\n+ x", "nothing is changed")
}

func TestApply(t *testing.T) {
	f := func(m mutant, want, why string) {
		t.Helper()
		got, err := m.apply("a x b x c")
		if got != want || (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%+v: %q, %v", m, got, err)
		}
	}
	f(mutant{old: "b", new: "y"}, "a x y x c", "")
	f(mutant{old: "x", new: "y"}, "", "more than once")
	f(mutant{old: "x", new: "y", after: "b"}, "a x b y c", "")
	f(mutant{old: "a", new: "y", after: "b"}, "", "has no")
	f(mutant{old: "x", new: "y", after: "z"}, "", "has no")
}
