package yamltree

// outline is what maps and lists, outside of braces and brackets, a token is
// inside of, by the columns of their keys and dashes.
type outline []column

type column struct {
	col  int
	list bool
}

// enter moves on to a key or dash.
func (o *outline) enter(t token) {
	list := t.kind == dash
	for c := o.top(); c.col > t.col || c.col == t.col && c.list && !list; c = o.top() {
		*o = (*o)[:len(*o)-1]
	}
	if c := o.top(); c.col < t.col || c.list != list {
		*o = append(*o, column{col: t.col, list: list})
	}
}

func (o *outline) top() column {
	if len(*o) == 0 {
		return column{}
	}
	return (*o)[len(*o)-1]
}

// isKey reports whether token i is a key outside of braces.
func (s *scanner) isKey(i int) bool {
	t := s.tokens[i]
	return !t.flow && t.kind == word && i+1 < len(s.tokens) && s.tokens[i+1].kind == colon
}

// begins reports whether token i is a key or dash outside of braces.
func (s *scanner) begins(i int) bool {
	return s.tokens[i].kind == dash || s.isKey(i)
}
