package yamltree

import (
	"fmt"
	"strconv"
	"strings"
)

// explain tells why the next token belongs to nothing: how its line is indented. above is
// the value before it.
func (b *builder) explain(above *Node) {
	if above.Kind == Scalar {
		b.fail(b.tokens[b.next].place, b.name(b.next)+" is indented below a value", "indent it like the line it belongs to")
		return
	}
	b.misaligned(b.next)
}

// name is how token i is called in a message.
func (s *scanner) name(i int) string {
	switch t := s.tokens[i]; t.kind {
	case dash:
		return "a list item"
	case word:
		return fmt.Sprintf("`%s`", shorten(t.text))
	}
	return "this value"
}

// misaligned tells about a line that begins in a column of its own, or in one of
// a list without being an item.
func (s *scanner) misaligned(i int) {
	var above outline
	for j := range s.tokens[:i] {
		if s.begins(j) {
			above.enter(s.tokens[j])
		}
	}
	t := s.tokens[i]
	var spaces []string // of those that it could be beside
	for _, c := range above {
		if c.col == t.col {
			s.notField(i)
			return
		}
		if c.list == (t.kind == dash) {
			spaces = append(spaces, strconv.Itoa(c.col-1))
		}
	}
	hint := "indent it like the line it belongs to"
	if len(spaces) > 0 {
		hint = fmt.Sprintf("lines that it could belong to are indented by %s", strings.Join(spaces, " or "))
	}
	s.fail(t.place, fmt.Sprintf("%s is indented by %d, which fits no line above it", s.name(i), t.col-1), hint)
}

// notField tells about a line that begins where keys do, or list items, and is
// none.
func (s *scanner) notField(i int) {
	switch t := s.tokens[i]; {
	case t.kind == dash:
		s.fail(t.place, "a list item where a key is expected", "a list stands below a key of its own")
	case s.begins(i):
		s.fail(t.place, s.name(i)+" begins where list items do", "write `- ` before it, or indent it like the fields it belongs to")
	default:
		s.fail(t.place, s.name(i)+" is not indented deeper than what it would belong to", "indent it, or write `key: value`")
	}
}
