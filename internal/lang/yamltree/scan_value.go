package yamltree

// value reads a scalar, or what is in { } or [ ]. If mayBeKey, that may turn out to be
// a key: the caller looks for the colon. value reports whether it stopped at the
// beginning of a line.
func (s *scanner) value(mayBeKey bool) (lineBegins bool) {
	s.properties()
	switch c := s.peek(0); {
	case c == 0 || c == '#':
	case c == '"' || c == '\'':
		return s.quoted(c)
	case (c == '{' || c == '[') && !s.hostPort():
		return s.collection()
	case c == '|' || c == '>':
		return s.block(c == '>')
	case c == ':' && ends(s.peek(1)):
		if !mayBeKey {
			s.fail(s.here(1), "a second colon", "quote the value if the colon belongs to it")
			s.skipLine()
		}
	case c == '?' && ends(s.peek(1)):
		s.fail(s.here(1), "a key that begins with `?`", "write `key: value`")
		s.skipLine()
	default:
		s.plain(mayBeKey)
	}
	return false
}

// properties refuses anchors and tags, and goes past them.
func (s *scanner) properties() {
	for {
		c := s.peek(0)
		if c != '&' && c != '!' {
			return
		}
		n := 1
		for !ends(s.peek(n)) && !(len(s.flow) > 0 && flowSign(s.peek(n))) {
			n++
		}
		name := string(s.text[s.line][s.col : s.col+n])
		if c == '&' {
			s.anchors[name[1:]] = true
			s.fail(s.here(n), "`"+shorten(name)+"` is an anchor, which is not used here", "write the value out where it is needed; text that begins with & is quoted")
		} else {
			s.fail(s.here(n), "`"+shorten(name)+"` is a tag, which is not used here", "delete it: all values are text; text that begins with ! is quoted")
		}
		s.col += n
		s.skipBlanks()
	}
}
