package yamltree

import "fmt"

// Bounds on the shape of a file. The library's parser calls itself for each
// level, and for each field of a map outside of braces; its work grows with the
// square of their number.
const (
	maxDepth  = 64
	maxFields = 1024
)

// outline is what maps and lists, outside of braces and brackets, a token is
// inside of, by the columns of their keys and dashes.
type outline []column

type column struct {
	col    int
	list   bool
	fields int
}

// enter moves on to a key or dash.
func (o *outline) enter(t token) *column {
	list := t.kind == dash
	for c := o.top(); c.col > t.col || c.col == t.col && c.list && !list; c = o.top() {
		*o = (*o)[:len(*o)-1]
	}
	if c := o.top(); c.col < t.col || c.list != list {
		*o = append(*o, column{col: t.col, list: list})
	}
	c := &(*o)[len(*o)-1]
	c.fields++
	return c
}

func (o *outline) top() column {
	if len(*o) == 0 {
		return column{}
	}
	return (*o)[len(*o)-1]
}

// begins reports whether token i is a key or dash outside of braces.
func (s *scanner) begins(i int) bool {
	t := s.tokens[i]
	return !t.flow && (t.kind == dash || t.kind == word && i+1 < len(s.tokens) && s.tokens[i+1].kind == colon)
}

// bound tells when a file is nested too deep or has a map that is too large.
func (s *scanner) bound() {
	var open outline
	flow := 0
	for i, t := range s.tokens {
		switch {
		case t.kind == openMap || t.kind == openList:
			flow++
		case t.kind == closeMap || t.kind == closeList:
			flow--
		case s.begins(i):
			if c := open.enter(t); !c.list && c.fields > maxFields {
				s.fail(t.place, fmt.Sprintf("a map of more than %d fields", maxFields), "make a list of it, or several files")
				return
			}
		}
		if len(open)+flow > maxDepth {
			s.fail(t.place, fmt.Sprintf("more than %d levels, one inside of the other", maxDepth), "write it with fewer")
			return
		}
	}
}
