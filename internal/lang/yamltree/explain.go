package yamltree

import (
	"fmt"
	"strconv"
	"strings"
)

// explain fails with the reason why the next token belongs to nothing, which is how its
// line is indented. above is the value before it.
func (b *builder) explain(above *Node) {
	if above.Kind == Scalar {
		b.fail(b.tokens[b.next].place, b.name(b.next)+" is indented below a value", "indent it like the line it belongs to")
		return
	}
	b.misaligned(b.next)
}

// name returns what messages call token i.
func (s *scanner) name(i int) string {
	switch t := s.tokens[i]; t.kind {
	case dash:
		return "a list item"
	case word:
		return fmt.Sprintf("`%s`", shorten(t.text))
	}
	return "this value"
}

// misaligned fails because the line of token i begins in a column that no map or list
// around it has, or in the column of one of which it is no entry.
func (s *scanner) misaligned(i int) {
	var above outline
	for j := range s.tokens[:i] {
		if s.begins(j) {
			above.enter(s.tokens[j])
		}
	}
	t := s.tokens[i]
	var spaces []string // indentation of each map or list that the line could belong to
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

// notField fails because token i begins in the column of a map or list without being
// one of its keys or items.
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
