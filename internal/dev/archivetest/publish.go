package archivetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tidegate.dev/tidegate/rules/source"
)

func (s *Server) testEmpty(t *testing.T) {
	a := s.open(t)
	if b, err := a.Next(within(t), ""); err == nil || !strings.Contains(err.Error(), a.Name()) || !strings.Contains(err.Error(), "no rules") {
		t.Errorf("%+v, %v; want an error that says so", b, err)
	}
	if h := head(t, a); h != "" {
		t.Errorf("the newest is %q", h)
	}
	for _, revision := range []string{"", "1", "1-12345678", "-1", "x"} {
		if b, err := a.Get(within(t), revision); !errors.Is(err, source.ErrNoRevision) {
			t.Errorf("revision %q: %+v, %v", revision, b, err)
		}
	}
	if _, err := a.Publish(within(t), bundle("a"), "1-12345678"); !errors.Is(err, source.ErrConflict) {
		t.Errorf("on top of what is not there: %v", err)
	}
	if _, err := a.Publish(within(t), &source.Bundle{}, ""); err == nil {
		t.Error("no files are published")
	}
}

func (s *Server) testPublish(t *testing.T) {
	a := s.open(t)
	first, second := bundle("first"), bundle("second")
	second.Main = "rules.yaml"
	was := head(t, a)
	one := publish(t, a, first)
	got, err := a.Next(within(t), was)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, first, one)
	if _, err := a.Publish(within(t), second, was); !errors.Is(err, source.ErrConflict) {
		t.Errorf("on top of one that is not the newest: %v", err)
	}
	two := publish(t, a, second)
	if one == two {
		t.Error("both have one name")
	}
	for _, have := range []string{"", one, "1-12345678", "other"} {
		if got, err = a.Next(within(t), have); err != nil {
			t.Fatal(err)
		}
		same(t, got, second, two)
	}
	for revision, b := range map[string]*source.Bundle{one: first, two: second} {
		number, _, _ := strings.Cut(revision, "-")
		for _, name := range []string{revision, number} {
			if got, err = a.Get(within(t), name); err != nil {
				t.Fatalf("revision %s: %v", name, err)
			}
			same(t, got, b, revision)
		}
	}
	// The main part of a set may be a folder.
	folder := &source.Bundle{Main: "edge/rules/", Files: map[string][]byte{"edge/rules/a.yaml": []byte("rules: []"), "edge/list": nil}}
	in := publish(t, a, folder)
	if got, err = a.Next(within(t), two); err != nil {
		t.Fatal(err)
	}
	same(t, got, folder, in)
	// It may have several layers. Another order of them is another set.
	texts := map[string][]byte{"1/rules.yaml": []byte("rules: []"), "2/a.yaml": []byte("rules: []"), "2/b.yaml": []byte("rules: []")}
	for _, mains := range [][]string{{"1/rules.yaml", "2/"}, {"2/", "1/rules.yaml"}, {"", "2/b.yaml", "2/"}} {
		layers := &source.Bundle{Main: mains[0], Over: mains[1:], Files: texts}
		is := publish(t, a, layers)
		if got, err = a.Next(within(t), in); err != nil {
			t.Fatal(err)
		}
		same(t, got, layers, is)
		if got, err = a.Get(within(t), is); err != nil {
			t.Fatal(err)
		}
		same(t, got, layers, is)
		in = is
	}
	// What is published again is another revision, and the same files.
	three := publish(t, a, first)
	if got, err = a.Next(within(t), two); err != nil {
		t.Fatal(err)
	}
	same(t, got, first, three)
	for _, wrong := range []*source.Bundle{
		{Edition: source.Edition{Reason: strings.Repeat("x", 10_000)}, Files: first.Files},
		{Files: map[string][]byte{"../rules.yaml": nil}},
	} {
		if r, err := a.Publish(within(t), wrong, three); err == nil {
			t.Errorf("%+v is published as %s", wrong.Edition, r)
		}
	}
}

func (s *Server) testFiles(t *testing.T) {
	a := s.open(t)
	for _, files := range []map[string][]byte{
		{"rules.yaml": {}},
		{"rules.yaml": []byte("rules: []"), "lists/deep/er/list.txt": {0, 1, 0xff, '\r', '\n', '\n'}, "ä ö.yaml": []byte("ü\n")},
		{"rules.yaml": bytes.Repeat([]byte("# ööö 0123456789\n"), 40_000)},
		many(90),
		many(100),
		many(1),
	} {
		b := &source.Bundle{Files: files}
		revision := publish(t, a, b)
		got, err := a.Next(within(t), "")
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, b, revision)
		if got, err = a.Get(within(t), revision); err != nil {
			t.Fatal(err)
		}
		same(t, got, b, revision)
	}
}

// many are so many files.
func many(n int) map[string][]byte {
	files := make(map[string][]byte)
	for i := range n {
		files[fmt.Sprintf("f%d.yaml", i)] = fmt.Appendf(nil, "%d of %d", i, n)
	}
	return files
}
