package yamltree

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// refuseText tells about the plain text of n characters here, where it is not
// what it looks like in YAML. It is taken as it looks, so that its reader can go
// on.
func (s *scanner) refuseText(n int) {
	text := s.text[s.line][s.col : s.col+n]
	first := text[0]
	switch {
	case first == '*' && s.merges():
	case first == '*' && s.anchors[string(text[1:])]:
		s.refuse(s.here(n), fmt.Sprintf("`%s` is an alias, which is not used here", shorten(string(text))), "write the value out")
	case first == '*':
		s.refuse(s.here(n), fmt.Sprintf("`%s` begins with *, which in YAML refers to another value", shorten(string(text))), "quote it: "+quote(string(text)))
	case strings.ContainsRune("|>%@`,{}[]", first) || first == '?' && (n == 1 || blank(text[1])):
		s.refuse(s.here(n), fmt.Sprintf("`%s` begins with a sign that has a meaning in YAML", shorten(string(text))), "quote it: "+quote(string(text)))
	case len(s.flow) > 0 && slices.ContainsFunc(text, flowSign):
		s.refuse(s.here(n), fmt.Sprintf("`%s` has braces of its own inside of `%s`", shorten(string(text)), s.flow[len(s.flow)-1]), "quote the pattern: "+quote(string(text)))
	case first > unicode.MaxASCII && (unicode.IsSpace(first) || unicode.Is(unicode.Cf, first)):
		s.refuse(s.here(1), fmt.Sprintf("an invisible character, U+%04X", first), "write spaces in its place; it was probably pasted")
	}
}

// merges reports whether the value of << is next, which is refused already.
func (s *scanner) merges() bool {
	n := len(s.tokens)
	return n >= 2 && s.tokens[n-1].kind == colon && s.tokens[n-2].text == "<<"
}

// group returns the length of the braces or brackets that open i behind the next
// character, with what is in them, such as {id}; 0 when they are no part of a
// pattern.
func (s *scanner) group(i int) int {
	var closing rune
	switch s.peek(i) {
	case '{':
		closing = '}'
	case '[':
		closing = ']'
	default:
		return 0
	}
	for n := 1; ; n++ {
		switch c := s.peek(i + n); {
		case c == closing:
			return n + 1
		case ends(c) || flowSign(c) || c == '"' || c == '\'':
			return 0
		}
	}
}

// address returns the length of the IPv6 address or network here, 0 when there
// is none, and tells that it is to be quoted: YAML takes the colons of some for
// its own.
func (s *scanner) address() int {
	n := s.addressLength()
	if n > 0 {
		text := string(s.text[s.line][s.col : s.col+n])
		s.refuse(s.here(n), fmt.Sprintf("the IPv6 address `%s` has no quotes, and YAML reads colons in its own way", shorten(text)), "quote it: "+quote(text))
	}
	return n
}

func (s *scanner) addressLength() int {
	n := 0
	if s.peek(0) == '[' {
		if n = s.group(0); n == 0 || s.peek(n) != ':' {
			return 0
		}
	}
	for n < maxAddress && addressRune(s.peek(n)) {
		n++
	}
	if n == 0 || n >= maxAddress || !s.wordEnds(n) || !isAddress(string(s.text[s.line][s.col:s.col+n])) {
		return 0
	}
	return n
}

// No address with brackets, prefix or port is as long.
const maxAddress = 80

func addressRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F' || r == ':' || r == '.' || r == '/'
}

// wordEnds reports whether the plain text here can end behind n characters.
func (s *scanner) wordEnds(n int) bool {
	c := s.peek(n)
	return ends(c) || c == ':' && ends(s.peek(n+1)) || len(s.flow) > 0 && flowSign(c)
}

func isAddress(text string) bool {
	if strings.Count(text, ":") < 2 {
		return false
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Is6()
	}
	if network, err := netip.ParsePrefix(text); err == nil {
		return network.Addr().Is6()
	}
	port, err := netip.ParseAddrPort(text)
	return err == nil && port.Addr().Is6()
}

// hostPort reports whether an address in brackets, with a port, begins here: it
// is no list.
func (s *scanner) hostPort() bool { return s.peek(0) == '[' && s.addressLength() > 0 }
