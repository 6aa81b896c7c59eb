package yamltree

// fillNulls puts a token where a value is left out. The library could do so, but
// moves all that follows each time.
func (s *scanner) fillNulls() {
	all := make([]token, 0, len(s.tokens))
	key := 0 // column of the last word, which is the key when a colon follows
	for i, t := range s.tokens {
		all = append(all, t)
		if t.kind == word {
			key = t.col
			continue
		}
		if (t.kind == colon || t.kind == dash) && noValue(t, key, s.tokens[i+1:]) {
			all = append(all, token{kind: null, flow: t.flow, place: place{t.line, t.col + 1, 1}})
		}
	}
	s.tokens = all
}

// noValue reports whether the colon or dash t has no value in the tokens after
// it: whether the next one is too far to the left to belong to it.
func noValue(t token, key int, after []token) bool {
	if len(after) == 0 {
		return true
	}
	next := after[0]
	switch {
	case t.flow:
		return next.kind == comma || next.kind == closeMap
	case next.line == t.line:
		return false
	case t.kind == dash:
		return next.col <= t.col
	}
	return next.col < key || next.col == key && next.kind != dash
}
