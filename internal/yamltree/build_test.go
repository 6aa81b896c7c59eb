package yamltree

import (
	"errors"
	"strings"
	"testing"

	library "github.com/goccy/go-yaml/token"
)

// A panic of the library is a problem of the file, not the end of the process.
func TestLibraryPanics(t *testing.T) {
	s := scan("f.yaml", []string{"a"}, [][]rune{{'a'}})
	root, err := s.parse(library.Tokens{library.String("x", "x", nil)})
	if root != nil || err == nil {
		t.Fatalf("got %v, %v, want no root and an error", root, err)
	}
	s.explain(err)
	if !s.broken || len(s.problems) != 1 || !strings.HasPrefix(s.problems[0].Message, "the YAML parser gave up: ") {
		t.Errorf("got %v, want one problem that says so", s.problems)
	}
}

type unknownError struct{ error }

func (unknownError) GetMessage() string { return "something new" }
func (unknownError) GetToken() *library.Token {
	return library.String("x", "x", &library.Position{Offset: 0})
}

// What the library says in words that are not known here is told in its own.
func TestUnknownMessage(t *testing.T) {
	s := scan("f.yaml", []string{"a"}, [][]rune{{'a'}})
	s.explain(unknownError{errors.New("")})
	want := "f.yaml:1:1: error: this cannot be read as YAML: something new\n    a\n    ^"
	if got := s.problems.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
