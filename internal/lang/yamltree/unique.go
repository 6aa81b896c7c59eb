package yamltree

import "fmt"

// unique tells about keys that a map has twice, and keeps the first.
func (s *scanner) unique(n *Node) {
	first := make(map[string]int, len(n.Fields)) // its line
	kept := n.Fields[:0]
	for _, f := range n.Fields {
		line, twice := first[f.Key.Value]
		if twice {
			at := place{f.Key.Pos.Line, f.Key.Pos.Col, f.Key.Pos.Len}
			s.refuse(at, fmt.Sprintf("`%s` is there twice", shorten(f.Key.Value)), fmt.Sprintf("the first is on line %d; keep one of them", line))
		} else {
			first[f.Key.Value] = f.Key.Pos.Line
			kept = append(kept, f)
		}
		s.unique(f.Value)
	}
	n.Fields = kept
	for _, item := range n.Items {
		s.unique(item)
	}
}
