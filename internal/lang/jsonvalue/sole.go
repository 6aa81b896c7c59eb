package jsonvalue

import "strings"

// Sole returns the text that Find would have found whichever of several members of
// one name a reader takes, the first, the last or one whose name differs in case.
// Where readers would disagree there is none.
func (v Value) Sole(path string) (text string, ok bool) {
	var s sole
	s.follow(v, path)
	if s.torn {
		return "", false
	}
	return s.text, s.ok
}

// sole is what all readings so far have in common.
type sole struct {
	text       string
	ok         bool
	seen, torn bool
}

func (s *sole) add(text string, ok bool) {
	if s.seen && (text != s.text || ok != s.ok) {
		s.torn = true
	}
	s.text, s.ok, s.seen = text, ok, true
}

// follow adds what each reading finds. Members do not overlap, so that all of them
// take no longer than reading v once for each name of the path.
func (s *sole) follow(v Value, path string) {
	name, rest, more := strings.Cut(path, ".")
	exact := false
	for m := v.Members(); m.Next() && !s.torn; {
		if !strings.EqualFold(m.Name, name) {
			continue
		}
		exact = exact || m.Name == name
		if more {
			s.follow(m.Value, rest)
		} else {
			s.add(m.Value.Text())
		}
	}
	if !exact {
		s.add("", false)
	}
}

// Same reports whether two values are written the same, or have the same text.
func (v Value) Same(other Value) bool {
	if v == other {
		return true
	}
	a, ok := v.Text()
	b, alsoOK := other.Text()
	return ok && alsoOK && a == b
}
