package yamltree

import "fmt"

// unique refuses keys that a map has twice, in n and everything below it, and keeps the
// first field of each.
func (s *scanner) unique(n *Node) {
	var first map[string]int // the line of each key; nil if n has few fields
	if len(n.Fields) > fewFields {
		first = make(map[string]int, len(n.Fields))
	}
	kept := n.Fields[:0]
	for _, f := range n.Fields {
		line, twice := first[f.Key.Value]
		if first == nil {
			line, twice = lineOf(kept, f.Key.Value)
		}
		if twice {
			at := place{f.Key.Pos.Line, f.Key.Pos.Col, f.Key.Pos.Len}
			s.refuse(at, fmt.Sprintf("`%s` is there twice", shorten(f.Key.Value)), fmt.Sprintf("the first is on line %d; keep one of them", line))
		} else {
			kept = append(kept, f)
			if first != nil {
				first[f.Key.Value] = f.Key.Pos.Line
			}
		}
		s.unique(f.Value)
	}
	n.Fields = kept
	for _, item := range n.Items {
		s.unique(item)
	}
}

// fewFields is up to how many fields comparing one by one is faster than hashing.
const fewFields = 16

// lineOf returns the line of the field with that key.
func lineOf(fields []Field, key string) (line int, found bool) {
	for _, f := range fields {
		if f.Key.Value == key {
			return f.Key.Pos.Line, true
		}
	}
	return 0, false
}
