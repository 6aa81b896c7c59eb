package yamltree

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// refuseText adds a problem if the plain text in the next n characters means
// something else in YAML than what it looks like. The text is kept as it looks, so
// that reading can go on.
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

// merges reports whether the value of << is next. That key has been refused already; in quotes it is
// a key like any other.
func (s *scanner) merges() bool {
	n := len(s.tokens)
	return n >= 2 && s.tokens[n-1].kind == colon && s.tokens[n-2].text == "<<" && !s.tokens[n-2].quoted
}

// group returns the length of a group in braces or brackets, such as {id}, that
// begins i characters after the next one. It returns 0 if none begins there, or if a
// blank, a quote, a flow sign or the end of the line comes before it is closed.
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

// address returns the length of the unquoted IPv6 address or network here, or 0 if
// there is none, and adds a problem that asks for quotes: YAML gives the colons of
// some addresses a meaning.
func (s *scanner) address() int {
	n := s.addressLength()
	if n > 0 {
		text := string(s.text[s.line][s.col : s.col+n])
		s.refuse(s.here(n), fmt.Sprintf("the IPv6 address `%s` has no quotes, and YAML reads colons in its own way", shorten(text)), "quote it: "+quote(text))
	}
	return n
}

// addressLength returns the length of the IPv6 address or network here, with its
// brackets and port if it has them, or 0 if there is none.
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

// maxAddress is more than the length of any address with brackets, prefix or port.
const maxAddress = 80

func addressRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F' || r == ':' || r == '.' || r == '/'
}

// wordEnds reports whether the plain text here can end after n characters.
func (s *scanner) wordEnds(n int) bool {
	c := s.peek(n)
	return ends(c) || c == ':' && ends(s.peek(n+1)) || len(s.flow) > 0 && flowSign(c)
}

// isAddress reports whether text is an IPv6 address, a network, or an address with a
// port.
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

// hostPort reports whether an address in brackets with a port, such as [::1]:80,
// begins here, which is not a list.
func (s *scanner) hostPort() bool { return s.peek(0) == '[' && s.addressLength() > 0 }
