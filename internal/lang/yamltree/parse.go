package yamltree

import "tidegate.dev/tidegate/internal/lang/diag"

// Parse reads one YAML document. The root is nil if the document is empty or its
// shape is unclear. If a problem leaves the shape clear, such as a value that needs
// quotes, Parse returns both a root and problems, so that the caller can look for more
// problems.
func Parse(file string, src []byte) (*Node, diag.List) {
	lines, text, bad := decode(file, src)
	if bad != nil {
		return nil, diag.List{*bad}
	}
	s := scan(file, lines, text)
	root := s.tree()
	s.problems.Sort()
	return root, s.problems
}

// tree returns the root of the document. It returns nil if there are no tokens or the
// shape is unclear; then there is a problem that says so.
func (s *scanner) tree() *Node {
	if s.broken {
		return nil
	}
	if len(s.tokens) == 0 {
		if len(s.problems) == 0 {
			at := diag.Pos{File: s.file, Line: 1, Col: 1, Len: 1}
			s.problems.Add(diag.Problem{Pos: at, Message: "the file is empty, or has only comments"})
		}
		return nil
	}
	root := s.build()
	if root != nil {
		s.unique(root)
	}
	return root
}
