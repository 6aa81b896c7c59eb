package yamltree

// outline is the columns of the maps and lists that a token is in, from the outermost
// to the innermost, not counting those in braces and brackets. The column of a map is
// that of its keys, the column of a list that of its dashes.
type outline []column

type column struct {
	col  int
	list bool
}

// enter moves on to t, a key or dash: it leaves the maps and lists that end before t,
// and adds the one that t begins, if it begins one.
func (o *outline) enter(t token) {
	list := t.kind == dash
	for c := o.top(); c.col > t.col || c.col == t.col && c.list && !list; c = o.top() {
		*o = (*o)[:len(*o)-1]
	}
	if c := o.top(); c.col < t.col || c.list != list {
		*o = append(*o, column{col: t.col, list: list})
	}
}

// top returns the innermost column, or the zero column if there is none.
func (o *outline) top() column {
	if len(*o) == 0 {
		return column{}
	}
	return (*o)[len(*o)-1]
}

// isKey reports whether token i is a key outside of braces and brackets.
func (s *scanner) isKey(i int) bool {
	t := s.tokens[i]
	return !t.flow && t.kind == word && i+1 < len(s.tokens) && s.tokens[i+1].kind == colon
}

// begins reports whether token i is a dash, or a key outside of braces and brackets.
func (s *scanner) begins(i int) bool {
	return s.tokens[i].kind == dash || s.isKey(i)
}
